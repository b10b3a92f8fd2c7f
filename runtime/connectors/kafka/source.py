"""Reads topics: Spark fetches messages and keeps offsets in the checkpoint, and the workers decode them to rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from hintplan.plans.connectors.kafka import SPARK_PACKAGE
from hintplan.plans.connectors.messages.formats import is_changelog, key_part, value_part
from hintplan.plans.connectors.messages.startup import BOUNDED, MODE, is_bounded_topic, partition_offsets
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.connector import ArrowSource, StreamSource, TableRead
from hintplan.runtime.connectors.kafka.client import FORMAT, client_options, with_package
from hintplan.runtime.connectors.kafka.metadata import metadata_of, reads_headers, values
from hintplan.runtime.connectors.messages.formats import prepare_part
from hintplan.runtime.connectors.messages.rows import Messages, beside
from hintplan.runtime.engine.rows import ArrowRows

_TRIGGER = "source.max-offsets-per-trigger"
_FIRST, _LAST = "earliest", "latest"
_FETCHED = {"max.poll.records": "100000", "max.partition.fetch.bytes": str(4 << 20), "fetch.max.wait.ms": "10"}
"""The amount that a task fetches at once; Kafka's defaults, 500 messages and 1 MiB, need too many requests.

A task reads only messages that are there. At the end of a partition, Spark asks for its offsets, and the broker answers
only after the fetch before, for which it waits this long for new messages: by default, half a second in each task.
"""


class TopicSource(StreamSource):
    """Reads the messages of a topic; ``upserts`` if the last message of a key is the row of that key."""

    upserts: ClassVar[bool]

    def read_stream(self, read: TableRead) -> DataFrame:
        """Return the messages as a stream, with row kinds if they are changes."""
        read_as = _messages(read, upserts=self.upserts)
        return _rows(_stream(read, read_as), read_as).in_spark(read.name)

    def read_batch(self, read: TableRead) -> DataFrame:
        """Return the messages from the table's start to its end."""
        table, name = read.table, read.name
        start = _starting(table)
        if start.get("startingOffsets") == _LAST:
            raise RunError(
                f"table {name} is read from its latest offset, behind which a batch job finds nothing",
                hint=f"set '{MODE}' = 'earliest-offset'",
                path=f"tables.{name}.options.{MODE}",
            )
        reader = read.spark.read.format(FORMAT).options(**source_options(table), **start, **_ending(table))
        read_as = _messages(read, upserts=False)
        messages = with_package(lambda: _loaded(reader, read_as), read.spark, name, SPARK_PACKAGE)
        return _rows(messages, read_as).in_spark(name)


class ArrowTopicSource(TopicSource, ArrowSource):
    """Reads the messages of a topic of rows also in Arrow."""

    upserts: ClassVar[bool] = False

    def read_in_arrow(self, read: TableRead) -> ArrowRows:
        read_as = _messages(read, upserts=False)
        return _rows(_stream(read, read_as), read_as)


def _stream(read: TableRead, read_as: Messages) -> DataFrame:
    spark, name, table = read.spark, read.name, read.table
    if is_bounded_topic(table):
        raise RunError(
            f"table {name} has an end, which only batch jobs heed",
            hint="remove it, and run with --once to read the existing rows",
            path=f"tables.{name}.options.{BOUNDED}",
        )
    start = {"startingOffsets": _FIRST} if read_as.upserts else _starting(table)
    reader = spark.readStream.format(FORMAT).options(**source_options(table), **start)
    if (max_offsets := table.options.get(_TRIGGER)) is not None:
        reader = reader.option("maxOffsetsPerTrigger", max_offsets)
    return with_package(lambda: _loaded(reader, read_as), spark, name, SPARK_PACKAGE)


def _loaded(reader: DataFrameReader | DataStreamReader, read_as: Messages) -> DataFrame:
    if reads_headers(read_as.metadata):
        reader = reader.option("includeHeaders", "true")
    messages: DataFrame = reader.load().select(*read_as.read_of_each, *values(read_as.metadata, beside))
    messages.schema.fieldNames()  # on Spark Connect, only this makes the server look for the connector
    return messages


def _messages(read: TableRead, *, upserts: bool) -> Messages:
    name, table, columns = read.name, read.table, read.columns
    key, topic = key_part(table), table.options.get("topic")
    return Messages(
        table=name,
        columns=columns,
        key=None if key is None else prepare_part(name, key),
        value=prepare_part(name, value_part(table)),
        upserts=upserts,
        changes=upserts or is_changelog(table),
        ordered=read.row_order,
        splits=read.splits,
        metadata=metadata_of(table, columns),
        topic=None if topic is None or ";" in topic else topic,
    )


def _rows(messages: DataFrame, read_as: Messages) -> ArrowRows:
    return ArrowRows(frame=messages, read=read_as.read, schema=read_as.schema)


def source_options(table: Table) -> Mapping[str, str]:
    """Return the options of Spark's reader that name the topics of ``table`` and configure its client."""
    pattern = table.options.get("topic-pattern")
    topics = {"subscribePattern": pattern} if pattern else {"subscribe": table.options["topic"].replace(";", ",")}
    return {**client_options(table, _FETCHED), **topics}


def _starting(table: Table) -> dict[str, str]:
    match table.options[MODE].lower():
        case "latest-offset":
            return {"startingOffsets": _LAST}
        case "timestamp":
            moment = table.options["scan.startup.timestamp-millis"]
            # Like Flink, read a partition from its end if it has no message since then.
            return {"startingTimestamp": moment, "startingOffsetsByTimestampStrategy": _LAST}
        case "specific-offsets":
            return {"startingOffsets": _specific(table, "scan.startup.specific-offsets")}
    return {"startingOffsets": _FIRST}


def _ending(table: Table) -> dict[str, str]:
    match table.options[BOUNDED].lower():
        case "timestamp":
            return {"endingTimestamp": table.options["scan.bounded.timestamp-millis"]}
        case "specific-offsets":
            return {"endingOffsets": _specific(table, "scan.bounded.specific-offsets")}
    return {"endingOffsets": _LAST}


def _specific(table: Table, option: str) -> str:
    offsets = partition_offsets(table.options[option])
    return json.dumps({table.options["topic"]: {str(partition): offset for partition, offset in offsets.items()}})

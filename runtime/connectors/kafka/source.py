"""Reads topics: Spark fetches messages and keeps offsets in the checkpoint, and the workers decode them to rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.connectors.kafka import SPARK_PACKAGE
from hintplan.plans.connectors.messages.formats import is_changelog, key_part, value_part
from hintplan.plans.connectors.messages.startup import BOUNDED, MODE, is_bounded, partition_offsets
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.kafka.client import FORMAT, client_options, found
from hintplan.runtime.connectors.kafka.metadata import metadata_of, reads_headers, values
from hintplan.runtime.connectors.messages.formats import prepared
from hintplan.runtime.connectors.messages.rows import Messages, beside
from hintplan.runtime.engine.rows import ArrowRows
from hintplan.runtime.storage.pins import PinPlace

_TRIGGER = "source.max-offsets-per-trigger"
_FIRST, _LAST = "earliest", "latest"
_FETCHED = {"max.poll.records": "10000", "max.partition.fetch.bytes": str(4 << 20)}
"""The amount that a task fetches at once; Kafka's defaults, 500 messages and 1 MiB, need too many requests."""


def read(
    spark: SparkSession,
    name: str,
    table: Table,
    columns: tuple[str, ...],
    *,
    upserts: bool,
    row_order: bool = False,
    pins: PinPlace | None = None,
) -> DataFrame:
    """Return the messages of ``table`` as a stream of ``columns``, with row kinds if they are changes.

    ``row_order`` adds the columns of ``ROW_ORDER``.
    """
    read_as = _messages(name, table, columns, upserts=upserts, row_order=row_order)
    return _rows(_stream(spark, name, table, read_as), read_as).in_spark(name)


def read_in_arrow(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> ArrowRows | None:
    """Return the same rows in Arrow in the workers; None for changes, whose order only :func:`read` provides."""
    if is_changelog(table):
        return None
    read_as = _messages(name, table, columns)
    return _rows(_stream(spark, name, table, read_as), read_as)


def read_batch(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> DataFrame:
    """Return the messages of ``table`` from its start to its end."""
    start = _starting(table)
    if start.get("startingOffsets") == _LAST:
        raise RunError(
            f"table {name} is read from its latest offset, behind which a batch job finds nothing",
            hint=f"set '{MODE}' = 'earliest-offset'",
            path=f"tables.{name}.options.{MODE}",
        )
    reader = spark.read.format(FORMAT).options(**_options(table), **start, **_ending(table))
    read_as = _messages(name, table, columns)
    messages = found(lambda: _loaded(reader, read_as), spark, name, SPARK_PACKAGE)
    return _rows(messages, read_as).in_spark(name)


def _stream(spark: SparkSession, name: str, table: Table, read_as: Messages) -> DataFrame:
    if is_bounded(table):
        raise RunError(
            f"table {name} has an end, which only batch jobs heed",
            hint="remove it, and run with --once to take what is there",
            path=f"tables.{name}.options.{BOUNDED}",
        )
    start = {"startingOffsets": _FIRST} if read_as.upserts else _starting(table)
    reader = spark.readStream.format(FORMAT).options(**_options(table), **start)
    if (max_offsets := table.options.get(_TRIGGER)) is not None:
        reader = reader.option("maxOffsetsPerTrigger", max_offsets)
    return found(lambda: _loaded(reader, read_as), spark, name, SPARK_PACKAGE)


def _loaded(reader: Any, read_as: Messages) -> DataFrame:
    if reads_headers(read_as.metadata):
        reader = reader.option("includeHeaders", "true")
    messages: DataFrame = reader.load().select(*read_as.read_of_each, *values(read_as.metadata, beside))
    messages.schema.fieldNames()  # on Spark Connect, only this makes the server look for the connector
    return messages


def _messages(
    name: str, table: Table, columns: tuple[str, ...], *, upserts: bool = False, row_order: bool = False
) -> Messages:
    key, topic = key_part(table), table.options.get("topic")
    return Messages(
        table=name,
        columns=columns,
        key=None if key is None else prepared(name, key),
        value=prepared(name, value_part(table)),
        upserts=upserts,
        changes=upserts or is_changelog(table),
        ordered=row_order,
        metadata=metadata_of(table, columns),
        topic=None if topic is None or ";" in topic else topic,
    )


def _rows(messages: DataFrame, read_as: Messages) -> ArrowRows:
    return ArrowRows(frame=messages, read=read_as.read, schema=read_as.schema)


def _options(table: Table) -> Mapping[str, str]:
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

"""Writes rows as messages.

An append-only topic gets one message per row, and gets it again if the micro-batch is replayed: at least once. An
upsert topic gets one message per key and micro-batch: the last row of the key, or a tombstone if the row was deleted. A
replayed micro-batch appends the same messages again, which leads to the same table.

Kafka distributes messages without a key over all partitions. A reader of a changelog could then see a row retracted
before it is added. Therefore, changes without a key all go to the first partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.kafka import SPARK_PACKAGE
from hintplan.plans.connectors.messages.formats import Part, key_part, value_part
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.connector import (
    ArrowSink,
    BatchWriter,
    CheckedSink,
    QueryId,
    SinkFacts,
    TableWrite,
)
from hintplan.runtime.connectors.kafka.client import FORMAT, client_options, with_package
from hintplan.runtime.connectors.kafka.ends import Marking, missing_messages
from hintplan.runtime.connectors.kafka.metadata import (
    HEADERS,
    HEADERS_DDL,
    HEADERS_TYPE,
    header_structs,
    written_headers,
)
from hintplan.runtime.connectors.messages.formats import batch_encoder, prepare_part, register_schema
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.netted_rows import DELETED, net_rows
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.engine.rows import ArrowRows, Read, Report
from hintplan.runtime.operator import INSERT, KIND
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.state.identity import encode_groups

Schemas = tuple[int | None, int | None]

_Headers = tuple[tuple[str, bytes | None], ...] | None

_MESSAGE = pa.schema([("key", pa.binary()), ("value", pa.binary())])
_MESSAGE_WITH_HEADERS = _MESSAGE.append(pa.field(HEADERS, HEADERS_TYPE))
_DDL = "key binary, value binary"
_PARTITION = "partition"
_FIRST = 0
"""The partition that every topic has."""
_PLACE = "__place"
_ROWS = "rows"
_MOST = 4096
"""The maximum number of messages in an Arrow batch."""
_SENT = {"batch.size": str(128 << 10)}
"""The bytes sent at once to a partition: more than Kafka's 16 KiB, for fewer requests, if the buffer allows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicWriter:
    """Writes rows of ``table`` to its topic; picklable, with secrets still unresolved."""

    name: str
    table: Table
    key: Part | None
    value: Part
    upserts: bool
    schemas: Schemas
    """The ids of the schemas of keys and values in their registries, or None without a registry."""
    in_one_partition: bool
    """True for changes without a key, whose order only a single partition keeps."""
    mark: Marking | None = None
    """Records the end offsets of the topic after a batch; None on Spark Connect."""

    def __call__(self, df: DataFrame, batch: int) -> None:
        self.write(df, batch)

    def write(self, df: DataFrame, batch: int | None = None) -> None:
        """Write all rows of ``df``, whose last column may be the row kind."""
        self.save(self.messages(df), batch)

    def save(self, messages: DataFrame, batch: int | None = None) -> None:
        """Write the output of :meth:`messages` or :meth:`messages_in_arrow`."""
        if self.in_one_partition:
            messages = messages.withColumn(_PARTITION, F.lit(_FIRST))
        unless_declared = {} if "properties.buffer.memory" in self.table.options else _SENT
        options = {**client_options(self.table, unless_declared), "topic": self.table.options["topic"]}
        out = messages.write.format(FORMAT).mode("append").options(**options)
        with_package(out.save, messages.sparkSession, self.name, SPARK_PACKAGE)
        if self.mark is not None and batch is not None:
            self.mark(messages.sparkSession, batch)

    def messages(self, df: DataFrame) -> DataFrame:
        """Return the messages for the rows of ``df``; for upserts, one message per key."""
        key, value, headers = self.key, self.value, written_headers(self.table)
        ddl = _DDL if headers is None else f"{_DDL}, {HEADERS} {HEADERS_DDL}"
        if not self.upserts:
            encoded = partial(_encoded, key=key, value=value, schemas=self.schemas, headers=headers)
            return map_in_arrow(df, encoded, ddl)
        assert key is not None
        placed = df.withColumn(_PLACE, F.monotonically_increasing_id())
        by_key = placed.repartition(*(quoted(column.name) for column in key.columns)).sortWithinPartitions(_PLACE)
        netted = partial(_netted, key=key, value=value, schemas=self.schemas, headers=headers)
        return map_in_arrow(by_key.drop(_PLACE), netted, ddl)

    def messages_in_arrow(self, rows: ArrowRows) -> ArrowRows:
        """Return one message per row, encoded in the task that holds the row; not for upserts."""
        assert not self.upserts
        headers = written_headers(self.table)
        encoded = partial(_encoded, key=self.key, value=self.value, schemas=self.schemas, headers=headers)
        schema = _MESSAGE if headers is None else _MESSAGE_WITH_HEADERS
        return replace(
            rows, read=partial(_encoded_tables, rows=rows.tables(), encoded=encoded), schema=schema, steps=()
        )


class TopicSink(CheckedSink):
    """Writes rows as messages of a topic; with ``upserts``, one message per key and micro-batch."""

    upserts: ClassVar[bool]

    def stream_writer(self, write: TableWrite, rows: DataFrame) -> DataStreamWriter:
        """Return a writer that writes each micro-batch to the topic."""
        return written_by(_topic_writer(write, upserts=self.upserts), rows, write.checkpoint)

    def micro_batch_writer(self, write: TableWrite) -> BatchWriter:
        """Return a function that writes a micro-batch and returns its number of rows."""
        topic = _topic_writer(write, upserts=self.upserts)

        def write_batch(rows: MicroBatch, batch: int) -> int:
            observation = Observation()
            topic.write(rows.in_spark().observe(observation, F.count(F.lit(1)).alias(_ROWS)), batch)
            return int(observation.get[_ROWS])

        return write_batch

    def batch_writer(self, write: TableWrite, rows: DataFrame) -> Callable[[], None]:
        """Return a function that writes all rows; a failed call leaves the messages that it has already written."""
        return partial(_topic_writer(write, upserts=self.upserts).write, rows)

    def missing(self, spark: SparkSession, table: Table, query: QueryId, facts: SinkFacts) -> str | None:
        """Return the messages that the topic has lost, whichever query has written them."""
        return missing_messages(spark, table, facts)


class ArrowTopicSink(TopicSink, ArrowSink):
    """Writes rows that are in Arrow without passing them through Spark."""

    upserts: ClassVar[bool] = False

    def arrow_writer(
        self, write: TableWrite, rows: ArrowRows
    ) -> tuple[ArrowRows, Callable[[DataFrame], DataStreamWriter]]:
        """Return the messages of ``rows``, one per row, and a writer for the messages of each micro-batch."""
        topic = _topic_writer(replace(write, changelog=KIND in rows.schema.names), upserts=False)
        return topic.messages_in_arrow(rows), lambda messages: written_by(topic.save, messages, write.checkpoint)


def _topic_writer(write: TableWrite, *, upserts: bool) -> TopicWriter:
    """Return the writer for the table, after registering its schemas; raise RunError if a registry refuses them."""
    name, table = write.name, write.table
    key, topic = key_part(table), table.options["topic"]
    key = None if key is None else prepare_part(name, key)
    value = prepare_part(name, value_part(table))
    schemas = register_schema(key, f"{topic}-key"), register_schema(value, f"{topic}-value")
    in_one_partition = write.changelog and key is None
    return TopicWriter(
        name=name, table=table, key=key, value=value, upserts=upserts, schemas=schemas,
        in_one_partition=in_one_partition,
        mark=None if write.mark is None else Marking(table=table, mark=write.mark),
    )  # fmt: skip


def _encoded(
    batches: Iterable[pa.RecordBatch], *, key: Part | None, value: Part, schemas: Schemas, headers: str | None
) -> Iterator[pa.RecordBatch]:
    for _, keys, values, message_headers in _messages(batches, key, value, schemas, headers):
        yield _batch(keys, values, message_headers, with_headers=headers is not None)


def _encoded_tables(
    batches: Iterable[pa.RecordBatch], report: Report, *, rows: Read, encoded: Callable[..., Iterator[pa.RecordBatch]]
) -> Iterator[pa.Table]:
    messages = (batch for table in rows(batches, report) for batch in table.to_batches())
    yield from (pa.Table.from_batches([batch]) for batch in encoded(messages))


def _netted(
    batches: Iterable[pa.RecordBatch], *, key: Part, value: Part, schemas: Schemas, headers: str | None
) -> Iterator[pa.RecordBatch]:
    """Yield the last message of each key among the rows of a task, which arrive in their order."""
    tables = [
        _rows_of(kinds, _batch(keys, values, message_headers, with_headers=headers is not None))
        for kinds, keys, values, message_headers in _messages(batches, key, value, schemas, headers)
    ]
    if not tables:
        return
    rows = pa.concat_tables(tables)
    last = net_rows(rows, ("key",))
    deleted = last[DELETED]
    columns = [last["key"], pc.if_else(deleted, pa.scalar(None, pa.large_binary()), last["value"])]
    schema = _MESSAGE
    if headers is not None:
        schema = _MESSAGE_WITH_HEADERS
        columns.append(pc.if_else(deleted, _last_headers(rows, last["key"]), last[HEADERS]))
    for batch in pa.table(columns, names=schema.names).to_batches(_MOST):
        yield batch.cast(schema)


def _rows_of(kinds: Sequence[int], messages: pa.RecordBatch) -> pa.Table:
    """Return the messages with their row kinds; the messages of a task may have more bytes than one binary column."""
    table = pa.Table.from_batches([messages])
    for index, name in enumerate(_MESSAGE.names):
        table = table.set_column(index, name, table[name].cast(pa.large_binary()))
    return table.append_column(KIND, pa.array(kinds, pa.int8()))


def _last_headers(rows: pa.Table, keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the headers of the last of the ``rows`` of each of the ``keys``."""
    groups, _ = encode_groups([pa.concat_arrays([*rows["key"].chunks, *keys.chunks])])
    last = np.empty(rows.num_rows, np.int64)
    last[groups[: rows.num_rows]] = np.arange(rows.num_rows)  # numpy keeps the last of several assignments
    return rows[HEADERS].take(pa.array(last[groups[rows.num_rows :]]))


def _batch(keys: pa.Array, values: pa.Array, headers: Sequence[_Headers], *, with_headers: bool) -> pa.RecordBatch:
    columns = [keys, values]
    if not with_headers:
        return pa.record_batch(columns, schema=_MESSAGE)
    structs = pa.array([header_structs(message_headers) for message_headers in headers], HEADERS_TYPE)
    return pa.record_batch([*columns, structs], schema=_MESSAGE_WITH_HEADERS)


def _messages(
    batches: Iterable[pa.RecordBatch], key: Part | None, value: Part, schemas: Schemas, headers: str | None
) -> Iterator[tuple[Sequence[int], pa.Array, pa.Array, list[_Headers]]]:
    """Yield the kinds, keys, values and headers of each batch."""
    of_key, of_value = schemas
    encode_value = batch_encoder(value, of_value)
    encode_key = None if key is None else batch_encoder(key, of_key)
    for batch in batches:
        kinds = batch.column(KIND).to_pylist() if KIND in batch.schema.names else [INSERT] * batch.num_rows
        keys = pa.nulls(batch.num_rows, pa.binary()) if encode_key is None else encode_key(batch, kinds)
        maps: list[_Headers] = [None] * batch.num_rows
        if headers is not None:
            maps = [None if entries is None else tuple(entries) for entries in batch.column(headers).to_pylist()]
        yield kinds, keys, encode_value(batch, kinds), maps

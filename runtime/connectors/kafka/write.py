"""Writes rows as messages.

A topic that only grows gets a message for each row, again if its micro-batch is replayed: at least once. In a topic of
upserts, each key gets one message a micro-batch: its last row, or none if that is deleted. A replayed micro-batch
writes the same messages behind those that are there, after which the topic says the same.

Kafka puts messages without a key into any partition. A reader of changes would then find that a row is taken back
before it is added, so changes without a key all go to the first partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.kafka import SPARK_PACKAGE
from hintplan.plans.connectors.messages.formats import Part, key_part, value_part
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.connector import Mark
from hintplan.runtime.connectors.kafka.client import FORMAT, client_options, found
from hintplan.runtime.connectors.kafka.ends import Marking
from hintplan.runtime.connectors.kafka.metadata import (
    HEADERS,
    HEADERS_DDL,
    HEADERS_TYPE,
    header_structs,
    written_headers,
)
from hintplan.runtime.connectors.messages.formats import batch_encoder, prepared, registered
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.netting import net
from hintplan.runtime.engine.arrow_rows import ArrowRows, Metrics, Read
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.operator import INSERT, KIND
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import quoted

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
"""Messages in a batch of Arrow."""
_SENT = {"batch.size": str(128 << 10)}
"""How much is sent at once to a partition, for which Kafka has 16 KiB: less often, if the buffer can hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Writes rows of ``table`` into its topic; picklable, with secrets still unresolved."""

    name: str
    table: Table
    key: Part | None
    value: Part
    upserts: bool
    schemas: Schemas
    """The numbers of the schemas of keys and values in their registries, where they have one."""
    in_one_partition: bool
    """Whether only one partition keeps the order of rows: of changes without a key."""
    mark: Marking | None = None
    """Takes where the topic ends after a batch; None on Spark Connect."""

    def __call__(self, df: DataFrame, batch: int) -> None:
        self.write(df, batch)

    def write(self, df: DataFrame, batch: int | None = None) -> None:
        """Write all rows of ``df``, of which the last column may be the kind."""
        self.save(self.messages(df), batch)

    def save(self, messages: DataFrame, batch: int | None = None) -> None:
        """Write what :meth:`messages` or :meth:`messages_in_arrow` has made."""
        if self.in_one_partition:
            messages = messages.withColumn(_PARTITION, F.lit(_FIRST))
        unless_declared = {} if "properties.buffer.memory" in self.table.options else _SENT
        options = {**client_options(self.table, unless_declared), "topic": self.table.options["topic"]}
        out = messages.write.format(FORMAT).mode("append").options(**options)
        found(out.save, messages.sparkSession, self.name, self.table, SPARK_PACKAGE)
        if self.mark is not None and batch is not None:
            self.mark(messages.sparkSession, batch)

    def messages(self, df: DataFrame) -> DataFrame:
        """The messages of the rows of ``df``; of upserts, one a key."""
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
        """A message for each of ``rows``, made in the task that has the row; not of upserts."""
        assert not self.upserts
        headers = written_headers(self.table)
        encoded = partial(_encoded, key=self.key, value=self.value, schemas=self.schemas, headers=headers)
        schema = _MESSAGE if headers is None else _MESSAGE_WITH_HEADERS
        return replace(
            rows, read=partial(_encoded_tables, rows=rows.tables(), encoded=encoded), schema=schema, steps=()
        )


def writer(
    df: DataFrame,
    name: str,
    table: Table,
    *,
    upserts: bool,
    changelog: bool,
    checkpoint: str | None = None,
    mark: Mark | None = None,
) -> DataStreamWriter:
    """A writer of each micro-batch."""
    return written_by(_target(name, table, upserts=upserts, changelog=changelog, mark=mark), df, checkpoint)


def arrow_writer(
    rows: ArrowRows, name: str, table: Table, *, checkpoint: str | None = None, mark: Mark | None = None
) -> tuple[ArrowRows, Callable[[DataFrame], DataStreamWriter]]:
    """The messages of ``rows``, each beside its row, and a writer of the messages of each micro-batch."""
    target = _target(name, table, upserts=False, changelog=KIND in rows.schema.names, mark=mark)
    return target.messages_in_arrow(rows), lambda messages: written_by(target.save, messages, checkpoint)


def micro_batch_writer(
    name: str,
    table: Table,
    *,
    upserts: bool,
    changelog: bool,
    checkpoint: str | None = None,
    part: str = "",
    mark: Mark | None = None,
) -> Callable[[MicroBatch, int], int]:
    """What writes a micro-batch."""
    target = _target(name, table, upserts=upserts, changelog=changelog, mark=mark)

    def write(rows: MicroBatch, batch: int) -> int:
        seen = Observation()
        target.write(rows.in_spark().observe(seen, F.count(F.lit(1)).alias(_ROWS)), batch)
        return int(seen.get[_ROWS])

    return write


def batch_writer(df: DataFrame, name: str, table: Table, *, upserts: bool) -> Callable[[], None]:
    """What writes all rows; a call that fails leaves the messages that it has written."""
    return partial(_target(name, table, upserts=upserts, changelog=False).write, df)


def _target(name: str, table: Table, *, upserts: bool, changelog: bool, mark: Mark | None = None) -> Target:
    """What writes into ``table``, whose schemas are in their registries then; RunError if they cannot be."""
    key, topic = key_part(table), table.options["topic"]
    key = None if key is None else prepared(name, key)
    value = prepared(name, value_part(table))
    schemas = registered(key, f"{topic}-key"), registered(value, f"{topic}-value")
    in_one_partition = changelog and key is None
    return Target(
        name=name, table=table, key=key, value=value, upserts=upserts, schemas=schemas,
        in_one_partition=in_one_partition, mark=None if mark is None else Marking(table=table, mark=mark),
    )  # fmt: skip


def _encoded(
    batches: Iterable[pa.RecordBatch], *, key: Part | None, value: Part, schemas: Schemas, headers: str | None
) -> Iterator[pa.RecordBatch]:
    for _, keys, values, found_headers in _messages(batches, key, value, schemas, headers):
        yield _batch(keys, values, found_headers, with_headers=headers is not None)


def _encoded_tables(
    batches: Iterable[pa.RecordBatch], metrics: Metrics, *, rows: Read, encoded: Callable[..., Iterator[pa.RecordBatch]]
) -> Iterator[pa.Table]:
    found = (batch for table in rows(batches, metrics) for batch in table.to_batches())
    yield from (pa.Table.from_batches([batch]) for batch in encoded(found))


def _netted(
    batches: Iterable[pa.RecordBatch], *, key: Part, value: Part, schemas: Schemas, headers: str | None
) -> Iterator[pa.RecordBatch]:
    """The last message of each key among the rows of a task, which come in their order."""
    kinds: list[int] = []
    messages: list[tuple[Any, Any, _Headers]] = []
    for found_kinds, keys, values, found_headers in _messages(batches, key, value, schemas, headers):
        kinds += found_kinds
        messages += zip(keys.to_pylist(), values.to_pylist(), found_headers, strict=True)
    left = net(messages, kinds, key=(0,))
    last = {message[0]: message[2] for message in messages}
    out = [*left.upserts, *((deleted, None, last[deleted]) for (deleted,) in left.deletes)]
    for start in range(0, len(out), _MOST):
        keys, values, of_messages = zip(*out[start : start + _MOST], strict=True)
        columns = pa.array(keys, pa.binary()), pa.array(values, pa.binary())
        yield _batch(*columns, of_messages, with_headers=headers is not None)


def _batch(keys: pa.Array, values: pa.Array, headers: Sequence[_Headers], *, with_headers: bool) -> pa.RecordBatch:
    columns = [keys, values]
    if not with_headers:
        return pa.record_batch(columns, schema=_MESSAGE)
    structs = pa.array([header_structs(each) for each in headers], HEADERS_TYPE)
    return pa.record_batch([*columns, structs], schema=_MESSAGE_WITH_HEADERS)


def _messages(
    batches: Iterable[pa.RecordBatch], key: Part | None, value: Part, schemas: Schemas, headers: str | None
) -> Iterator[tuple[Sequence[int], pa.Array, pa.Array, list[_Headers]]]:
    """The kinds, keys, values and headers of each batch."""
    of_key, of_value = schemas
    encode_value = batch_encoder(value, of_value)
    encode_key = None if key is None else batch_encoder(key, of_key)
    for batch in batches:
        kinds = batch.column(KIND).to_pylist() if KIND in batch.schema.names else [INSERT] * batch.num_rows
        keys = pa.nulls(batch.num_rows, pa.binary()) if encode_key is None else encode_key(batch, kinds)
        maps: list[_Headers] = [None] * batch.num_rows
        if headers is not None:
            maps = [None if each is None else tuple(each) for each in batch.column(headers).to_pylist()]
        yield kinds, keys, encode_value(batch, kinds), maps

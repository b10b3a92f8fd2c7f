"""Converts messages to rows in the workers: reads the columns of a table from keys and values, into Arrow.

A message that does not fit fails the run, with its topic, partition and offset in the error. Knows no broker: messages
arrive in batches with the columns of :attr:`Messages.read_of_each`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.connectors.messages.format_options import SETTINGS
from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.tables import TableColumn
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.messages.apart import Read, read_apart
from hintplan.runtime.connectors.messages.formats import bulk_reader, changes_decoder, row_decoder, rows_in_bulk
from hintplan.runtime.connectors.messages.json_columns import odd_messages
from hintplan.runtime.engine.marks import SPLIT
from hintplan.runtime.engine.row_order import ROW_ORDER
from hintplan.runtime.operator import DELETE, INSERT, KIND
from hintplan.runtime.types import to_arrow

if TYPE_CHECKING:
    from hintplan.runtime.engine.rows import Report

_KEY, _VALUE, _TOPIC, _PLACE = "key", "value", "topic", ("partition", "offset")


def beside(place: int) -> str:
    """Return the name of the METADATA column at ``place`` in a batch of messages."""
    return f"__metadata{place}"


Int64s = npt.NDArray[np.int64]
Places = Sequence[tuple[int, int]]
"""Pairs of positions: of a value in a row, and of the same value in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Converts the messages of ``table`` to rows with ``columns``; picklable.

    - ``upserts``: a message without a value deletes the row of its key.
    - ``changes``: rows have a row kind.
    - ``ordered``: rows have the columns of ``ROW_ORDER``.
    - ``splits``: rows have the column ``SPLIT``, with their topic and partition.
    - ``metadata``: the columns that come with the message, and not from its key or value.
    - ``topic``: the topic of all messages, or None if each message contains its own.
    """

    table: str
    columns: tuple[str, ...]
    key: Part | None
    value: Part
    upserts: bool
    changes: bool
    ordered: bool = False
    splits: bool = False
    metadata: tuple[TableColumn, ...] = ()
    topic: str | None = None

    @property
    def read_of_each(self) -> tuple[str, ...]:
        """The columns that are read of each message, except metadata; Spark needs time for every further column."""
        key = (_KEY,) if self._from_key else ()
        topic = (_TOPIC,) if self.topic is None else ()
        return (*key, _VALUE, *topic, *_PLACE)

    @property
    def _in_value(self) -> dict[str, int]:
        return {column.name: index for index, column in enumerate(self.value.columns)}

    @property
    def _from_key(self) -> Places:
        in_key = {column.name: index for index, column in enumerate(self.key.columns)} if self.key else {}
        # A column in both key and value is read from the value, except in upserts, where a message may have no value.
        return [
            (out, in_key[name])
            for out, name in enumerate(self.columns)
            if name in in_key and (self.upserts or name not in self._in_value)
        ]

    @property
    def _from_value(self) -> Places:
        in_value = self._in_value
        return [(out, in_value[name]) for out, name in enumerate(self.columns) if name in in_value]

    @property
    def _reads_nothing(self) -> bool:
        """True if a message without a value is a row with NULL."""
        return self.value.format == "raw" and not self.upserts

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows, with their row kind, their order and their split if they have these."""
        parts = (self.key.columns if self.key else (), self.value.columns, self.metadata)
        types = {column.name: to_arrow(column.type) for part in parts for column in part}
        fields = [pa.field(name, types[name]) for name in self.columns]
        kind = [pa.field(KIND, pa.int8())] if self.changes else []
        split = [pa.field(SPLIT, pa.string())] if self.splits else []
        return pa.schema([*fields, *kind, *(ROW_ORDER if self.ordered else ()), *split])

    def read(self, batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
        """Yield the rows of a task's messages, one table per batch; raise RunError for a message that does not fit."""
        in_bulk, by_row = self._bulk_reader(), self._row_reader()
        for batch in batches:
            tables = list(read_apart(batch, in_bulk, by_row, self._odd))
            if tables:
                yield pa.concat_tables(tables).combine_chunks() if len(tables) > 1 else tables[0]

    def _odd(self, batch: pa.RecordBatch) -> pa.Array | None:
        return odd_messages(self.value, frozenset(self.columns), batch.column(_VALUE))

    def _bulk_reader(self) -> Read:
        """Return a function that decodes a batch of plain messages, and returns None for any other batch."""
        from_key, from_value, wanted = self._from_key, self._from_value, frozenset(self.columns)
        read_value = bulk_reader(self.value, wanted)
        read_key = rows_in_bulk(self.key, wanted) if self.key is not None and from_key else None
        if read_value is None or (from_key and read_key is None):
            return lambda batch: None

        def read(batch: pa.RecordBatch) -> tuple[pa.Table, Int64s] | None:
            is_row = batch.column(_VALUE).is_valid()
            if self._reads_nothing and batch.column(_VALUE).null_count:
                return None
            taken = batch if self.upserts else batch.filter(is_row)
            changes = read_value(taken.column(_VALUE).drop_null())
            if changes is None:
                return None
            columns: list[Any] = [None] * len(self.columns)
            if self.upserts:
                positions, kinds = np.arange(taken.num_rows), pc.if_else(is_row, INSERT, DELETE)
            else:
                positions, kinds = changes.positions, changes.kinds
            if read_key is not None:
                keys = None if taken.column(_KEY).null_count else read_key(taken.column(_KEY))
                if keys is None:
                    return None
                for out, position in from_key:
                    columns[out] = keys[position].take(pa.array(positions))
            for out, position in from_value:
                column = changes.columns[position]
                columns[out] = _spread(column, is_row, columns[out]) if self.upserts else column
            table = self._table(columns, taken, positions, kinds)
            return table, positions if self.upserts else np.flatnonzero(np.asarray(is_row))[positions]

        return read

    def _row_reader(self) -> Read:
        """Return a function that decodes a batch message by message, and defines the meaning of all messages."""
        schema, wanted = self.schema, frozenset(self.columns)
        in_value, from_value, from_key = self._in_value, self._from_value, self._from_key
        decode_value = changes_decoder(self.value, wanted)
        decode_key = row_decoder(self.key, wanted) if self.key is not None and from_key else None

        def read(batch: pa.RecordBatch) -> tuple[pa.Table, Int64s] | None:
            messages = batch.column(_VALUE)
            numbers: list[int] = []
            rows: list[list[Any]] = []
            kinds: list[int] = []
            keys = batch.column(_KEY).to_pylist() if decode_key is not None else [None] * batch.num_rows
            for number, (key, value) in enumerate(zip(keys, messages.to_pylist(), strict=True)):
                part = "value"
                try:
                    if value is None and not self.upserts and not self._reads_nothing:
                        continue
                    if value is not None:
                        changes = decode_value(value)
                    else:
                        changes = ((DELETE if self.upserts else INSERT, [None] * len(in_value)),)
                    part, of_key = "key", None
                    if decode_key is not None:
                        if key is not None:
                            of_key = decode_key(key)
                        elif self.upserts:
                            raise ValueError("there is none, and rows replace each other by their key")
                except ValueError as error:
                    raise self._misfit(batch, number, part, str(error)) from None
                for kind, values in changes:
                    row: list[Any] = [None] * len(self.columns)
                    if of_key is not None:
                        for out, position in from_key:
                            row[out] = of_key[position]
                    if value is not None or not self.upserts:
                        for out, position in from_value:
                            row[out] = values[position]
                    rows.append(row)
                    kinds.append(kind)
                    numbers.append(number)
            if not rows:
                return None
            positions = np.array(numbers, np.int64)
            return self._table(_columns(rows, schema, len(self.columns)), batch, positions, kinds), positions

        return read

    def _table(self, columns: list[Any], batch: pa.RecordBatch, positions: Int64s, kinds: Any) -> pa.Table:
        """Return the rows with ``columns`` for the messages of ``batch`` at ``positions``."""
        taken = pa.array(positions)
        for index, column in enumerate(self.metadata):
            values = batch.column(beside(index)).take(taken)
            columns[self.columns.index(column.name)] = values.cast(self.schema.field(column.name).type)
        kind = [pa.array(kinds, pa.int8())] if self.changes else []
        order = self._order(batch, taken) if self.ordered else []
        split = [self._splits(batch, taken)] if self.splits else []
        return pa.table([*columns, *kind, *order, *split], schema=self.schema)

    def _order(self, batch: pa.RecordBatch, taken: pa.Array) -> list[pa.Array]:
        """Return the columns of ``ROW_ORDER``, equal within a partition, whose messages one task reads in order."""
        nothing = pa.array([0] * len(taken), pa.int64())
        return [nothing, self._splits(batch, taken), nothing]

    def _splits(self, batch: pa.RecordBatch, taken: pa.Array) -> pa.Array:
        """Return the topic and partition of the messages at the positions ``taken``."""
        partitions = pc.cast(batch.column(_PLACE[0]), pa.string())
        topics = pa.scalar(self.topic) if self.topic is not None else pc.cast(batch.column(_TOPIC), pa.string())
        return pc.binary_join_element_wise(topics, partitions, "/").take(taken)

    def _misfit(self, batch: pa.RecordBatch, number: int, part: str, problem: str) -> RunError:
        partition, offset = (batch.column(name)[number].as_py() for name in _PLACE)
        topic = self.topic if self.topic is not None else batch.column(_TOPIC)[number].as_py()
        name = (self.key if part == "key" and self.key else self.value).format
        lenient = f"{name}.ignore-parse-errors" in SETTINGS
        return RunError(
            f"table {self.table}: the {part} of the message at topic {topic}, partition {partition}, offset {offset} "
            f"does not fit its format, {name}, and the columns: {problem}",
            hint="correct the table" + (f", or set '{name}.ignore-parse-errors' = 'true'" if lenient else ""),
            path=f"tables.{self.table}",
        )


def _spread(column: pa.Array, is_row: pa.Array, otherwise: pa.Array | None) -> pa.Array:
    """Return the values of ``column`` at the places of ``is_row``, and ``otherwise`` or NULL at the others."""
    if len(column) == len(is_row):
        return column
    rows = np.asarray(is_row)
    spread = column.take(pa.array(np.cumsum(rows) - 1, mask=~rows))
    return spread if otherwise is None else pc.if_else(is_row, spread, otherwise)


def _columns(rows: Sequence[Sequence[Any]], schema: pa.Schema, count: int) -> list[pa.Array]:
    values = zip(*rows, strict=True) if count else ()
    return [pa.array(list(column), field.type) for column, field in zip(values, list(schema)[:count], strict=True)]

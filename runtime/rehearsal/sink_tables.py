"""The table that the changes of a sink leave, and the difference between two sets of rows.

A sink that upserts by its primary key has the last row of each key; any other sink has a multiset of rows. Rows are
compared as scripts would print them: floating-point numbers by 12 significant digits, maps without their order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hintplan.plans.connectors.table import is_upsert_sink
from hintplan.plans.declarations.row_kinds import ALL_KINDS
from hintplan.plans.declarations.tables import Column, Table, written_columns
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.netting import net
from hintplan.runtime.operator import KIND
from hintplan.runtime.results.json_values import json_value_of

PlainRow = tuple[Any, ...]
"""A row as JSON has its values, in the order of the columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainChanges:
    """Rows with their row kinds, in order."""

    kinds: tuple[str, ...]
    rows: tuple[PlainRow, ...]


@dataclass(slots=True)
class SinkTable:
    """The table of a sink, by the text of its rows; ``rows`` are all rows that ever were in it."""

    name: str
    table: Table
    count: Counter[str] = field(default_factory=Counter)
    known: dict[str, PlainRow] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[Column, ...]:
        return written_columns(self.table)

    def fold(self, changes: PlainChanges) -> None:
        """Apply ``changes``; RunError if they take back a row that is not there."""
        texts = [row_text(row) for row in changes.rows]
        self.known |= dict(zip(texts, changes.rows, strict=True))
        if is_upsert_sink(self.table) and self.table.primary_key:
            self._upsert(changes)
            return
        for text, kind in zip(texts, changes.kinds, strict=True):
            self.count[text] += 1 if kind in ("+I", "+U") else -1
        wrong = next((self.known[text] for text, number in self.count.items() if number < 0), None)
        if wrong is not None:
            raise RunError(
                f"the changes of '{self.name}' take back a row that is not there: {row_text(wrong)}",
                hint="a row of a source may retract what it never added",
            )
        self.count = +self.count

    def _upsert(self, changes: PlainChanges) -> None:
        key = [[column.name for column in self.columns].index(name) for name in self.table.primary_key]
        # Rows are lists of JSON values, which have no hash, so the texts of the values stand for them.
        rows = [tuple(json.dumps(value, sort_keys=True) for value in row) for row in changes.rows]
        netted = net(rows, [ALL_KINDS.index(kind) for kind in changes.kinds], key=key)
        gone = {*netted.deletes, *(tuple(row[place] for place in key) for row in netted.upserts)}
        for text in list(self.count):
            values = [json.dumps(value, sort_keys=True) for value in self.known[text]]
            if tuple(values[place] for place in key) in gone:
                del self.count[text]
        for row in netted.upserts:
            self.count[row_text(tuple(map(json.loads, row)))] += 1

    def rows(self) -> list[PlainRow]:
        """Return the rows of the table, in the order in which they came."""
        return [self.known[text] for text in self.count.elements()]


def plain_changes(changes: pa.Table, columns: Sequence[Column]) -> PlainChanges:
    """Return the changes of a sink as plain rows."""
    kinds = changes[KIND].to_pylist() if KIND in changes.column_names else [0] * changes.num_rows
    return PlainChanges(kinds=tuple(ALL_KINDS[kind] for kind in kinds), rows=tuple(plain_rows(changes, columns)))


def plain_rows(table: pa.Table, columns: Sequence[Column]) -> list[PlainRow]:
    """Return the rows of ``table`` as JSON has their values."""
    values = [
        [_plain(value, parse_type(column.type)) for value in table[column.name].to_pylist()] for column in columns
    ]
    return list(zip(*values, strict=True)) if values else [()] * table.num_rows


def row_text(row: PlainRow) -> str:
    """Return the text by which rows are equal."""
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


def _plain(value: Any, kind: DataType) -> Any:
    """Return a value as a file of tests has it: bytes as hexadecimal digits, any other as JSON has it."""
    if value is None:
        return None
    parts = kind.parts
    match kind.root:
        case "BYTES" | "BINARY" | "VARBINARY":
            return f"0x{value.hex()}"
        case "ARRAY":
            return [_plain(item, parts[0]) for item in value]
        case "ROW":
            return {name: _plain(value[name], part) for name, part in zip(kind.names, parts, strict=True)}
        case "MAP" | "MULTISET":
            entries = [[_plain(key, parts[0]), _plain(item, parts[1])] for key, item in value]
            return dict(entries) if parts[0].is_text else sorted(entries, key=json.dumps)
    plain = json_value_of(str(kind))(value)
    return float(f"{plain:.12g}") + 0.0 if isinstance(plain, float) else plain


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsDifference:
    """The missing rows, the unexpected rows, and the number of rows that agree."""

    missing: tuple[PlainRow, ...]
    extra: tuple[PlainRow, ...]
    same: int

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra)


def difference_of(expected: Sequence[PlainRow], came: Sequence[PlainRow]) -> RowsDifference:
    """Return the difference between two multisets of rows, in the order of the rows."""
    wanted, here = Counter(map(row_text, expected)), Counter(map(row_text, came))
    missing, extra = wanted - here, here - wanted
    return RowsDifference(
        missing=tuple(_of(expected, missing)), extra=tuple(_of(came, extra)), same=(wanted & here).total()
    )


def _of(rows: Sequence[PlainRow], texts: Counter[str]) -> list[PlainRow]:
    left = texts.copy()
    chosen = []
    for row in rows:
        text = row_text(row)
        if left[text] > 0:
            left[text] -= 1
            chosen.append(row)
    return chosen

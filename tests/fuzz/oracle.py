"""DuckDB as the oracle: what a query gives over the tables as they are in the end, and whether rows are the same.

Rows are compared as multisets. Numbers of type DOUBLE and FLOAT may differ by one part in 10**9: sums are made only of
values that add up exactly in any order, so that is what a division and the last digit of AVG need, nothing more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from hintplan.runtime.types import to_arrow
from tests.fuzz.data import FuzzTable, World
from tests.fuzz.expressions import MACROS

__all__ = ["Oracle", "difference"]

_TOLERANCE = 1e-9
Row = tuple[Any, ...]


class Oracle:
    """A database with the tables of ``world``."""

    def __init__(self, world: World) -> None:
        self._database = duckdb.connect(config={"threads": 1})
        for macro in MACROS:
            self._database.execute(macro)
        for table in world.tables:
            self._database.register("rows_of", _arrow(table))
            self._database.execute(f"CREATE TABLE {table.name} AS SELECT * FROM rows_of")
            self._database.unregister("rows_of")

    def rows(self, query: str) -> list[Row]:
        """The rows of ``query``; duckdb.Error if DuckDB refuses it."""
        return self._database.execute(query).fetchall()


def _arrow(table: FuzzTable) -> pa.Table:
    """Instants as timestamps in UTC: DuckDB prints and compares both alike."""
    columns = []
    for index, column in enumerate(table.columns):
        values = [_plain(row[index]) if isinstance(row[index], datetime) else row[index] for row in table.rows]
        wanted = to_arrow(column.type)
        columns.append(pa.array(values, pa.timestamp("us") if pa.types.is_timestamp(wanted) else wanted))
    return pa.table(columns, [column.name for column in table.columns])


def difference(found: Iterable[Row], expected: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that only ``found`` has, and those that only ``expected`` has."""
    ours, theirs = (Counter(tuple(map(_plain, row)) for row in rows) for rows in (found, expected))
    more, less = list((ours - theirs).elements()), list((theirs - ours).elements())
    for row in list(more):
        near = next((other for other in less if len(row) == len(other) and all(map(_near, row, other))), None)
        if near is not None:
            more.remove(row)
            less.remove(near)
    return more, less


def _near(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(a == b)


def _plain(value: Any) -> Any:
    """``value`` so that equal ones are equal, and hashable."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, Decimal):
        return value + 0 if value else Decimal(0)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, list) and all(isinstance(item, tuple) for item in value):
        # The entries of a map, which have no order, and the fields of a row, which always have the same.
        return tuple(sorted(((key, _plain(item)) for key, item in value), key=repr))
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return value

"""Calcs on rows that are in Arrow: columns are chosen and named, and rows filtered, without asking Spark.

Only what certainly means there what it means in SQL is done so: comparisons, and the day of a TIMESTAMP as text. Any
other calc is Spark's as a whole. Knows no DataFrames.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from plans.declarations.tables import Column
from plans.operators import Calc, SelectItem
from runtime.expressions.allowed import check_expression, quoted
from runtime.expressions.condition import compile_filter
from runtime.expressions.exact import is_exact
from runtime.kernels.pairs import JoinCondition
from runtime.types import to_arrow

__all__ = ["ArrowCalc", "calc_in_arrow"]

_DAY = re.compile(r"date_format ?\( ?(`.+`) ?, ?'yyyy-MM-dd' ?\)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A column as it is."""

    source: str

    def __call__(self, rows: pa.Table) -> pa.ChunkedArray:
        return rows[self.source]


@dataclass(frozen=True, slots=True)
class _Day:
    """The day of a TIMESTAMP as text, such as ``2024-02-29``."""

    source: str

    def __call__(self, rows: pa.Table) -> pa.ChunkedArray:
        return rows[self.source].cast(pa.date32()).cast(pa.string())


@dataclass(frozen=True, slots=True)
class _Truth:
    """Whether a condition holds: true, false or NULL."""

    condition: JoinCondition

    def __call__(self, rows: pa.Table) -> pa.Array:
        return self.condition.answers(rows.select([]), rows, rows.num_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowCalc:
    """A calc over tables: ``columns`` by the names they get, of rows for which ``condition`` holds."""

    columns: tuple[tuple[str, Callable[[pa.Table], pa.Array | pa.ChunkedArray]], ...]
    condition: JoinCondition | None

    def __call__(self, rows: pa.Table) -> pa.Table:
        if self.condition is not None:
            rows = rows.filter(pa.array(self.condition.holds(rows.select([]), rows, rows.num_rows)))
        return pa.table([value(rows) for _, value in self.columns], [name for name, _ in self.columns])


def calc_in_arrow(operator: Calc, columns: Sequence[Column], beside: Sequence[str]) -> ArrowCalc | None:
    """``operator`` over rows with ``columns`` and those ``beside`` them, which it passes on; None if Spark must do it.

    RunError for an expression that may not run.
    """
    schema = pa.schema([(column.name, to_arrow(column.type)) for column in columns])
    known: dict[tuple[str, ...], str] = {(name,): name for name in schema.names}
    path = f"operators.{operator.id}"

    def checked(text: str, where: str) -> str:
        return check_expression(text, known, operator=operator.id, path=f"{path}.{where}").sql

    values: list[tuple[str, Callable[[pa.Table], pa.Array | pa.ChunkedArray]]] = []
    for index, item in enumerate(operator.select):
        where = f"select[{index}].expression"
        sql = quoted(item.name) if item.expression is None else checked(item.expression, where)
        value = _value(item, sql, schema, f"{path}.{where}")
        if value is None:
            return None
        values.append((item.name, value))
    condition = None
    if operator.filter is not None:
        checked(operator.filter, "filter")
        if not is_exact(operator.filter, schema):
            return None
        condition = compile_filter(operator.filter, schema, path=f"{path}.filter")
    return ArrowCalc(columns=(*values, *((name, _Chosen(name)) for name in beside)), condition=condition)


def _value(item: SelectItem, sql: str, schema: pa.Schema, path: str) -> _Chosen | _Day | _Truth | None:
    """How ``item``, whose expression reads ``sql``, comes about in Arrow; None if only Spark can compute it."""
    columns = {quoted(name): name for name in schema.names}
    wanted = None if item.type is None else to_arrow(item.type)
    if sql in columns:
        source = columns[sql]
        return _Chosen(source) if wanted in (None, schema.field(source).type) else None
    day = _DAY.fullmatch(sql)
    if day is not None and day[1] in columns and wanted == pa.string():
        source = columns[day[1]]
        return _Day(source) if schema.field(source).type == pa.timestamp("us") else None
    if item.expression is not None and wanted == pa.bool_() and is_exact(item.expression, schema):
        return _Truth(compile_filter(item.expression, schema, path=path))
    return None

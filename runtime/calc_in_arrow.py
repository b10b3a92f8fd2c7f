"""Calcs on rows that are in Arrow: columns are chosen and named, and rows filtered, without asking Spark.

Only what certainly means there what it means in SQL; any other calc is Spark's. Knows no DataFrames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from plans.model import Calc, SelectItem
from plans.tables import Column
from runtime.expressions import check_expression, quoted
from runtime.kernels.pairs import JoinCondition
from runtime.operators.condition import compile_filter
from runtime.operators.exact import is_exact
from runtime.types import to_arrow

__all__ = ["ArrowCalc", "calc_in_arrow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowCalc:
    """A calc over tables: ``columns`` by the names they get, of rows for which ``condition`` holds."""

    columns: tuple[tuple[str, str], ...]
    condition: JoinCondition | None

    def __call__(self, rows: pa.Table) -> pa.Table:
        if self.condition is not None:
            rows = rows.filter(pa.array(self.condition.holds(rows.select([]), rows, rows.num_rows)))
        return pa.table([rows[source] for _, source in self.columns], [name for name, _ in self.columns])


def calc_in_arrow(operator: Calc, columns: Sequence[Column], beside: Sequence[str]) -> ArrowCalc | None:
    """``operator`` over rows with ``columns`` and those ``beside`` them, which it passes on; None if Spark must do it.

    RunError for an expression that may not run.
    """
    types = {column.name: column.type for column in columns}
    known: dict[tuple[str, ...], str] = {(name,): name for name in types}
    path = f"operators.{operator.id}"
    sources: list[tuple[str, str]] = []
    for index, item in enumerate(operator.select):
        source = _source(item, known, operator.id, f"{path}.select[{index}].expression")
        if source is None or (item.type is not None and to_arrow(item.type) != to_arrow(types[source])):
            return None
        sources.append((item.name, source))
    condition = None
    if operator.filter is not None:
        check_expression(operator.filter, known, operator=operator.id, path=f"{path}.filter")
        schema = pa.schema([(name, to_arrow(kind)) for name, kind in types.items()])
        if not is_exact(operator.filter, schema):
            return None
        condition = compile_filter(operator.filter, schema, path=f"{path}.filter")
    return ArrowCalc(columns=(*sources, *((name, name) for name in beside)), condition=condition)


def _source(item: SelectItem, known: dict[tuple[str, ...], str], operator: str, path: str) -> str | None:
    """The column that ``item`` is; None if it is computed."""
    if item.expression is None:
        return item.name
    checked = check_expression(item.expression, known, operator=operator, path=path)
    ((name,),) = checked.columns if len(checked.columns) == 1 and len(checked.columns[0]) == 1 else ((None,),)
    return name if name is not None and checked.sql == quoted(name) else None

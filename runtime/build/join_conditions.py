"""Conditions above an inner join that the join itself checks, so that pairs which fail them never leave it.

The planner puts into a join what is simple, and the rest of ON and WHERE into a calc above it: times that are at most
an interval apart, say. Where nothing else reads the join, it may check the comparisons among them as well. The calc
remains as it is, the plan too, and so does the state. Knows no DataFrames.

    narrowed(plan.operators, output_columns(plan))  # the same operators, some joins with a longer condition
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from plans.declarations.tables import Column
from plans.operators import Calc, Join, Operator
from runtime.expressions.allowed import check_expression
from runtime.expressions.exact import conjuncts, exact_below
from runtime.operators.schema import state_schema

__all__ = ["narrowed"]


def narrowed(operators: Sequence[Operator], columns: Mapping[str, tuple[Column, ...]]) -> tuple[Operator, ...]:
    """``operators`` to build; ``columns`` are the output columns of each. RunError for a filter that may not run."""
    readers = Counter(name for operator in operators for name in operator.inputs)
    above = {
        operator.inputs[0]: operator
        for operator in operators
        if isinstance(operator, Calc) and operator.filter is not None and readers[operator.inputs[0]] == 1
    }
    return tuple(
        _with(operator, above[operator.id], columns)
        if isinstance(operator, Join) and operator.join_type == "inner" and operator.id in above
        else operator
        for operator in operators
    )


def _with(join: Join, calc: Calc, columns: Mapping[str, tuple[Column, ...]]) -> Join:
    text = calc.filter or ""
    known: dict[tuple[str, ...], str] = {(column.name,): column.name for column in join.output}
    check_expression(text, known, operator=calc.id, path=f"operators.{calc.id}.filter")
    left, right = (state_schema(join.id, columns[source]) for source in join.inputs)
    found = exact_below(text, join.output, left, right)
    if found is None:
        return join
    if join.condition is None:
        return replace(join, condition=found)
    held = join.condition if len(conjuncts(join.condition)) > 1 else f"({join.condition})"
    return replace(join, condition=f"{held} AND {found}")

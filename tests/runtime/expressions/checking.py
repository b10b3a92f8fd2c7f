"""Expressions for tests, checked as a run checks them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from hintplan.plans.declarations.tables import Column
from hintplan.plans.operators import IntervalJoin, Join, Stateful, TemporalJoin, WindowJoin
from hintplan.runtime.builders.bound import state_schema
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.condition import compile_join_condition
from hintplan.runtime.kernels.pairs import JoinCondition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def checked_over(text: str, names: Iterable[str], path: str = "filter") -> CheckedExpression:
    """Check ``text`` over columns with these names."""
    return _checked(text, tuple((name,) for name in names), path)


def checked_over_sides(text: str, left: Iterable[str], right: Iterable[str], path: str = "filter") -> CheckedExpression:
    """Check ``text`` over columns ``l.<name>`` and ``r.<name>``."""
    columns = [("l", name) for name in left] + [("r", name) for name in right]
    return _checked(text, tuple(columns), path)


@cache
def _checked(text: str, columns: tuple[tuple[str, ...], ...], path: str) -> CheckedExpression:
    return check_expression(text, {column: "_".join(column) for column in columns}, operator="test", path=path)


def condition_of(operator: Stateful, inputs: Sequence[tuple[Column, ...]]) -> JoinCondition | None:
    """Compile the condition of ``operator``, if it is a join, over the columns of its inputs."""
    if not isinstance(operator, (Join, WindowJoin, IntervalJoin, TemporalJoin)):
        return None
    return compiled_condition(operator, *map(state_schema, inputs))


def compiled_condition(
    join: Join | WindowJoin | IntervalJoin | TemporalJoin, left: pa.Schema, right: pa.Schema
) -> JoinCondition | None:
    """Compile the condition of ``join``, if it has one."""
    if join.condition is None:
        return None
    path = f"operators.{join.id}.condition"
    return compile_join_condition(checked_over_sides(join.condition, left.names, right.names, path), left, right)

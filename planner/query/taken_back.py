"""Checks that user-defined aggregate functions can retract rows if their input does."""

from __future__ import annotations

from collections.abc import Iterable

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import AggregateCallExpr
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.relations import Relation
from hintplan.plans.declarations.computations import BUILT_IN


def check_taken_back(
    context: Context, calls: Iterable[AggregateCallExpr], rows: Relation, *, changing: bool = False
) -> None:
    """Raise SqlError at a call whose class has no ``retract`` if ``rows`` can change, or if ``changing`` is set."""
    if context.batch or (is_insert_only(rows) and not changing):
        return
    for call in calls:
        check_retracts(context, call.function, call.offset)


def check_retracts(context: Context, name: str, offset: int) -> None:
    """Raise SqlError at ``offset`` if ``name`` is a user-defined function whose class has no ``retract``."""
    if name in BUILT_IN:
        return
    function = context.catalog.functions[name].function
    if not function.retracts:
        raise context.source.error(
            f"rows that '{name}' aggregates can change, and {function.class_name} cannot take one back",
            offset,
            "define retract(self, accumulator, ...) in the class, or aggregate rows that are only added",
        )

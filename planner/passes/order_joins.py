"""Reorders inner joins so that each has an equality, if the order of the query has a join without one.

``FROM part, supplier, partsupp`` first joins two tables that only the third connects. The first table stays first. The
next table is always the first, in the order of the query, that has an equality with the tables before it. If all joins
have an equality, their order and ids remain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Expr, referenced_fields
from hintplan.planner.passes.compute_below import Side
from hintplan.planner.passes.extract_join_keys import equalities, is_single_row
from hintplan.planner.relations import (
    LogicalJoin,
    Relation,
    StateInput,
    UnnamedInput,
    identity,
    map_inputs,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """An input of a chain of joins, with its state and the offset of its join."""

    relation: Relation
    state: StateInput
    offset: int


def order_joins(context: Context, relation: Relation) -> Relation:
    """Reorder each chain of inner joins in which a join has no equality."""
    if isinstance(relation, LogicalJoin) and not _all_connected(context, relation):
        relation = _in_order(context, relation)
    return map_inputs(relation, lambda below: order_joins(context, below))


def _is_link(relation: Relation) -> bool:
    if not isinstance(relation, LogicalJoin) or relation.keyless or relation.as_of is not None:
        return False
    return relation.join_type == "inner"


def _all_connected(context: Context, relation: Relation) -> bool:
    """Return True if each join of the chain that ends in ``relation`` has an equality or needs none."""
    if not isinstance(relation, LogicalJoin) or not _is_link(relation):
        return True
    connected = _is_connected(context, relation.left, relation.right, relation.on)
    return connected and _all_connected(context, relation.left)


def _is_connected(context: Context, left: Relation, right: Relation, parts: tuple[Expr, ...]) -> bool:
    sides = Side(context, left), Side(context, right)
    return is_single_row(left) or is_single_row(right) or any(equalities(part, *sides) for part in parts)


def _chain(join: LogicalJoin) -> tuple[list[_Input], list[Expr]]:
    """Return the inputs of a chain of joins, in the order of the query, and all their conditions."""
    if isinstance(join.left, LogicalJoin) and _is_link(join.left):
        inputs, parts = _chain(join.left)
    else:
        inputs, parts = [_Input(relation=join.left, state=join.states[0], offset=join.offset)], []
    return [*inputs, _Input(relation=join.right, state=join.states[1], offset=join.offset)], [*parts, *join.on]


def _in_order(context: Context, join: LogicalJoin) -> LogicalJoin:
    (first, *waiting), parts = _chain(join)
    joined: Relation = first.relation
    state = first.state
    while waiting:
        chosen = next((i for i in waiting if _is_connected(context, joined, i.relation, tuple(parts))), waiting[0])
        waiting.remove(chosen)
        fields = (*joined.fields, *chosen.relation.fields)
        ids = {f.id for f in fields}
        on = tuple(part for part in parts if {f.id for f in referenced_fields(part)} <= ids)
        parts = [part for part in parts if part not in on]
        joined = LogicalJoin(
            left=joined,
            right=chosen.relation,
            join_type="inner",
            on=on,
            items=identity(fields),
            states=(state, chosen.state),
            offset=chosen.offset,
            base=(*joined.base, *chosen.relation.base),
            block=join.block,
        )
        state = UnnamedInput
    assert isinstance(joined, LogicalJoin)
    return replace(joined, base=join.base)

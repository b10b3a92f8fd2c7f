"""Regular joins."""

from __future__ import annotations

from hintplan.planner.lowering.builder import Builder
from hintplan.planner.lowering.columns import Lowered, join_columns, lowered, optional_text, unique_names
from hintplan.planner.relations import Join
from hintplan.plans import operators as model
from hintplan.plans.operators import JoinKey


def lower_join(builder: Builder, join: Join) -> Lowered:
    """Add the join, with a state for each side."""
    left, right = builder.lower(join.left), builder.lower(join.right)
    columns = unique_names(join.fields)
    states = ("leftState", join.states[0], left), ("rightState", join.states[1], right)
    operator = model.Join(
        id="",
        inputs=(left.id, right.id),
        join_type=join.join_type,
        keys=tuple(JoinKey(left=left.names[a.id], right=right.names[b.id]) for a, b in join.keys),
        condition=optional_text(join.condition, {**left.printed("l."), **right.printed("r.")}),
        output=join_columns(columns, join.items, left, right),
        changelog=(),
        state=builder.states(*states),
    )
    operator_id = builder.add(operator, "join", (*join.left.base, *join.right.base), join.block)
    builder.account(operator_id, *states)
    return lowered(operator_id, join.fields, columns)

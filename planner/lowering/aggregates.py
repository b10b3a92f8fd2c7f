"""Aggregates, and the copies of rows for their grouping sets. The keys have the names of the input's columns."""

from __future__ import annotations

from hintplan.planner.expressions.typed import FieldRef
from hintplan.planner.lowering.builder import Builder, name_above
from hintplan.planner.lowering.calcs import lower_renaming
from hintplan.planner.lowering.columns import Lowered, lowered, unique_names
from hintplan.planner.relations import AggregateItem, LogicalAggregate, LogicalExpand
from hintplan.plans import operators as model
from hintplan.plans.declarations.computations import BUILT_IN
from hintplan.plans.operators import AggregateCall


def lower_aggregate(builder: Builder, aggregate: LogicalAggregate, *, exact: bool) -> Lowered:
    """Add the aggregate, and a calc above it if its keys need other names."""
    source = builder.lower(aggregate.input)
    keys = tuple(source.names[k.id] for k in aggregate.keys)
    columns = unique_names(tuple(c.field for c in aggregate.calls), keys)
    state = ("groupAggregateState", aggregate.state, source)
    operator = model.Aggregate(
        id="",
        inputs=(source.id,),
        keys=keys,
        aggregates=tuple(
            lower_call(name, call, source) for name, call in zip(columns[len(keys) :], aggregate.calls, strict=True)
        ),
        changelog=(),
        state=builder.states(state),
    )
    operator_id = builder.add(operator, "aggregate", name_above(aggregate.input, aggregate.block), aggregate.block)
    builder.account(operator_id, state)
    result = lowered(operator_id, aggregate.fields, columns)
    wanted = unique_names(aggregate.fields)
    return lower_renaming(builder, result, aggregate, wanted) if exact and wanted != columns else result


def lower_call(name: str, call: AggregateItem, source: Lowered) -> AggregateCall:
    """Return the call of an aggregate function, whose result is the column ``name``."""
    is_users = call.function not in BUILT_IN
    names = tuple(source.names[a.id] for a in call.arguments)
    return AggregateCall(
        name=name,
        function=call.function,
        distinct=call.distinct,
        type=str(call.field.type),
        argument=None if is_users or not names else names[0],
        arguments=names if is_users else (),
        filter=None if call.filter is None else source.names[call.filter.id],
        separator=call.separator,
    )


def lower_expand(builder: Builder, expand: LogicalExpand) -> Lowered:
    """Add the expansion. Each key replaces the column of its value."""
    source = builder.lower(expand.input)
    keys = tuple(source.names[i.expr.field.id] for i in expand.keys if isinstance(i.expr, FieldRef))
    passed = tuple(source.names[f.id] for f in expand.passed)
    *_, group_id = unique_names((expand.group_id,), source.columns)
    operator = model.Expand(
        id="",
        inputs=(source.id,),
        keys=keys,
        sets=tuple(tuple(keys[place] for place in sorted(positions)) for positions in expand.sets),
        group_id=group_id,
    )
    operator_id = builder.add(operator, "expand", name_above(expand.input, expand.block), expand.block)
    names = lowered(operator_id, expand.fields, (*keys, *passed, group_id)).names
    return Lowered(id=operator_id, columns=(*source.columns, group_id), names=names)

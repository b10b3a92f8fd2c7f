"""Regular joins, and joins with lookups, with function calls, and with the elements of arrays and maps."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hintplan.planner.expressions.spark_text import to_spark_sql
from hintplan.planner.expressions.typed import Expr, FieldRef, Literal
from hintplan.planner.lowering.builder import Builder, name_above
from hintplan.planner.lowering.columns import Lowered, join_columns, lowered, optional_text, unique_names
from hintplan.planner.properties.repeated_reads import ReadOccurrence, readings_of
from hintplan.planner.relations import LogicalCorrelate, LogicalJoin, LogicalLookupJoin, LogicalLookupKey, LogicalUnnest
from hintplan.plans import operators as model
from hintplan.plans.declarations.built_in import DRAWN, numbered
from hintplan.plans.operators import JoinKey
from hintplan.plans.settings.calls import resolved_call


def lower_join(builder: Builder, join: LogicalJoin) -> Lowered:
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


def lower_lookup_join(builder: Builder, lookup: LogicalLookupJoin) -> Lowered:
    """Add the lookup join, and record the hint options that it applies."""
    source = builder.lower(lookup.input)
    columns = unique_names(lookup.fields)
    table = lowered("", lookup.fetched, tuple(f.name for f in lookup.fetched))
    operator = model.LookupJoin(
        id="",
        table=lookup.table,
        inputs=(source.id,),
        join_type=lookup.join_type,
        keys=tuple(_key(key, source) for key in lookup.keys),
        columns=table.columns,
        pre_filter=optional_text(lookup.pre_filter, source.printed()),
        filter=optional_text(lookup.filter, table.printed()),
        condition=optional_text(lookup.condition, {**source.printed("l."), **table.printed("r.")}),
        output=join_columns(columns, lookup.items, source, table),
        settings=lookup.settings,
    )
    operator_id = builder.add(operator, "lookup", (lookup.name,), lookup.block)
    for offset, setting in lookup.hinted:
        builder.ledger.applied(offset, f"{operator_id}.{setting}".rstrip("."))
    occurrence = ReadOccurrence(operator=operator_id, target=lookup.table, is_lookup=True, readings=readings_of(lookup))
    builder.record_occurrence(lookup.offset, occurrence)
    return lowered(operator_id, lookup.fields, columns)


def _key(key: LogicalLookupKey, source: Lowered) -> model.LookupKey:
    if isinstance(key.value, Literal):
        return model.LookupKey(column=key.column.name, constant=to_spark_sql(key.value, {}))
    return model.LookupKey(column=key.column.name, left=source.names[key.value.id])


def lower_correlate(builder: Builder, call: LogicalCorrelate) -> Lowered:
    """Add the call, with the settings that the configuration has for this kind of call."""
    source = builder.lower(call.input)
    columns = unique_names(call.fields)
    returned = lowered("", call.returned, tuple(f.name for f in call.returned))
    operator = model.Correlate(
        id="",
        inputs=(source.id,),
        function=call.function,
        join_type=call.join_type,
        arguments=tuple(_argument(a, source) for a in call.arguments),
        output=join_columns(columns, call.items, source, returned),
        settings=resolved_call(call.kind, builder.config),
    )
    if call.function in DRAWN:
        operator = _apart(builder, operator, call.offset)
    operator_id = builder.add(operator, "correlate", (call.function,), call.block)
    occurrence = ReadOccurrence(operator=operator_id, target=call.function, is_lookup=False, readings=readings_of(call))
    builder.record_occurrence(call.offset, occurrence)
    return lowered(operator_id, call.fields, columns)


def _apart(builder: Builder, operator: model.Correlate, offset: int) -> model.Correlate:
    """Return the call of a random function under a numbered name, which distinguishes it from equal calls elsewhere."""
    names = (numbered(operator.function, number) for number in itertools.count(1))
    candidates = (replace(operator, function=name) for name in names)
    return next(candidate for candidate in candidates if builder.is_written_at(candidate, offset))


def _argument(argument: Expr, source: Lowered) -> model.Argument:
    if isinstance(argument, FieldRef):
        return model.Argument(column=source.names[argument.field.id])
    return model.Argument(constant=to_spark_sql(argument, {}))


def lower_unnest(builder: Builder, unnest: LogicalUnnest) -> Lowered:
    """Add the operator. The right columns of its output have the names of the collection's element columns."""
    source = builder.lower(unnest.input)
    assert isinstance(unnest.collection, FieldRef)
    columns = unique_names(unnest.fields)
    offered = tuple(column.name for column in model.element_columns(unnest.collection.type))
    operator = model.Unnest(
        id="",
        inputs=(source.id,),
        column=source.names[unnest.collection.field.id],
        join_type=unnest.join_type,
        output=join_columns(columns, unnest.items, source, lowered("", unnest.returned, offered)),
    )
    operator_id = builder.add(operator, "unnest", name_above(unnest.input, unnest.block), unnest.block)
    return lowered(operator_id, unnest.fields, columns)

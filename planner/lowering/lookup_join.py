"""Lookup joins: their keys, conditions and settings."""

from __future__ import annotations

from hintplan.planner.expressions.spark_text import spark_text
from hintplan.planner.expressions.typed import Literal
from hintplan.planner.lowering.builder import Builder
from hintplan.planner.lowering.columns import Lowered, join_columns, lowered, optional_text, unique_names
from hintplan.planner.properties.repeated_reads import Asked, readings_of
from hintplan.planner.relations import LookupJoin, LookupKey
from hintplan.plans import operators as model


def lower_lookup_join(builder: Builder, lookup: LookupJoin) -> Lowered:
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
    asked = Asked(operator=operator_id, target=lookup.table, is_lookup=True, readings=readings_of(lookup))
    builder.ask(lookup.offset, asked)
    return lowered(operator_id, lookup.fields, columns)


def _key(key: LookupKey, source: Lowered) -> model.LookupKey:
    if isinstance(key.value, Literal):
        return model.LookupKey(column=key.column.name, constant=spark_text(key.value, {}))
    return model.LookupKey(column=key.column.name, left=source.names[key.value.id])

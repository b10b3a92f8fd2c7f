"""Calls of user-defined functions."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hintplan.planner.expressions.spark_text import spark_text
from hintplan.planner.expressions.typed import Expr, Ref
from hintplan.planner.lowering.builder import Builder
from hintplan.planner.lowering.columns import Lowered, join_columns, lowered, unique_names
from hintplan.planner.properties.repeated_reads import Asked, readings_of
from hintplan.planner.relations import Correlate
from hintplan.plans import operators as model
from hintplan.plans.declarations.built_in import DRAWN, numbered
from hintplan.plans.settings.calls import resolved_call


def lower_correlate(builder: Builder, call: Correlate) -> Lowered:
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
    asked = Asked(operator=operator_id, target=call.function, is_lookup=False, readings=readings_of(call))
    builder.ask(call.offset, asked)
    return lowered(operator_id, call.fields, columns)


def _apart(builder: Builder, operator: model.Correlate, offset: int) -> model.Correlate:
    """Return the call of a random function under a numbered name, which distinguishes it from equal calls elsewhere."""
    names = (numbered(operator.function, number) for number in itertools.count(1))
    candidates = (replace(operator, function=name) for name in names)
    return next(candidate for candidate in candidates if builder.is_written_at(candidate, offset))


def _argument(argument: Expr, source: Lowered) -> model.Argument:
    if isinstance(argument, Ref):
        return model.Argument(column=source.names[argument.field.id])
    return model.Argument(constant=spark_text(argument, {}))

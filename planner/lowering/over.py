"""Window functions of a batch job."""

from __future__ import annotations

from hintplan.planner.lowering.builder import Builder, name_above
from hintplan.planner.lowering.columns import Lowered, unique_names
from hintplan.planner.lowering.sort import sort_keys
from hintplan.planner.relations import Over
from hintplan.plans import operators as model


def lower_over(builder: Builder, over: Over, *, exact: bool) -> Lowered:
    """Add the over aggregate, which adds columns to its input. If no call is used, return the input."""
    source = builder.lower(over.input, exact=exact)
    if not over.calls:
        return source
    columns = unique_names(tuple(call.field for call in over.calls), source.columns)
    added = columns[len(source.columns) :]
    operator = model.OverAggregate(
        id="",
        inputs=(source.id,),
        key=tuple(source.names[field.id] for field in over.partition),
        order=sort_keys(source, over.order),
        frame=over.frame,
        calls=tuple(
            model.OverCall(
                name=name,
                function=call.function,
                argument=None if call.argument is None else source.names[call.argument.id],
                count=call.count,
                default=None if call.default is None else source.names[call.default.id],
                type=str(call.field.type),
            )
            for name, call in zip(added, over.calls, strict=True)
        ),
    )
    operator_id = builder.add(operator, "over", name_above(over.input, over.block), over.block)
    names = {**source.names, **{call.field.id: name for call, name in zip(over.calls, added, strict=True)}}
    return Lowered(id=operator_id, columns=columns, names=names)

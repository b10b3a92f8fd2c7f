"""Cached results: settings of the operator whose result is kept."""

from __future__ import annotations

from hintplan.planner.lowering.builder import Builder
from hintplan.planner.lowering.columns import Lowered
from hintplan.planner.relations import Cached
from hintplan.plans.model.optional_groups import with_group
from hintplan.plans.settings.cached import CACHED, ENABLED


def lower_cached(builder: Builder, cached: Cached) -> Lowered:
    """The operator of the result, with what was asked; one that others read uncached is the same operator."""
    source = builder.lower(cached.input, exact=True)
    if cached.noted is not None:
        builder.views[source.id] = cached.base[0]
    at = builder.places[source.id]
    operator = builder.operators[at]
    old = operator.settings.get(CACHED.name)
    enabled = CACHED.resolved(cached.asked).values[ENABLED]
    if cached.asked and (old is None or enabled or not old.values[ENABLED]):
        origin = {**(old.origin if old is not None else {}), **cached.asked}
        builder.operators[at] = with_group(operator, CACHED.name, CACHED.resolved(origin))
    for (layer, name), offset in cached.places.items():
        if layer == "hint":
            builder.ledger.applied(offset, f"{source.id}.cached.{name}")
        else:
            builder.ledger.statements[source.id, f"cached.{name}"] = offset
    return source

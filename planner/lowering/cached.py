"""Cached results: the settings of the operator whose result is cached."""

from __future__ import annotations

from hintplan.planner.lowering.builder import Builder
from hintplan.planner.lowering.columns import Lowered
from hintplan.planner.relations import Cached
from hintplan.plans.model.optional_groups import with_group
from hintplan.plans.settings.cached import CACHED, ENABLED


def lower_cached(builder: Builder, cached: Cached) -> Lowered:
    """Add the operator of the result, with its cache settings.

    The operator is the same for other readers that do not request a cache.
    """
    source = builder.lower(cached.input, exact=True)
    if cached.noted is not None:
        builder.views[source.id] = cached.base[0]
    position = builder.places[source.id]
    operator = builder.operators[position]
    old = operator.settings.get(CACHED.name)
    enabled = CACHED.resolved(cached.asked).values[ENABLED]
    if cached.asked and (old is None or enabled or not old.values[ENABLED]):
        origin = {**(old.origin if old is not None else {}), **cached.asked}
        builder.operators[position] = with_group(operator, CACHED.name, CACHED.resolved(origin))
    for (layer, name), offset in cached.places.items():
        if layer == "hint":
            builder.ledger.applied(offset, f"{source.id}.cached.{name}")
        else:
            builder.ledger.statements[source.id, f"cached.{name}"] = offset
    return source

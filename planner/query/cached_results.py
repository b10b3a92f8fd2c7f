"""Cuts a query into a cached part and the part that reads it, for CACHED hints and CACHE TABLE.

The cached part is compiled on its own, without its readers' columns and filters, so that all of them read one operator.
Caching is an error in streaming mode, because the result of a stream is never complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hintplan.planner.context import Context
from hintplan.planner.hints.cached import CACHED, CachedHint
from hintplan.planner.relations import LogicalCache, Relation
from hintplan.plans.model.config import SHARED_VIEWS
from hintplan.plans.settings.cached import CACHED as CACHED_GROUP
from hintplan.plans.settings.cached import ENABLED
from hintplan.plans.settings.setting import Value


def only_in_batch(context: Context, what: str, offset: int) -> None:
    """Raise SqlError in streaming mode; ``what`` is the construct that needs batch mode."""
    if not context.batch:
        message = f"{what}: results are cached in batch mode only, a stream's are never complete"
        advice = "remove it, or write SET 'execution.runtime-mode' = 'batch'"
        raise context.source.error(message, offset, advice)


def has_cached_hint(context: Context, select: int) -> bool:
    """Return True if a CACHED hint applies to the block whose SELECT is at ``select``."""
    return any(h.cached is not None for h in context.ledger.hints.after_select.get(select, ()))


def by_config(context: Context) -> bool:
    """Return True if the configuration caches every result that is read more than once."""
    return context.batch and context.config.get(CACHED_GROUP.settings[ENABLED].config or "") == "true"


def cached_table(context: Context, name: str, relation: Relation) -> Relation:
    """Cache ``relation``, the table or view ``name``, if a CACHE TABLE statement or the configuration requires it.

    If the configuration caches results with several readers, a view with several readers is cut off, too. A later step
    on the finished plan then decides whether to cache its operator.
    """
    statement = context.catalog.cached.get(name)
    if statement is not None and (
        statement.settings[ENABLED] or by_config(context) or isinstance(relation, LogicalCache)
    ):
        return _kept(relation, (name,), "statement", statement.settings, statement.places)
    if statement is None and name in context.shared_views and not isinstance(relation, LogicalCache):
        if context.batch:
            return _kept(relation, (name,), "statement", {}, {})
        return _shared(context, name, relation)
    return relation


def shares_views(context: Context) -> bool:
    """Return True if the configuration makes a stream compute a view once for all its readers."""
    return not context.batch and context.compiler.get(SHARED_VIEWS) == "true"


def _shared(context: Context, name: str, relation: Relation) -> Relation:
    """Make ``relation``, the view ``name``, one operator for all readers, unless a pass finds it cheap to recompute."""
    reads = context.view_reads.setdefault(name, set())
    input_, columns = replace(relation, base=(name,)), context.shared_views[name]
    return LogicalCache(
        input=input_, layers={}, offsets={}, columns=columns, read_columns=reads, base=(name,), block=relation.block
    )


def cached_block(context: Context, relation: Relation, select: int) -> Relation:
    """Cache ``relation``, the result of the block whose SELECT is at ``select``, if the block has a CACHED hint."""
    hints = [h.cached for h in context.ledger.hints.after_select.get(select, ()) if h.cached is not None]
    if not hints:
        return relation
    only_in_batch(context, CACHED, hints[0].offset)
    for hint in hints[1:]:
        _overridden(context, hint, hints[0])
    for loser, winner in hints[0].overridden.items():
        context.ledger.losers[loser] = ("overridden", f"at {context.source.where(winner)}")
    return _kept(relation, relation.base, "hint", hints[0].settings, hints[0].places)


def _kept(
    relation: Relation, base: tuple[str, ...], layer: str, settings: Mapping[str, Value], at: Mapping[str, int]
) -> Relation:
    offsets = {(layer, name): offset for name, offset in at.items()}
    if isinstance(relation, LogicalCache):
        return replace(relation, layers={**relation.layers, layer: settings}, offsets={**relation.offsets, **offsets})
    layers = {layer: settings} if settings else {}
    return LogicalCache(
        input=replace(relation, base=base), layers=layers, offsets=offsets, base=base, block=relation.block
    )


def _overridden(context: Context, loser: CachedHint, winner: CachedHint) -> None:
    place = context.source.where(winner.offset)
    for option in loser.options:
        context.ledger.losers.setdefault(option.offset, ("overridden", f"{CACHED} hint at {place}"))
    message = f"a second {CACHED} hint has no effect: the first, at {place}, wins as a whole"
    context.report.warn_of_hint(message, loser.offset, "remove one of them")

"""CACHE TABLE and UNCACHE TABLE: what they do to the catalog.

The statements are Spark's. Both are about what follows in the script, and nothing runs before a job needs it.
"""

from __future__ import annotations

from hintplan.planner.catalog import declare_view
from hintplan.planner.context import CachedTable, Context
from hintplan.planner.query.cached_results import only_in_batch
from hintplan.planner.statements.model import CacheTable, CreateView, UncacheTable
from hintplan.plans.settings.cached import ENABLED, STORAGE_LEVEL
from hintplan.plans.settings.setting import Value
from hintplan.plans.text.names import did_you_mean


def cache_table(context: Context, statement: CacheTable) -> bool:
    """Let what follows read a table or view as a cached result; a query declares the view first."""
    only_in_batch(context, "CACHE TABLE", statement.statement_offset)
    name, catalog = statement.name, context.catalog
    if statement.query is not None:
        declare_view(
            context,
            CreateView(
                name=name,
                offset=statement.offset,
                temporary=True,
                columns=(),
                query=statement.query,
                if_not_exists=False,
            ),
        )
    _check_declared(context, name, statement.offset)
    said: dict[str, Value] = {ENABLED: True}
    places = {ENABLED: statement.statement_offset}
    if statement.storage_level is not None:
        said[STORAGE_LEVEL] = statement.storage_level
        places[STORAGE_LEVEL] = statement.level_offset
    known = catalog.cached.get(name)
    if known is not None and known.settings[ENABLED]:
        context.report.warn(
            f"CACHE TABLE has no effect: '{name}' is cached already",
            statement.statement_offset,
            f"UNCACHE TABLE {name} first",
        )
        return False
    catalog.cached[name] = CachedTable(settings=said, places=places)
    return True


def uncache_table(context: Context, statement: UncacheTable) -> bool:
    """Let what follows read a table or view without a cached result, also where a hint asks for one."""
    only_in_batch(context, "UNCACHE TABLE", statement.statement_offset)
    name = statement.name
    if statement.if_exists and name not in context.catalog.names():
        return False
    _check_declared(context, name, statement.offset)
    context.catalog.cached[name] = CachedTable(settings={ENABLED: False}, places={ENABLED: statement.statement_offset})
    return True


def _check_declared(context: Context, name: str, offset: int) -> None:
    known = context.catalog.names()
    if name not in known:
        advice = did_you_mean(name, known, what="declared")
        raise context.source.error(f"unknown table or view '{name}'", offset, advice)

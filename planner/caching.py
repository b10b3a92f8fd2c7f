"""The effect of CACHE TABLE and UNCACHE TABLE on the catalog.

The statements are Spark's. Both affect only the statements that follow, and nothing runs before a job needs it.
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
    """Cache a table or view for the statements that follow. Return False if it is cached already.

    A statement with a query declares the view first.
    """
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
    settings: dict[str, Value] = {ENABLED: True}
    places = {ENABLED: statement.statement_offset}
    if statement.storage_level is not None:
        settings[STORAGE_LEVEL] = statement.storage_level
        places[STORAGE_LEVEL] = statement.level_offset
    previous = catalog.cached.get(name)
    if previous is not None and previous.settings[ENABLED]:
        context.report.warn(
            f"CACHE TABLE has no effect: '{name}' is cached already",
            statement.statement_offset,
            f"UNCACHE TABLE {name} first",
        )
        return False
    catalog.cached[name] = CachedTable(settings=settings, places=places)
    return True


def uncache_table(context: Context, statement: UncacheTable) -> bool:
    """Read a table or view without a cached result in the statements that follow, even if a hint requests one.

    Return False if it does not exist and IF EXISTS is set.
    """
    only_in_batch(context, "UNCACHE TABLE", statement.statement_offset)
    name = statement.name
    if statement.if_exists and name not in context.catalog.names():
        return False
    _check_declared(context, name, statement.offset)
    context.catalog.cached[name] = CachedTable(settings={ENABLED: False}, places={ENABLED: statement.statement_offset})
    return True


def _check_declared(context: Context, name: str, offset: int) -> None:
    names = context.catalog.names()
    if name not in names:
        advice = did_you_mean(name, names, what="declared")
        raise context.source.error(f"unknown table or view '{name}'", offset, advice)

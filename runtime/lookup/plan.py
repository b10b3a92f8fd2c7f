"""The driver's translation of a lookup join in a plan into the data for workers (:mod:`hintplan.runtime.lookup.spec`).

It refuses what could only fail later: classes and hosts that are not allowed, unknown time zones, keys that cannot be
compared. ``plans`` has checked before that the plan is valid. This module knows no Spark.
"""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from hintplan.plans.connectors.table import is_looked_up_by_users_code
from hintplan.plans.declarations.computations import LookupMode
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.tables import Column, Table
from hintplan.plans.errors import RunError
from hintplan.plans.operators import LookupJoin
from hintplan.runtime.classes import load_class
from hintplan.runtime.lookup.api import CacheReloadTrigger, LookupCache, LookupContext
from hintplan.runtime.lookup.join import LookupRows
from hintplan.runtime.lookup.request import FetchPolicy
from hintplan.runtime.lookup.source import LookupSource
from hintplan.runtime.lookup.spec import CacheSpec, LookupSpec
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.types import to_arrow

_PARTIAL = "lookup.partial-cache."
_FULL = "lookup.full-cache."


def fetched_columns(op: LookupJoin, table: Table) -> tuple[Column, ...]:
    """Return the columns that the lookup fetches, in its order."""
    types = {column.name: column.type for column in table.columns}
    return tuple(Column(name=name, type=types[name]) for name in op.columns)


def lookup_keys(op: LookupJoin, table: Table) -> tuple[Column, ...]:
    """Return the columns of the table that form the key; RunError if one cannot be compared."""
    types = {column.name: column.type for column in table.columns}
    keys = tuple(Column(name=key.column, type=types[key.column]) for key in op.keys)
    for key in keys:
        if pa.types.is_nested(to_arrow(key.type)):
            raise RunError(
                f"column {key.name!r} of type {key.type} cannot be a lookup key",
                path=f"operators.{op.id}.keys",
                hint="look up by columns of plain types",
            )
    return keys


def lookup_spec(op: LookupJoin, table: Table, source: LookupSource, rows: LookupRows, run: RequestRun) -> LookupSpec:
    """Bind ``op`` to its table, settings and run; RunError for classes or time zones that cannot be used."""
    cache = _cache(op, run)
    context = LookupContext(
        table=op.table,
        options=dict(table.options),
        keys=lookup_keys(op, table),
        columns=fetched_columns(op, table),
        declared=tuple(Column(name=c.name, type=c.type) for c in table.columns if c.is_physical),
        allowed_modules=run.allowed_modules,
        allowed_paths=run.allowed_paths,
    )
    _check_classes(op, cache, run)
    inline = op.retry is not None and op.retry.mode == "inline" and cache.kind != "FULL"
    policy = FetchPolicy(
        operator=op.id,
        table=op.table,
        capacity=op.async_.capacity,
        timeout=parse_duration(op.async_.timeout),
        ordered=op.async_.output_mode == "ordered",
        max_attempts=op.retry.max_attempts if op.retry is not None and inline else 0,
        delay=parse_duration(op.retry.fixed_delay) if op.retry is not None and inline else 0,
        caches_misses=inline or op.retry is None,
        retries=int(op.cache.values.get("lookup.max-retries", 3)),
        declared=context.columns if is_looked_up_by_users_code(table) else (),
    )
    mode: LookupMode = "async" if op.async_.enabled else "sync"
    mode = "full" if cache.kind == "FULL" else mode
    source.check(mode, context)
    return LookupSpec(
        run=run.token,
        source=source,
        mode=mode,
        context=context,
        policy=policy,
        cache=cache,
        rows=rows,
    )


def _cache(op: LookupJoin, run: RequestRun) -> CacheSpec:
    values: Any = op.cache.values

    def duration(name: str) -> int | None:
        return parse_duration(values[name]) if name in values else None

    spec = CacheSpec(
        kind=values["lookup.cache"],
        max_rows=values.get(f"{_PARTIAL}max-rows"),
        expire_after_access=duration(f"{_PARTIAL}expire-after-access"),
        expire_after_write=duration(f"{_PARTIAL}expire-after-write"),
        cache_missing_key=values.get(f"{_PARTIAL}cache-missing-key", True),
        cache_class=values.get(f"{_PARTIAL}class"),
        reload=values.get(f"{_FULL}reload-strategy", "PERIODIC"),
        interval=duration(f"{_FULL}periodic-reload.interval"),
        schedule_mode=values.get(f"{_FULL}periodic-reload.schedule-mode", "FIXED_DELAY"),
        iso_time=values.get(f"{_FULL}timed-reload.iso-time"),
        interval_in_days=values.get(f"{_FULL}timed-reload.interval-in-days", 1),
        trigger_class=values.get(f"{_FULL}custom-reload.class"),
        time_zone=run.time_zone,
    )
    if spec.kind == "FULL" and spec.reload == "TIMED":
        try:
            ZoneInfo(run.time_zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise RunError(
                f"the reload time of {op.id} is in the time zone {run.time_zone!r}, which is unknown",
                path="config.table.local-time-zone",
                hint="use a name such as 'Europe/Berlin'",
            ) from error
    return spec


def _check_classes(op: LookupJoin, cache: CacheSpec, run: RequestRun) -> None:
    """Load the classes of the plan on the driver, where an error appears before anything starts."""
    path = f"operators.{op.id}.cache"
    if cache.cache_class is not None:
        load_class(cache.cache_class, run.allowed_modules, LookupCache, path=f"{path}.{_PARTIAL}class")
    if cache.trigger_class is not None:
        load_class(
            cache.trigger_class, run.allowed_modules, CacheReloadTrigger, path=f"{path}.{_FULL}custom-reload.class"
        )

"""A lookup join in words: what it does, with which settings, and how long a row may wait.

>>> retry = RetrySettings(predicate="lookup_miss", strategy="fixed_delay", fixed_delay="10 s", max_attempts=3,
...     mode="inline", origin={})
>>> wait_of(retry, timeout="5 min")
'a row that finds nothing waits up to 30 s'
"""

from __future__ import annotations

from collections.abc import Iterator

from plans.declarations.durations import format_duration, parse_duration
from plans.operators import LookupJoin
from plans.settings.groups import RetrySettings
from plans.settings.layers import Settings
from plans.settings.lookup import CACHE
from plans.settings.text import labelled, marked
from plans.settings.values import shown

__all__ = ["describe_lookup", "lookup_parts", "wait_of"]

_SHORT = ("lookup.partial-cache.", "lookup.full-cache.periodic-reload.", "lookup.full-cache.timed-reload.")


def describe_lookup(lookup: LookupJoin, connector: str) -> str:
    """What the lookup does, in the words of SQL."""
    conditions = [f"{key.column} = {key.left if key.left is not None else key.constant}" for key in lookup.keys]
    conditions += [text for text in (lookup.pre_filter, lookup.filter, lookup.condition) if text is not None]
    kind = "LEFT " if lookup.join_type == "left" else ""
    return f"{kind}LOOKUP JOIN {lookup.table} ({connector}) ON {' AND '.join(conditions)}"


def lookup_parts(lookup: LookupJoin, group: str, settings: Settings) -> Iterator[str]:
    """The settings of a group one by one, and what they amount to."""
    values = dict(settings.values)
    if group == "async":
        yield marked(settings, "enabled", "async" if values.pop("enabled") else "sync")
    elif group == "retry":
        values.pop("retry-strategy")
    for name in values:
        if name == CACHE or name == "retry-predicate":
            yield marked(settings, name, shown(values[name]))
        else:
            yield labelled(settings, name, short=_short(name))
    if group == "retry" and lookup.retry is not None:
        if lookup.retry.mode == "deferred":
            yield f"{wait_of(lookup.retry)} in state, which no TTL cuts short"
        else:
            yield wait_of(lookup.retry, timeout=lookup.async_.timeout if lookup.async_.enabled else None)


def _short(name: str) -> str:
    for prefix in _SHORT:
        name = name.removeprefix(prefix)
    return name.removeprefix("lookup.full-cache.").removeprefix("lookup.")


def wait_of(retry: RetrySettings, *, timeout: str | None = None) -> str:
    """How long a row that finds nothing may wait for its last attempt; ``timeout`` is what its attempts may take.

    A synchronous lookup has no timeout, and a deferred one counts that of each attempt alone.
    """
    longest, limit = retry.max_attempts * parse_duration(retry.fixed_delay), parse_duration(timeout or "0 ms")
    waits = f"a row that finds nothing waits up to {format_duration(longest)}"
    if limit and longest >= limit:
        return f"{waits}, but fails the job after its timeout, {format_duration(limit)}"
    return waits

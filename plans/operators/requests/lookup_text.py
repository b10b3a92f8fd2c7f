"""Describes the settings of a lookup join, and the longest time that a row without a match waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.lookup import CACHE
from hintplan.plans.settings.setting import value_text
from hintplan.plans.settings.text import setting_text, with_layers_text
from hintplan.plans.settings.views import AsyncSettings, RetrySettings, settings_view

_SHORT = ("lookup.partial-cache.", "lookup.full-cache.periodic-reload.", "lookup.full-cache.timed-reload.")


def settings_text(settings: Mapping[str, Settings], group: str) -> Iterator[str]:
    """Yield the settings of a group one by one, and for retries how long a row may wait."""
    values = dict(settings[group].values)
    if group == "async":
        yield with_layers_text(settings[group], "enabled", "async" if values.pop("enabled") else "sync")
    elif group == "retry":
        values.pop("retry-strategy")
    for name in values:
        if name == CACHE or name == "retry-predicate":
            yield with_layers_text(settings[group], name, value_text(values[name]))
        else:
            yield setting_text(settings[group], name, short=_short(name))
    if group == "retry":
        retry = settings_view(RetrySettings, settings[group].values)
        waits = settings_view(AsyncSettings, settings["async"].values)
        if retry.mode == "deferred":
            yield f"{wait_of(retry)} in state, which no TTL cuts short"
        else:
            yield wait_of(retry, timeout=waits.timeout if waits.enabled else None)


def _short(name: str) -> str:
    for prefix in _SHORT:
        name = name.removeprefix(prefix)
    return name.removeprefix("lookup.full-cache.").removeprefix("lookup.")


def wait_of(retry: RetrySettings, *, timeout: str | None = None) -> str:
    """Describe how long a row without a match may wait for its last attempt; ``timeout`` covers all its attempts.

    A synchronous lookup has no timeout. In a deferred lookup, the timeout covers each attempt alone.

    >>> wait_of(RetrySettings(fixed_delay="10 s", max_attempts=3, mode="inline"), timeout="5 min")
    'a row that finds nothing waits up to 30 s'
    """
    longest, limit = retry.max_attempts * parse_duration(retry.fixed_delay), parse_duration(timeout or "0 ms")
    waits = f"a row that finds nothing waits up to {format_duration(longest)}"
    if limit and longest >= limit:
        return f"{waits}, but fails the job after its timeout, {format_duration(limit)}"
    return waits

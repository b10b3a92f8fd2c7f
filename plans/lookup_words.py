"""A lookup join in words: what it does, with which settings, who set them, and how long a row may wait.

>>> retry = RetrySettings(predicate="lookup_miss", strategy="fixed_delay", fixed_delay="10 s", max_attempts=3,
...     mode="inline", origin={})
>>> wait_of(retry, timeout="5 min")
'a row that finds nothing waits up to 30 s'
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plans.durations import format_duration, parse_duration
from plans.lookup_document import LOOKUP_LAYERS, Settings, settings_of
from plans.lookup_layers import EDIT, set_by
from plans.lookup_settings import CACHE, GROUPS, Group, shown
from plans.model import LookupJoin, RetrySettings

__all__ = ["describe_lookup", "group_lines", "retry_text", "settings_json", "wait_of", "who_set_setting"]

_SHORT = ("lookup.partial-cache.", "lookup.full-cache.periodic-reload.", "lookup.full-cache.timed-reload.")


def describe_lookup(lookup: LookupJoin, connector: str) -> str:
    """What the lookup does, in the words of SQL."""
    conditions = [f"{key.column} = {key.left if key.left is not None else key.constant}" for key in lookup.keys]
    conditions += [text for text in (lookup.pre_filter, lookup.filter, lookup.condition) if text is not None]
    kind = "LEFT " if lookup.join_type == "left" else ""
    return f"{kind}LOOKUP JOIN {lookup.table} ({connector}) ON {' AND '.join(conditions)}"


def group_lines(lookup: LookupJoin) -> Iterator[tuple[Group, str, bool]]:
    """Each group of settings, its line, and whether an edit is in it."""
    groups = settings_of(lookup)
    for group in GROUPS:
        settings = groups.get(group)
        if settings is None:
            yield group, "off", False
            continue
        edited = any(set_by(group, settings, name) == EDIT for name in settings.values)
        yield group, " · ".join(_parts(lookup, group, settings)), edited


def _parts(lookup: LookupJoin, group: Group, settings: Settings) -> Iterator[str]:
    values = dict(settings.values)
    if group == "async":
        yield ("async" if values.pop("enabled") else "sync") + _marked(group, settings, "enabled")
    elif group == "retry":
        values.pop("retry-strategy")
    for name in values:
        if name == CACHE or name == "retry-predicate":
            yield shown(values[name]) + _marked(group, settings, name)
        else:
            yield f"{_short(name)} {shown(values[name])}{_marked(group, settings, name)}"
    if group == "retry" and lookup.retry is not None:
        if lookup.retry.mode == "deferred":
            yield f"{wait_of(lookup.retry)} in state, which no TTL cuts short"
        else:
            yield wait_of(lookup.retry, timeout=lookup.async_.timeout if lookup.async_.enabled else None)


def _short(name: str) -> str:
    for prefix in _SHORT:
        name = name.removeprefix(prefix)
    return name.removeprefix("lookup.full-cache.").removeprefix("lookup.")


def _marked(group: Group, settings: Settings, name: str) -> str:
    """Who set it, in parentheses; nothing for a built-in default."""
    text = who_set_setting(group, settings, name)
    return "" if text == "default" else f" ({text})"


def who_set_setting(group: Group, settings: Settings, name: str) -> str:
    """Who set a setting, then what the weaker layers said, such as ``edit · hint 50 · config 20``."""
    by = set_by(group, settings, name)
    parts = [by]
    for layer in reversed(LOOKUP_LAYERS):
        if layer != by and name in settings.origin.get(layer, {}):
            parts.append(f"{layer} {shown(settings.origin[layer][name])}")
    return " · ".join(parts)


def settings_json(lookup: LookupJoin) -> list[dict[str, Any]]:
    """Every setting with its value, who set it, and what each layer said, as JSON values."""
    return [
        {
            "setting": f"{group}.{name}",
            "value": value,
            "set-by": set_by(group, settings, name),
            "origin": {layer: said[name] for layer, said in settings.origin.items() if name in said},
        }
        for group, settings in settings_of(lookup).items()
        for name, value in settings.values.items()
    ]


def retry_text(lookup: LookupJoin) -> str | None:
    """The attempts and the delay, as an edit writes them; None if the lookup does not retry."""
    return None if lookup.retry is None else f"{lookup.retry.max_attempts} x {lookup.retry.fixed_delay}"


def wait_of(retry: RetrySettings, *, timeout: str | None = None) -> str:
    """How long a row that finds nothing may wait for its last attempt; ``timeout`` is what its attempts may take.

    A synchronous lookup has no timeout, and a deferred one counts that of each attempt alone.
    """
    longest, limit = retry.max_attempts * parse_duration(retry.fixed_delay), parse_duration(timeout or "0 ms")
    waits = f"a row that finds nothing waits up to {format_duration(longest)}"
    if limit and longest >= limit:
        return f"{waits}, but fails the job after its timeout, {format_duration(limit)}"
    return waits

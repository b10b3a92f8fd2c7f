"""Checks cache settings against each other: which apply to the chosen ``lookup.cache`` and reload strategy (FLIP-221).

>>> [message for _, message, _ in cache_problems({"lookup.cache": "FULL", "lookup.max-retries": 3}, ("full",))][-1]
"'lookup.cache' FULL needs 'lookup.full-cache.periodic-reload.interval'"
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from hintplan.plans.settings.lookup import CACHE, FULL, PARTIAL, SETTINGS
from hintplan.plans.settings.setting import Value

STRATEGY = f"{FULL}reload-strategy"
_OF_STRATEGY = {
    "PERIODIC": f"{FULL}periodic-reload.",
    "TIMED": f"{FULL}timed-reload.",
    "CUSTOM": f"{FULL}custom-reload.",
}
_EVICTIONS = tuple(f"{PARTIAL}{name}" for name in ("expire-after-access", "expire-after-write", "max-rows"))


def applicable(values: Mapping[str, Value]) -> tuple[str, ...]:
    """Return the cache settings that apply to the chosen ``lookup.cache`` and reload strategy, in plan order."""
    cache, strategy = values[CACHE], str(values.get(STRATEGY, SETTINGS["cache"][STRATEGY].default))
    prefixes = {"NONE": (), "PARTIAL": (PARTIAL,), "FULL": (STRATEGY, _OF_STRATEGY.get(strategy, FULL))}[str(cache)]
    return tuple(
        name for name in SETTINGS["cache"] if name in (CACHE, "lookup.max-retries") or name.startswith(prefixes)
    )


def cache_problems(values: Mapping[str, Value], modes: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the problems of a combination of cache settings: the setting, the message, and a remedy."""
    cache = values[CACHE]
    names = applicable(values)
    for name in values:
        if name not in names:
            yield name, f"'{name}' is set, but '{CACHE}' is {_mode(values)}", cache_setting_hint(name)
    for name in names:
        spec = SETTINGS["cache"][name]
        if name not in values and spec.default is not None:
            yield (
                name,
                f"'{name}' is missing, which goes with '{CACHE}' {_mode(values)}",
                f"its default is {spec.default}",
            )
    if cache == "FULL" and "full" not in modes:
        hint = "use 'lookup.cache' = 'PARTIAL'" if modes else "look up in another table"
        yield CACHE, "the table's connector cannot read the whole table, which 'lookup.cache' FULL does", hint
    if cache != "FULL" and not {"sync", "async"} & set(modes):
        hint = "use 'lookup.cache' = 'FULL' with 'lookup.full-cache.periodic-reload.interval' = '10 min'"
        yield CACHE, f"the table's connector cannot look up keys, which 'lookup.cache' {cache} needs", hint
    if cache == "PARTIAL" and not any(name in values for name in (*_EVICTIONS, f"{PARTIAL}class")):
        missing = "', '".join(_EVICTIONS)
        message = f"the cache would never drop anything and grow without end: set one of '{missing}'"
        yield CACHE, message, f"such as '{PARTIAL}max-rows' = '10000'"
    if cache == "FULL":
        needed, example = {
            "PERIODIC": (f"{FULL}periodic-reload.interval", "10 min"),
            "TIMED": (f"{FULL}timed-reload.iso-time", "03:00Z"),
            "CUSTOM": (f"{FULL}custom-reload.class", "my_package.triggers.OnDemand"),
        }[str(values.get(STRATEGY, "PERIODIC"))]
        if needed not in values:
            yield CACHE, f"'lookup.cache' FULL needs '{needed}'", f"such as '{needed}' = '{example}'"


def _mode(values: Mapping[str, Value]) -> str:
    strategy = values.get(STRATEGY)
    return f"{values[CACHE]}" + (f" and '{STRATEGY}' is {strategy}" if values[CACHE] == "FULL" and strategy else "")


def cache_setting_hint(name: str) -> str:
    """Return the remedy for a setting that does not apply to the chosen cache or reload strategy."""
    if name.startswith(PARTIAL):
        return f"remove it, or write '{CACHE}' = 'PARTIAL'"
    strategy = next((s for s, prefix in _OF_STRATEGY.items() if name.startswith(prefix)), None)
    more = f" and '{STRATEGY}' = '{strategy}'" if strategy is not None else ""
    return f"remove it, or write '{CACHE}' = 'FULL'{more}"

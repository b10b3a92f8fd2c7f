"""Resolves the settings of a lookup from their layers: default < config < table (WITH) < hint < plan edit.

The planner and every edit resolve the layers here, so that a plan can be checked against its config and tables. A
setting that the source does not support is left out and recorded. Contradictory settings are a :class:`Contradiction`.
Knows neither SQL nor files.

>>> layers = {"table": {"lookup.cache": "PARTIAL", "lookup.partial-cache.max-rows": 10}}
>>> dict(layered_cache(layers).origin["default"])
{'lookup.partial-cache.cache-missing-key': True, 'lookup.max-retries': 3}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from hintplan.plans.frozen import frozen
from hintplan.plans.settings.layers import EDIT, RANKS, SETTING_LAYERS, Settings, layered, top_layer
from hintplan.plans.settings.lookup import CACHE, FULL, SETTINGS
from hintplan.plans.settings.lookup_cache import STRATEGY, applicable, cache_problems, cache_setting_hint
from hintplan.plans.settings.setting import Layers, Value


class Contradiction(ValueError):
    """Incompatible settings; ``layer`` and ``name`` identify the setting at fault if it is present."""

    def __init__(self, message: str, *, hint: str, layer: str | None = None, name: str = CACHE) -> None:
        super().__init__(message)
        self.hint = hint
        self.layer = layer
        self.name = name


@frozen
class IgnoredSetting:
    """A setting of a layer that has no effect, and the reason."""

    group: str
    layer: str
    name: str
    reason: str


@frozen
class ResolvedLookup:
    """The groups of settings that the layers amount to, and the settings without effect.

    There is no group ``retry`` if the lookup does not retry.
    """

    groups: Mapping[str, Settings]
    unmet: tuple[IgnoredSetting, ...]


def resolve_lookup(
    asked: Mapping[str, Layers],
    modes: Collection[str],
    *,
    insert_only: bool,
    parks: bool = True,
    strict: bool = True,
) -> ResolvedLookup:
    """Return the settings that the layers in ``asked``, by group, amount to for a source.

    The source supports lookups in ``modes``. ``insert_only`` is true if the input is insert-only; otherwise an update
    must not overtake the row that it updates. ``parks`` is true if there is state in which rows can wait, which a batch
    job lacks. If ``strict``, raise Contradiction for incompatible cache settings.
    """
    cache = layered_cache(asked.get("cache", {}), strict=strict)
    for name, message, hint in cache_problems(cache.values, modes) if strict else ():
        raise Contradiction(message, hint=hint, name=name, layer=top_layer(cache, name))
    full = cache.values[CACHE] == "FULL"
    unmet: list[IgnoredSetting] = []
    waits = _async(asked.get("async", {}), modes, unmet, full=full, insert_only=insert_only)
    deferred = parks and waits.values["output-mode"] == "allow_unordered"
    retry = _retry(asked.get("retry", {}), unmet, full=full, deferred=deferred)
    again = {} if retry is None else {"retry": retry}
    groups = {"async": waits, **again, "cache": cache}
    return ResolvedLookup(groups=groups, unmet=tuple(unmet))


def _async(
    asked: Layers, modes: Collection[str], unmet: list[IgnoredSetting], *, full: bool, insert_only: bool
) -> Settings:
    enabled = "async" in modes and not full
    accepted: dict[str, dict[str, Value]] = {}
    for layer in SETTING_LAYERS:
        for name, value in asked.get(layer, {}).items():
            reason = async_refusal(name, value, modes, full=full, insert_only=insert_only)
            if reason is None:
                accepted.setdefault(layer, {})[name] = value
            else:
                unmet.append(IgnoredSetting(group="async", layer=layer, name=name, reason=reason))
    return layered(SETTINGS["async"], accepted, {"enabled": enabled})


def async_refusal(name: str, value: Value, modes: Collection[str], *, full: bool, insert_only: bool) -> str | None:
    """Return the reason why a setting of the group ``async`` has no effect on a lookup, or None if it has one."""
    if full:
        return "a FULL cache answers every row at once from memory"
    if name == "enabled" and value and "async" not in modes:
        return "the table's connector looks up one row after the other only"
    if name == "enabled" and not value and "sync" not in modes:
        return "the table's connector looks up asynchronously only"
    if name in ("capacity", "timeout") and "async" not in modes:
        return "the table's connector looks up one row after the other only"
    if name == "output-mode" and value == "allow_unordered" and not insert_only:
        return "the input has updates and deletions, which must not overtake the rows that they change"
    return None


def _retry(asked: Layers, unmet: list[IgnoredSetting], *, full: bool, deferred: bool) -> Settings | None:
    hint = asked.get("hint", {})
    if not hint:
        return None
    if full:
        reason = "a FULL cache holds the whole table: another attempt would not find more"
        unmet.extend(IgnoredSetting(group="retry", layer="hint", name=name, reason=reason) for name in hint)
        return None
    return layered(SETTINGS["retry"], {"hint": hint}, {"mode": "deferred" if deferred else "inline"})


def layered_cache(asked: Layers, *, strict: bool = False) -> Settings:
    """Return the cache settings that the layers amount to; the layer ``edit`` may be among them, and leaves no origin.

    A setting may belong to another ``lookup.cache`` or reload strategy than the chosen one. It is left out if a weaker
    layer sets it, or the config, which applies to all lookups. Otherwise raise Contradiction if ``strict``.
    """
    cache, cache_layer = _strongest(asked, CACHE)
    strategy, strategy_layer = _strongest(asked, STRATEGY)
    names = applicable({CACHE: cache, STRATEGY: strategy})
    applying: dict[str, dict[str, Value]] = {}
    for layer in RANKS:
        for name, value in asked.get(layer, {}).items():
            if name in names:
                applying.setdefault(layer, {})[name] = value
                continue
            chosen, why = (
                (strategy_layer, STRATEGY) if cache == "FULL" and name.startswith(FULL) else (cache_layer, CACHE)
            )
            if strict and layer not in ("config", EDIT) and RANKS.index(layer) >= RANKS.index(chosen):
                running = f"'{why}' is {strategy if why == STRATEGY else cache}"
                raise Contradiction(
                    f"'{name}' is set, but {running}", hint=cache_setting_hint(name), layer=layer, name=name
                )
    narrowed = layered({name: SETTINGS["cache"][name] for name in names}, applying)
    return replace(narrowed, specs=SETTINGS["cache"])


def _strongest(asked: Layers, name: str) -> tuple[Value, str]:
    layer = next((layer for layer in reversed(RANKS) if name in asked.get(layer, {})), "default")
    default = SETTINGS["cache"][name].default
    assert default is not None
    return asked.get(layer, {}).get(name, default), layer

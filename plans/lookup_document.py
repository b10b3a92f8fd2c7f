"""A lookup join as JSON values and back, and its groups of settings under one shape, whatever group it is.

>>> retry = {"max-attempts": 3, "retry-predicate": "lookup_miss"}
>>> list(ordered("retry", retry))
['retry-predicate', 'max-attempts']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from plans.lookup_settings import GROUPS, SETTINGS, Group, parse_value
from plans.model import AsyncSettings, CacheSettings, JoinColumn, Layers, LookupJoin, LookupKey, RetrySettings, Value

__all__ = [
    "LOOKUP_LAYERS",
    "Settings",
    "lookup_document",
    "ordered",
    "output_document",
    "read_lookup_join",
    "read_output",
    "settings_of",
    "typed",
    "with_settings",
]

Json = dict[str, Any]

LOOKUP_LAYERS = ("default", "config", "table", "hint")
"""Who may set a setting of a lookup, weakest first: a table's WITH is nearer to its lookup than the config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One group of settings: what runs, by name in canonical order, and what each layer said."""

    values: Mapping[str, Value]
    origin: Layers


def settings_of(operator: LookupJoin) -> dict[Group, Settings]:
    """The groups of settings that the lookup has; without ``retry`` if it does not retry."""
    retry, waits = operator.retry, operator.async_
    found: dict[Group, Settings] = {
        "async": Settings(
            values={
                "enabled": waits.enabled,
                "output-mode": waits.output_mode,
                "capacity": waits.capacity,
                "timeout": waits.timeout,
            },
            origin=waits.origin,
        )
    }
    if retry is not None:
        found["retry"] = Settings(
            values={
                "retry-predicate": retry.predicate,
                "retry-strategy": retry.strategy,
                "fixed-delay": retry.fixed_delay,
                "max-attempts": retry.max_attempts,
                "mode": retry.mode,
            },
            origin=retry.origin,
        )
    found["cache"] = Settings(values=ordered("cache", operator.cache.values), origin=operator.cache.origin)
    return found


def typed(groups: Mapping[Group, Settings]) -> tuple[AsyncSettings, RetrySettings | None, CacheSettings]:
    """The groups as an operator holds them; ``retry`` may be absent."""
    documents = {group: {**settings.values, "origin": settings.origin} for group, settings in groups.items()}
    retry = _read_retry(documents["retry"]) if "retry" in documents else None
    return _read_async(documents["async"]), retry, _read_cache(documents["cache"])


def with_settings(operator: LookupJoin, groups: Mapping[Group, Settings]) -> LookupJoin:
    """The lookup with these groups of settings instead of its own; without ``retry`` it does not retry."""
    waits, retry, cache = typed(groups)
    return replace(operator, async_=waits, retry=retry, cache=cache)


def ordered(group: Group, values: Mapping[str, Value]) -> dict[str, Value]:
    """``values`` in the order in which a plan lists the settings of ``group``."""
    return {name: values[name] for name in SETTINGS[group] if name in values}


def lookup_document(operator: LookupJoin) -> Json:
    """All keys of the operator but ``id``, ``op`` and ``inputs``."""
    groups = settings_of(operator)
    document: Json = {
        "table": operator.table,
        "join-type": operator.join_type,
        "keys": [_key(key) for key in operator.keys],
        "columns": list(operator.columns),
        "pre-filter": operator.pre_filter,
        "filter": operator.filter,
        "condition": operator.condition,
        "output": output_document(operator.output),
    }
    for group in GROUPS:
        document[group] = _group(group, groups[group]) if group in groups else None
    return document


def output_document(output: tuple[JoinColumn, ...]) -> list[Json]:
    """The output columns of a join or lookup join."""
    return [{"name": c.name, "type": c.type, "from": f"{c.side}.{c.column}"} for c in output]


def read_output(document: list[Json]) -> tuple[JoinColumn, ...]:
    """The output columns from well-formed JSON values."""
    return tuple(_read_join_column(column) for column in document)


def read_lookup_join(document: Json) -> LookupJoin:
    """Build the operator from well-formed JSON values; durations are normalised."""
    return LookupJoin(
        id=document["id"],
        inputs=tuple(document["inputs"]),
        table=document["table"],
        join_type=document["join-type"],
        keys=tuple(LookupKey(**key) for key in document["keys"]),
        columns=tuple(document["columns"]),
        pre_filter=document["pre-filter"],
        filter=document["filter"],
        condition=document["condition"],
        output=read_output(document["output"]),
        async_=_read_async(_normalised("async", document["async"])),
        retry=_read_retry(_normalised("retry", document["retry"])) if document["retry"] is not None else None,
        cache=_read_cache(_normalised("cache", document["cache"])),
    )


def _key(key: LookupKey) -> Json:
    first = {"left": key.left} if key.left is not None else {"constant": key.constant}
    return {**first, "column": key.column}


def _group(group: Group, settings: Settings) -> Json:
    layers = {layer: ordered(group, settings.origin[layer]) for layer in LOOKUP_LAYERS if layer in settings.origin}
    return {**settings.values, "origin": layers}


def _read_join_column(document: Json) -> JoinColumn:
    side, _, column = document["from"].partition(".")
    return JoinColumn(name=document["name"], type=document["type"], side=side, column=column)


def _normalised(group: Group, document: Json) -> Json:
    def canonical(values: Mapping[str, Value]) -> dict[str, Value]:
        specs = SETTINGS[group]
        return ordered(
            group,
            {k: parse_value(specs[k], str(v)) if specs[k].kind == "duration" else v for k, v in values.items()},
        )

    origin = {layer: canonical(document["origin"][layer]) for layer in LOOKUP_LAYERS if layer in document["origin"]}
    return {**canonical({k: v for k, v in document.items() if k != "origin"}), "origin": origin}


def _read_async(document: Json) -> AsyncSettings:
    return AsyncSettings(
        enabled=document["enabled"],
        output_mode=document["output-mode"],
        capacity=document["capacity"],
        timeout=document["timeout"],
        origin=document["origin"],
    )


def _read_retry(document: Json) -> RetrySettings:
    return RetrySettings(
        predicate=document["retry-predicate"],
        strategy=document["retry-strategy"],
        fixed_delay=document["fixed-delay"],
        max_attempts=document["max-attempts"],
        mode=document["mode"],
        origin=document["origin"],
    )


def _read_cache(document: Json) -> CacheSettings:
    values = {name: value for name, value in document.items() if name != "origin"}
    return CacheSettings(values=ordered("cache", values), origin=document["origin"])

"""A lookup join as JSON values and back, and its groups of settings under the shape that all groups have.

>>> read_output([{"name": "rate", "type": "DOUBLE", "from": "right.rate"}])
(JoinColumn(name='rate', type='DOUBLE', side='right', column='rate'),)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from plans.operators import JoinColumn, LookupJoin, LookupKey
from plans.settings.groups import AsyncSettings, CacheSettings, RetrySettings
from plans.settings.layers import Settings, group_document, ordered, read_group
from plans.settings.lookup import GROUPS, SETTINGS, Group

__all__ = [
    "lookup_document",
    "lookup_groups",
    "output_document",
    "read_lookup_join",
    "read_output",
    "typed",
    "with_lookup_groups",
]

Json = dict[str, Any]


def lookup_groups(operator: LookupJoin) -> dict[Group, Settings]:
    """The groups of settings that the lookup has; without ``retry`` if it does not retry."""
    retry, waits = operator.retry, operator.async_
    found: dict[Group, Settings] = {
        "async": Settings(
            specs=SETTINGS["async"],
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
            specs=SETTINGS["retry"],
            values={
                "retry-predicate": retry.predicate,
                "retry-strategy": retry.strategy,
                "fixed-delay": retry.fixed_delay,
                "max-attempts": retry.max_attempts,
                "mode": retry.mode,
            },
            origin=retry.origin,
        )
    cache, specs = operator.cache, SETTINGS["cache"]
    found["cache"] = Settings(specs=specs, values=ordered(specs, cache.values), origin=cache.origin)
    return found


def typed(groups: Mapping[Group, Settings]) -> tuple[AsyncSettings, RetrySettings | None, CacheSettings]:
    """The groups as an operator holds them; ``retry`` may be absent."""
    waits, cache = groups["async"], groups["cache"]
    retry = _retry(groups["retry"]) if "retry" in groups else None
    return _async(waits), retry, CacheSettings(values=cache.values, origin=cache.origin)


def with_lookup_groups(operator: LookupJoin, groups: Mapping[Group, Settings]) -> LookupJoin:
    """The lookup with these groups of settings instead of its own; without ``retry`` it does not retry."""
    waits, retry, cache = typed(groups)
    return replace(operator, async_=waits, retry=retry, cache=cache)


def lookup_document(operator: LookupJoin) -> Json:
    """All keys of the operator but ``id``, ``op`` and ``inputs``."""
    groups = lookup_groups(operator)
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
        document[group] = group_document(groups[group]) if group in groups else None
    return document


def output_document(output: tuple[JoinColumn, ...]) -> list[Json]:
    """The output columns of a join or lookup join."""
    return [{"name": c.name, "type": c.type, "from": f"{c.side}.{c.column}"} for c in output]


def read_output(document: list[Json]) -> tuple[JoinColumn, ...]:
    """The output columns from well-formed JSON values."""
    return tuple(_read_join_column(column) for column in document)


def read_lookup_join(document: Json) -> LookupJoin:
    """Build the operator from well-formed JSON values; durations are normalised."""
    groups = {g: read_group(SETTINGS[g], document[g]) for g in GROUPS if document[g] is not None}
    waits, retry, cache = typed(groups)
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
        async_=waits,
        retry=retry,
        cache=cache,
    )


def _key(key: LookupKey) -> Json:
    first = {"left": key.left} if key.left is not None else {"constant": key.constant}
    return {**first, "column": key.column}


def _read_join_column(document: Json) -> JoinColumn:
    side, _, column = document["from"].partition(".")
    return JoinColumn(name=document["name"], type=document["type"], side=side, column=column)


def _async(settings: Settings) -> AsyncSettings:
    values: Mapping[str, Any] = settings.values
    return AsyncSettings(
        enabled=values["enabled"],
        output_mode=values["output-mode"],
        capacity=values["capacity"],
        timeout=values["timeout"],
        origin=settings.origin,
    )


def _retry(settings: Settings) -> RetrySettings:
    values: Mapping[str, Any] = settings.values
    return RetrySettings(
        predicate=values["retry-predicate"],
        strategy=values["retry-strategy"],
        fixed_delay=values["fixed-delay"],
        max_attempts=values["max-attempts"],
        mode=values["mode"],
        origin=settings.origin,
    )

"""Resolves the settings of a lookup join from their layers, and applies the consequences of an edit.

An edit of ``lookup.cache`` adds the settings that belong to the new cache, with the values of their layers and
defaults, and removes the others. A lookup with a FULL cache never waits. Rows in ordered output do not wait in state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from hintplan.plans.connectors.table import can_lookup
from hintplan.plans.errors import PlanError
from hintplan.plans.operators.contract.declared import Declared
from hintplan.plans.settings.layers import EDIT, Settings, edits_of, ordered
from hintplan.plans.settings.lookup import CACHE, GROUPS, LOOKUP_GROUPS, SETTINGS
from hintplan.plans.settings.lookup_cache import applicable, cache_setting_hint
from hintplan.plans.settings.lookup_layers import ResolvedLookup, async_refusal, layered_cache, resolve_lookup
from hintplan.plans.settings.setting import Layers, Value
from hintplan.plans.settings.views import AsyncSettings, RetrySettings

Groups = Mapping[str, Settings]


class LookupKeyed(Protocol):
    """A key of a lookup: a column of the input, or a constant."""

    @property
    def left(self) -> str | None: ...


class Lookup(Protocol):
    """The facts of a lookup join on which its settings depend."""

    @property
    def id(self) -> str: ...

    @property
    def table(self) -> str: ...

    @property
    def join_type(self) -> str: ...

    @property
    def keys(self) -> Sequence[LookupKeyed]: ...

    @property
    def pre_filter(self) -> str | None: ...

    @property
    def settings(self) -> Groups: ...

    @property
    def async_(self) -> AsyncSettings: ...

    @property
    def retry(self) -> RetrySettings | None: ...

    @property
    def cache(self) -> Settings: ...


def parks_rows(lookup: Lookup) -> bool:
    """Return True if rows of the lookup wait in state for their next attempt, which never happens with a FULL cache."""
    return lookup.retry is not None and lookup.retry.mode == "deferred" and not _is_full(lookup.settings)


def resolved(operator: Lookup, plan: Declared, *, insert_only: bool, strict: bool = True) -> ResolvedLookup:
    """Return the settings that the layers amount to, without edits; raise Contradiction if ``strict``."""
    modes = can_lookup(plan.tables[operator.table])
    parks = plan.mode != "batch"
    return resolve_lookup(_asked_of(operator, plan), modes, insert_only=insert_only, parks=parks, strict=strict)


def _asked_of(operator: Lookup, plan: Declared) -> dict[str, Layers]:
    """Return the values that each layer sets, by group.

    Config and table are read from the plan as it is now, and hints from the recorded origins.
    """
    options, groups = plan.tables[operator.table].options, operator.settings
    return {
        group.name: group.asked(plan.config, options, origin=groups[group.name].origin if group.name in groups else {})
        for group in LOOKUP_GROUPS
    }


def resettled(operator: Lookup, plan: Declared, insert_only: bool | None) -> Groups:
    """Return the settings resolved again from the layers that the plan has now; edits stay edits.

    ``insert_only`` None means that the plan has invalid edges, which leaves the settings unchanged.
    """
    if insert_only is None:
        return operator.settings
    fresh = resolved(operator, plan, insert_only=insert_only, strict=False).groups
    groups: dict[str, Settings] = {}
    for group, old in operator.settings.items():
        edits = edits_of(old)
        if group not in GROUPS:
            groups[group] = old
        elif group == "cache":
            values = layered_cache({**_asked_of(operator, plan)["cache"], EDIT: edits}).values
            groups[group] = replace(fresh[group], values=values)
        elif group in fresh:
            groups[group] = replace(fresh[group], values=ordered(old.specs, {**fresh[group].values, **edits}))
        elif "hint" not in old.origin:
            groups[group] = old  # a retry that an edit has added
    return _following(operator, groups, plan)


def with_setting(operator: Lookup, plan: Declared, path: str, group: str, name: str, value: Value) -> Groups:
    """Return the settings with one setting changed.

    Raise PlanError if the lookup has no such setting, or if the setting would have no effect.
    """
    groups = dict(operator.settings)
    if operator.table not in plan.tables:
        raise PlanError(f"there is no table '{operator.table}'", path=path, hint="correct the plan first")
    if group not in groups:
        message = f"'{operator.id}' does not retry, so there is no '{name}' to set"
        raise PlanError(message, path=path, hint=f"set {operator.id}.retry='<attempts> x <delay>' first")
    settings = groups[group]
    if settings.values.get(name) != value and (reason := _idle(operator, plan, group, name, value)) is not None:
        message, hint = reason
        raise PlanError(f"'{name}' has no effect here: {message}", path=path, hint=hint)
    if group == "cache":
        edits = {**edits_of(settings), name: value}
        values = layered_cache({**_asked_of(operator, plan)[group], EDIT: edits}).values
        if name not in applicable(values):
            raise PlanError(
                f"'{name}' does not go with '{CACHE}' {values[CACHE]}", path=path, hint=cache_setting_hint(name)
            )
    else:
        values = {**settings.values, name: value}
    groups[group] = replace(settings, values=values)
    return _following(operator, groups, plan)


def _idle(operator: Lookup, plan: Declared, group: str, name: str, value: Value) -> tuple[str, str] | None:
    """Return the reason why the setting would have no effect on the lookup, and a remedy; None if it has an effect."""
    full = _is_full(operator.settings)
    if group == "async":
        modes = can_lookup(plan.tables[operator.table])
        reason = async_refusal(name, value, modes, full=full, insert_only=True)
        if reason is None:
            return None
        return reason, f"set {operator.id}.cache.{CACHE}=PARTIAL or NONE first" if full else "leave it"
    if group == "retry" and name == "mode" and value == "deferred":
        if plan.mode == "batch":
            return "a batch job keeps no state to park a row in", "leave it; it holds for streams"
        if operator.async_.output_mode == "ordered":
            message = "a row that waits in state is overtaken, but the output-mode is 'ordered'"
            return message, f"set {operator.id}.async.output-mode=allow_unordered first"
    return None


def _following(operator: Lookup, edited: Groups, plan: Declared) -> Groups:
    """Return the settings with the consequences of an edit.

    A lookup with a FULL cache never waits or retries. Ordered rows and rows of a batch job do not wait in state.
    """
    groups = dict(edited)
    waits, full = groups["async"], _is_full(groups)
    modes = can_lookup(plan.tables[operator.table]) if operator.table in plan.tables else frozenset()
    if full:
        groups["async"] = replace(waits, values={**waits.values, "enabled": False})
        groups.pop("retry", None)
    elif not waits.values["enabled"] and "sync" not in modes and "async" in modes:
        groups["async"] = replace(waits, values={**waits.values, "enabled": True})
    retry = groups.get("retry")
    parks = plan.mode != "batch" and waits.values["output-mode"] == "allow_unordered"
    if retry is not None and retry.values["mode"] == "deferred" and not parks:
        groups["retry"] = replace(retry, values={**retry.values, "mode": "inline"})
    return groups


def with_retry(operator: Lookup, plan: Declared, wanted: tuple[Value, Value] | None) -> Groups:
    """Return the settings with the attempts and the delay in ``wanted``; None turns retries off."""
    groups = dict(operator.settings)
    if wanted is None:
        groups.pop("retry", None)
        return groups
    if _is_full(groups):
        message = "a FULL cache holds the whole table: another attempt would not find more"
        hint = f"set {operator.id}.cache.{CACHE}=PARTIAL or NONE first"
        raise PlanError(f"'retry' has no effect here: {message}", path=f"operators.{operator.id}.retry", hint=hint)
    parks = plan.mode != "batch" and groups["async"].values["output-mode"] == "allow_unordered"
    mode = "deferred" if parks else "inline"
    added: dict[str, Value] = {"retry-predicate": "lookup_miss", "retry-strategy": "fixed_delay", "mode": mode}
    none = Settings(specs=SETTINGS["retry"], values=added, origin={"default": {"mode": mode}})
    old = groups.get("retry", none)
    values = ordered(old.specs, {**old.values, "fixed-delay": wanted[1], "max-attempts": wanted[0]})
    return {**groups, "retry": replace(old, values=values)}


def _is_full(groups: Groups) -> bool:
    return groups["cache"].values[CACHE] == "FULL"

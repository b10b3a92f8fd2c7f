"""Groups of settings for plans that tests put together, and what the typed views of them are compared with."""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.calls import CALL_GROUPS
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import Layers, Value

__all__ = ["cached_result", "call_settings"]


def cached_result(said: Layers, edits: Mapping[str, Value] | None = None) -> dict[str, Settings]:
    """The settings of an operator whose result was asked for, with ``edits`` on top."""
    return {CACHED.name: CACHED.resolved({**said, "edit": edits or {}})}


def call_settings(**edits: Value) -> dict[str, Settings]:
    """The settings of calls of an asynchronous function, with edits such as ``fixed_delay="10 ms"``."""
    named = {name.replace("_", "-"): value for name, value in edits.items()}
    found = {
        group.name: group.resolved({"edit": {name: value for name, value in named.items() if name in group.settings}})
        for group in CALL_GROUPS
    }
    assert named.keys() <= {name for settings in found.values() for name in settings.values}
    return found

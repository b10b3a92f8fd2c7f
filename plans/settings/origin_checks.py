"""Checks that the origins of an operator's settings agree with the plan's current config and tables.

>>> list(check_origins("lookup_rates", {}, {}, "table 'rates'"))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hintplan.plans.errors import Diagnostic
from hintplan.plans.settings.layers import SETTING_LAYERS, Settings
from hintplan.plans.settings.setting import Value, value_text


def check_origins(
    operator: str, groups: Mapping[str, Settings], expected: Mapping[str, Settings], table: str
) -> Iterator[Diagnostic]:
    """Yield the origins that differ from ``expected``, at most one problem per group.

    ``table`` is the name in messages for the layer ``table``.
    """
    for group, settings in groups.items():
        if group not in expected:
            continue
        for layer in SETTING_LAYERS:
            recorded, current = settings.origin.get(layer, {}), expected[group].origin.get(layer, {})
            if recorded != current:
                names = [*current, *(name for name in recorded if name not in current)]
                name = next(name for name in names if recorded.get(name) != current.get(name))
                where = {"config": "config", "table": table}.get(layer, "the layer")
                yield Diagnostic(
                    message=origin_mismatch_text(recorded, current, name, where),
                    path=f"operators.{operator}.{group}.origin",
                    hint=_in_step(operator, group, layer, name, current, expected[group], table),
                )
                break


def origin_mismatch_text(says: Mapping[str, Value], must: Mapping[str, Value], name: str, where: str) -> str:
    """Return the message that an origin ``says`` another value of the setting than the layer ``where`` sets now."""
    was = f"'{name}' is {value_text(says[name])}" if name in says else f"there was no value for '{name}'"
    is_now = f"has {value_text(must[name])}" if name in must else f"has no value for '{name}'"
    return f"according to the origin, {was}, but {where} {is_now}"


def update_origins_hint(path: str, value: Value) -> str:
    """Return the command that makes origins agree with the plan's config or tables."""
    return f"hintplan set plan.json {path}='{value_text(value)}' brings all origins in step"


def _in_step(
    operator: str, group: str, layer: str, name: str, must: Mapping[str, Value], settings: Settings, table: str
) -> str:
    """Return a hint: a command that makes origins agree with a manual edit, or a command to edit instead."""
    named = table.removeprefix("table '").removesuffix("'")
    path = {"config": f"config.{settings.specs[name].config}", "table": f"tables.{named}.options.{name}"}
    if layer in path and name in must:
        return update_origins_hint(path[layer], must[name])
    instead = f"hintplan set plan.json {operator}.{group}.{name}=..."
    return f"leave origins as they were compiled; to change the value in force: {instead}"

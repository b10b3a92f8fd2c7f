"""Whether the origins of an operator's settings are in step with what the plan's config and tables ask for now.

>>> list(origins_apart("lookup_rates", {}, {}, "table 'rates'"))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plans.errors import Diagnostic
from plans.settings.layers import SETTING_LAYERS, Settings
from plans.settings.setting import Value, shown

__all__ = ["origins_apart"]


def origins_apart(
    operator: str, groups: Mapping[str, Settings], expected: Mapping[str, Settings], table: str
) -> Iterator[Diagnostic]:
    """What the origins say was asked for, but ``expected`` does not; told once for each group.

    ``table`` is what messages call the layer of that name.
    """
    for group, settings in groups.items():
        if group not in expected:
            continue
        for layer in SETTING_LAYERS:
            says, must = settings.origin.get(layer, {}), expected[group].origin.get(layer, {})
            if says != must:
                names = [*must, *(name for name in says if name not in must)]
                name = next(name for name in names if says.get(name) != must.get(name))
                where = {"config": "config", "table": table}.get(layer, "the layer")
                yield Diagnostic(
                    message=f"the origin says that {_said(says, name)}, but {where} {_asks(must, name)}",
                    path=f"operators.{operator}.{group}.origin",
                    hint=_in_step(operator, group, layer, name, must, expected[group], table),
                )
                break


def _said(values: Mapping[str, Value], name: str) -> str:
    return f"'{name}' is {shown(values[name])}" if name in values else f"nothing was said of '{name}'"


def _asks(values: Mapping[str, Value], name: str) -> str:
    return f"says {shown(values[name])}" if name in values else f"says nothing of '{name}'"


def _in_step(
    operator: str, group: str, layer: str, name: str, must: Mapping[str, Value], settings: Settings, table: str
) -> str:
    """How to bring the origins in step with what was edited by hand, or how to edit instead."""
    named = table.removeprefix("table '").removesuffix("'")
    path = {"config": f"config.{settings.specs[name].config}", "table": f"tables.{named}.options.{name}"}
    if layer in path and name in must:
        return f"hintplan set plan.json {path[layer]}='{shown(must[name])}' brings all origins in step"
    instead = f"hintplan set plan.json {operator}.{group}.{name}=..."
    return f"leave origins as they were compiled; to change what runs: {instead}"

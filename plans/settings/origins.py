"""Whether the origins of an operator's settings are in step with what the plan's config and tables ask for now.

>>> list(origins_apart("lookup_rates", {}, {}, "table 'rates'"))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hintplan.plans.errors import Diagnostic
from hintplan.plans.settings.layers import SETTING_LAYERS, Settings
from hintplan.plans.settings.setting import Value, shown


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
                    message=apart_text(says, must, name, where),
                    path=f"operators.{operator}.{group}.origin",
                    hint=_in_step(operator, group, layer, name, must, expected[group], table),
                )
                break


def apart_text(says: Mapping[str, Value], must: Mapping[str, Value], name: str, where: str) -> str:
    """That an origin ``says`` something else of the setting than the layer ``where`` asks for now."""
    said = f"'{name}' is {shown(says[name])}" if name in says else f"nothing was said of '{name}'"
    asks = f"says {shown(must[name])}" if name in must else f"says nothing of '{name}'"
    return f"the origin says that {said}, but {where} {asks}"


def in_step_text(path: str, value: Value) -> str:
    """What to type where origins do not say what the plan's config or tables do."""
    return f"hintplan set plan.json {path}='{shown(value)}' brings all origins in step"


def _in_step(
    operator: str, group: str, layer: str, name: str, must: Mapping[str, Value], settings: Settings, table: str
) -> str:
    """How to bring the origins in step with what was edited by hand, or how to edit instead."""
    named = table.removeprefix("table '").removesuffix("'")
    path = {"config": f"config.{settings.specs[name].config}", "table": f"tables.{named}.options.{name}"}
    if layer in path and name in must:
        return in_step_text(path[layer], must[name])
    instead = f"hintplan set plan.json {operator}.{group}.{name}=..."
    return f"leave origins as they were compiled; to change what runs: {instead}"

"""Prints a plan as lines, one per fact or setting with its full path, for ``git diff`` and ``grep``.

A changed TTL is one changed line with its operator and its layer. Digests are left out, because they only repeat that
another line has changed.

>>> list(flat_lines(Plan(name="p")))
['format = 1.0', 'name = p', 'mode = streaming']
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from hintplan.plans.merge.decompose import GroupPart, decompose
from hintplan.plans.merge.merge_text import REFUSED, layer_value_text, path_of, refused_options
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import ABSENT, COMPILED, PlanSetting
from hintplan.plans.settings.setting import value_text


def flat_lines(plan: Plan) -> Iterator[str]:
    """Yield the lines in the order of the plan."""
    units, refused = decompose(plan).units, refused_options(plan)
    # As in the plan file, reasons come last.
    for key, unit in sorted(units.items(), key=lambda item: item[0][0] == "reasons"):
        path = path_of(key)
        if path in refused:
            yield f"{path} = {REFUSED}"
        elif isinstance(unit, GroupPart):
            if unit.settings is None:
                yield f"{path} = off" + (" (edit)" if unit.edited else "")
                continue
            for name, setting in unit.settings.items():
                yield from _setting(f"{path}.{name}", setting)
        elif isinstance(unit, PlanSetting):
            yield from _setting(path, unit)
        else:
            yield from _fact(path, unit)


def _setting(path: str, setting: PlanSetting) -> Iterator[str]:
    value = setting.value
    if value is ABSENT:
        yield f"{path} is absent (edit)"
        return
    layers = ["edit"] if setting.edited and setting.layers else []
    layers += [
        layer if not setting.edited and layer == setting.top_layer else f"{layer} {layer_value_text(layer_value)}"
        for layer, layer_value in reversed([*setting.layers.items()])
        if layer != COMPILED
    ]
    yield f"{path} = {_text(value_text(value))}" + (f"   ({' · '.join(layers)})" if layers else "")


def _fact(path: str, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _fact(f"{path}.{key}", child)
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for index, item in enumerate(value):
            name = item.get("name", index) if isinstance(item, dict) else index
            remaining = {k: v for k, v in item.items() if k != "name"} if isinstance(item, dict) else item
            yield f"{path}[{name}] = {_text(json.dumps(remaining, ensure_ascii=False))}"
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield f"{path} = {_text(text)}"


def _text(value: str) -> str:
    return value.replace("\n", "\\n")

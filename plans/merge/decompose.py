"""Takes a plan apart into its facts and settings, each under a key, and puts it together again without loss.

Merging and rebasing change these parts; the checks of a plan run after it is whole again.

>>> decompose(Plan(name="p", config={"parallelism.default": "4"})).units["config", "parallelism.default"].edit
'4'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hintplan.plans.declarations.tables import Table
from hintplan.plans.format.digest import operator_facts, table_facts
from hintplan.plans.format.document import from_document, table_document, to_document
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import (
    ABSENT,
    ALL_LAYERS,
    COMPILED,
    STATE_GROUP,
    Digest,
    PlanSetting,
    digest_of,
    setting_of,
)
from hintplan.plans.model.settings import config_setting, name_setting, option_setting, setting_groups
from hintplan.plans.operators import Operator
from hintplan.plans.settings.layers import Settings

Key = tuple[str, ...]
"""The key of a part: ``("operators", "join_o_c", "state", "leftState", "ttl")``, ``("tables", "orders")``."""

_BELOW = ("config", "tables", "functions", "operators", "reasons")


@frozen
class GroupPart:
    """A group of settings that may be absent as a whole, as null or without its key; then ``settings`` is None.

    ``record`` is the compiler's digest of a group that an edit could remove. The presence of a group that is not
    ``optional`` means nothing; only its settings count.
    """

    settings: Mapping[str, Any] | None
    optional: bool
    null: bool = False
    record: str | None = None

    @property
    def edited(self) -> bool:
        """True if an edit has added or removed the group."""
        if self.settings is None:
            return self.record is not None
        settings = self.settings.values()
        matters = self.optional or any(setting.edited for setting in settings)
        return matters and not any(layer != "default" for setting in settings for layer in setting.layers)


@frozen
class Parts:
    """The facts and settings of a plan by key; ``orders`` has the names of ordered parts in the order of the file."""

    units: Mapping[Key, Any]
    orders: Mapping[Key, tuple[str, ...]]


def settings_by_key(units: Mapping[Key, Any]) -> dict[Key, PlanSetting]:
    """Return all settings by key, including the settings in groups."""
    settings: dict[Key, PlanSetting] = {}
    for key, unit in units.items():
        if isinstance(unit, PlanSetting):
            settings[key] = unit
        elif isinstance(unit, GroupPart) and unit.settings is not None:
            settings |= {
                (*key, name): setting for name, setting in unit.settings.items() if isinstance(setting, PlanSetting)
            }
    return settings


def decompose(plan: Plan) -> Parts:
    """Return the parts of ``plan``."""
    document = to_document(plan)
    units: dict[Key, Any] = {(name,): value for name, value in document.items() if name not in _BELOW}
    units["name",] = name_setting(plan)
    for name in ("functions", "reasons"):
        units |= {(name, key): value for key, value in document.get(name, {}).items()}
    recorded = _recorded(plan)
    for key in dict.fromkeys((*plan.config, *recorded.get(("config",), ()))):
        units["config", key] = config_setting(plan, key)
    orders: dict[Key, tuple[str, ...]] = {("operators",): tuple(operator.id for operator in plan.declared)}
    for name, table in plan.tables.items():
        orders["tables", name] = tuple(table_document(table)["options"])
        units |= _table_units(name, table, plan, recorded.get(("tables", name), []))
    for operator in plan.declared:
        units |= _operator_units(operator, plan, recorded.get(("operators", operator.id), []))
    return Parts(units=units, orders=orders)


def _recorded(plan: Plan) -> dict[Key, list[str]]:
    """Return the names below each part for which the compiler left digests."""
    names: dict[Key, list[str]] = {}
    ids = {operator.id for operator in plan.declared}
    for path in plan.compiled:
        head, _, tail = path.partition(".")
        if head == "config":
            names.setdefault(("config",), []).append(tail)
        elif head == "tables":
            # The name of a table may contain dots; the name of an option never contains ".options.".
            name, _, option = tail.partition(".options.")
            names.setdefault(("tables", name), []).append(option)
        elif head in ids:
            names.setdefault(("operators", head), []).append(tail)
    return names


def _table_units(name: str, table: Table, plan: Plan, recorded: list[str]) -> Iterator[tuple[Key, Any]]:
    yield ("tables", name), table_facts(table)
    for key in dict.fromkeys((*table.options, *recorded)):
        if key != "connector":
            yield ("tables", name, "options", key), option_setting(plan, name, key)


def _operator_units(operator: Operator, plan: Plan, recorded: list[str]) -> Iterator[tuple[Key, Any]]:
    here = ("operators", operator.id)
    yield here, operator_facts(operator)
    groups = dict(setting_groups(operator))
    for group, settings in groups.items():
        if group.startswith(STATE_GROUP):
            yield (*here, *group.split(".", 1), "ttl"), setting_of(operator.id, group, "ttl", settings)
    by_name = {group.name: group for group in operator.groups}
    for name in dict.fromkeys((*by_name, *recorded)):
        kind, present = by_name.get(name), groups.get(name)
        record = plan.compiled.get(f"{operator.id}.{name}")
        null = present is None and kind is not None and kind.absent == "null"
        if present is not None or null or record is not None:
            parts = None if present is None else _settings(operator, name, present)
            optional = kind is not None and kind.optional
            yield (*here, name), GroupPart(settings=parts, optional=optional, null=null, record=record)


def _settings(operator: Operator, group: str, settings: Settings) -> dict[str, PlanSetting]:
    names = dict.fromkeys((*settings.values, *(name for values in settings.origin.values() for name in values)))
    return {name: setting_of(operator.id, group, name, settings) for name in names}


def compose(parts: Parts) -> Plan:
    """Return the plan made of ``parts``; its meaning is not checked."""
    compiled: dict[str, str] = {}
    document: dict[str, Any] = {"config": {}, "tables": {}, "functions": {}, "reasons": {}}
    operators: dict[str, dict[str, Any]] = {}
    # Shorter keys come first, so that a fact precedes its settings.
    for key in sorted(parts.units, key=len):
        unit = parts.units[key]
        if unit is ABSENT:
            continue
        if key == ("name",):
            _write(document, "name", unit, "name", compiled)
        elif len(key) == 1:
            document[key[0]] = unit
        elif key[0] == "config":
            _write(document["config"], key[1], unit, f"config.{key[1]}", compiled)
        elif key[0] == "tables" and len(key) == 2:
            document["tables"][key[1]] = {**unit, "options": dict(unit["options"])}
        elif key[0] == "operators" and len(key) == 2:
            operators[key[1]] = {k: [dict(e) for e in v] if k == "state" else v for k, v in unit.items()}
        elif key[0] == "operators" and key[1] in operators:
            _write_operator(operators[key[1]], key, unit, compiled)
        elif key[0] == "tables" and key[1] in document["tables"]:
            options = document["tables"][key[1]]["options"]
            _write(options, key[3], unit, f"tables.{key[1]}.options.{key[3]}", compiled)
        elif key[0] in ("functions", "reasons"):
            document[key[0]][key[1]] = unit
    for name, table in document["tables"].items():
        order = parts.orders.get(("tables", name), ())
        first = {key: table["options"][key] for key in order if key in table["options"]}
        table["options"] = {**first, **table["options"]}
    document["operators"] = [operators[name] for name in parts.orders["operators",] if name in operators]
    return replace(from_document(document), compiled=compiled)


def _write(target: dict[str, Any], key: str, unit: PlanSetting, path: str, compiled: dict[str, str]) -> None:
    layer = unit.layers.get(COMPILED)
    if layer is not None:
        compiled[path] = layer.text if isinstance(layer, Digest) else digest_of(layer)
    if unit.value is not ABSENT:
        target[key] = unit.value


def _write_operator(
    document: dict[str, Any], key: Key, unit: PlanSetting | GroupPart, compiled: dict[str, str]
) -> None:
    name = key[2]
    if isinstance(unit, PlanSetting):
        for entry in document.get("state", ()):
            if entry["name"] == key[3]:
                entry |= {"ttl": unit.value, "origin": dict(unit.layers)}
        return
    if unit.record is not None:
        compiled[f"{key[1]}.{name}"] = unit.record
    if unit.settings is not None:
        document[name] = _group_document(unit.settings)
    elif unit.null:
        document[name] = None


def _group_document(settings: Mapping[str, PlanSetting]) -> dict[str, Any]:
    by_layer = {
        layer: {name: setting.layers[layer] for name, setting in settings.items() if layer in setting.layers}
        for layer in ALL_LAYERS
    }
    values = {name: setting.value for name, setting in settings.items() if setting.value is not ABSENT}
    return {**values, "origin": {layer: names for layer, names in by_layer.items() if names}}

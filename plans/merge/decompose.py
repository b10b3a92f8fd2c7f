"""Takes a plan apart into its facts and settings, each under a key, and puts it together again without loss.

A setting consists of the values of its layers, and of an edit if there is one. A setting without origin (name, config,
options of tables) has one layer, ``compiled``. It holds the value if the plan still has it, or else the compiler's
digest. Merging and rebasing change these parts; the checks of a plan run after it is whole again.

>>> take_apart(Plan(name="p", config={"parallelism.default": "4"})).units["config", "parallelism.default"].edit
'4'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hintplan.plans.declarations.tables import Table
from hintplan.plans.format.compiled import digest_of
from hintplan.plans.format.digest import operator_facts, table_facts
from hintplan.plans.format.document import from_document, operator_document, table_document, to_document
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator
from hintplan.plans.settings.layers import SETTING_LAYERS
from hintplan.plans.settings.setting import Value

Key = tuple[str, ...]
"""The key of a part: ``("operators", "join_o_c", "state", "leftState", "ttl")``, ``("tables", "orders")``."""

COMPILED = "compiled"
LAYERS = (*SETTING_LAYERS, COMPILED)
"""All layers that may set a setting of any kind, weakest first."""
_BELOW = ("config", "tables", "functions", "operators", "reasons")


class Marker:
    """A value that no document can contain."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


ABSENT = Marker("ABSENT")
"""The part is missing."""
NO_EDIT = Marker("NO_EDIT")
"""There is no edit: the value of the strongest layer is in force."""


@frozen
class Digest:
    """The digest of an unknown value."""

    text: str


LayerValue = Value | Digest | Marker | None
"""A value of a layer or an edit."""


@frozen
class LayeredValue:
    """The value of each layer, weakest first, and the value of an edit; ABSENT if an edit removed the setting."""

    layers: Mapping[str, Any]
    edit: Any = NO_EDIT

    @property
    def top(self) -> LayerValue:
        """The value of the strongest layer, or ABSENT if no layer sets it."""
        layers: Mapping[str, LayerValue] = self.layers
        return layers[self.top_layer] if layers else ABSENT

    @property
    def top_layer(self) -> str:
        """The strongest layer that sets the value, or ``default``."""
        return [*self.layers][-1] if self.layers else "default"

    @property
    def value(self) -> LayerValue:
        """The value in force."""
        edit: LayerValue = self.edit
        return self.top if edit is NO_EDIT else edit


@frozen
class Group:
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
        matters = self.optional or any(setting.edit is not NO_EDIT for setting in settings)
        return matters and not any(layer != "default" for setting in settings for layer in setting.layers)


@frozen
class Parts:
    """The facts and settings of a plan by key; ``orders`` has the names of ordered parts in the order of the file."""

    units: Mapping[Key, Any]
    orders: Mapping[Key, tuple[str, ...]]


def settings_in(units: Mapping[Key, Any]) -> dict[Key, LayeredValue]:
    """Return all settings by key, including the settings in groups."""
    settings: dict[Key, LayeredValue] = {}
    for key, unit in units.items():
        if isinstance(unit, LayeredValue):
            settings[key] = unit
        elif isinstance(unit, Group) and unit.settings is not None:
            settings |= {
                (*key, name): setting for name, setting in unit.settings.items() if isinstance(setting, LayeredValue)
            }
    return settings


def take_apart(plan: Plan) -> Parts:
    """Return the parts of ``plan``."""
    document = to_document(plan)
    units: dict[Key, Any] = {(name,): value for name, value in document.items() if name not in _BELOW}
    units["name",] = _compiled("name", plan.name, plan)
    for name in ("functions", "reasons"):
        units |= {(name, key): value for key, value in document.get(name, {}).items()}
    recorded = _recorded(plan)
    for key in dict.fromkeys((*plan.config, *recorded.get(("config",), ()))):
        units["config", key] = _compiled(f"config.{key}", plan.config.get(key, ABSENT), plan)
    orders: dict[Key, tuple[str, ...]] = {("operators",): tuple(operator.id for operator in plan.operators)}
    for name, table in plan.tables.items():
        orders["tables", name] = tuple(table_document(table)["options"])
        units |= _table_units(name, table, plan, recorded.get(("tables", name), []))
    for operator in plan.operators:
        units |= _operator_units(operator, plan, recorded.get(("operators", operator.id), []))
    return Parts(units=units, orders=orders)


def _recorded(plan: Plan) -> dict[Key, list[str]]:
    """Return the names below each part for which the compiler left digests."""
    names: dict[Key, list[str]] = {}
    ids = {operator.id for operator in plan.operators}
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
            setting = _compiled(f"tables.{name}.options.{key}", table.options.get(key, ABSENT), plan)
            yield ("tables", name, "options", key), setting


def _compiled(path: str, value: object, plan: Plan) -> LayeredValue:
    """Return a setting without origin; its digest decides whether the value is an edit."""
    digest = plan.compiled.get(path)
    if digest is None:
        return LayeredValue(layers={}, edit=value)
    if value is not ABSENT and digest_of(value) == digest:
        return LayeredValue(layers={COMPILED: value})
    return LayeredValue(layers={COMPILED: Digest(text=digest)}, edit=value)


def _operator_units(operator: Operator, plan: Plan, recorded: list[str]) -> Iterator[tuple[Key, Any]]:
    here, facts = ("operators", operator.id), operator_facts(operator)
    yield here, facts
    document = operator_document(operator)
    for entry in document.get("state", ()):
        yield (*here, "state", entry["name"], "ttl"), _setting(entry["origin"], entry["ttl"])
    optional = {group.name for group in operator.groups if group.optional}
    for name in dict.fromkeys((*document, *recorded)):
        if name not in facts:
            record = plan.compiled.get(f"{operator.id}.{name}")
            group = Group(settings=None, optional=name in optional, null=name in document, record=record)
            yield (*here, name), group if document.get(name) is None else _with_settings(group, document[name])


def _with_settings(group: Group, document: Mapping[str, Any]) -> Group:
    origin = document["origin"]
    names = dict.fromkeys((*document, *(name for values in origin.values() for name in values)))
    settings = {
        name: _setting(
            {la: values[name] for la, values in origin.items() if name in values}, document.get(name, ABSENT)
        )
        for name in names
        if name != "origin"
    }
    return replace(group, settings=settings, null=False)


def _setting(layers: Mapping[str, Any], value: object) -> LayeredValue:
    setting = LayeredValue(layers=layers)
    return (
        setting
        if setting.top == value and type(setting.top) is type(value)
        else LayeredValue(layers=layers, edit=value)
    )


def put_together(parts: Parts) -> Plan:
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


def _write(target: dict[str, Any], key: str, unit: LayeredValue, path: str, compiled: dict[str, str]) -> None:
    layer = unit.layers.get(COMPILED)
    if layer is not None:
        compiled[path] = layer.text if isinstance(layer, Digest) else digest_of(layer)
    if unit.value is not ABSENT:
        target[key] = unit.value


def _write_operator(document: dict[str, Any], key: Key, unit: LayeredValue | Group, compiled: dict[str, str]) -> None:
    name = key[2]
    if isinstance(unit, LayeredValue):
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


def _group_document(settings: Mapping[str, LayeredValue]) -> dict[str, Any]:
    by_layer = {
        layer: {name: setting.layers[layer] for name, setting in settings.items() if layer in setting.layers}
        for layer in LAYERS
    }
    values = {name: setting.value for name, setting in settings.items() if setting.value is not ABSENT}
    return {**values, "origin": {layer: names for layer, names in by_layer.items() if names}}

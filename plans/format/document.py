"""Converts a plan to plain JSON values in canonical key order, and back.

Operators are written by their fields (:mod:`hintplan.plans.format.fields`), then their groups of settings.
``from_document`` accepts values that :mod:`hintplan.plans.format.schema` has found to be well formed, and normalises
durations. Knows no text and no digests.

>>> from hintplan.plans.operators import Scan
>>> operator_document(Scan(id="scan_o", table="o", columns=("a",)))
{'id': 'scan_o', 'op': 'scan', 'table': 'o', 'columns': ['a']}
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from hintplan.plans.connectors.table import in_order
from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.declarations.tables import Column, Function, Table, TableColumn, Watermark
from hintplan.plans.format.fields import FieldForm, field_json, forms_of
from hintplan.plans.model.config import normalise
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import BY_OP, Operator
from hintplan.plans.settings.layers import Settings, group_document, layers_of, read_group
from hintplan.plans.settings.state import STATE_LAYERS, STATE_SETTINGS, StateEntry

Json = dict[str, Any]


def to_document(plan: Plan) -> Json:
    """Return the whole plan without its digests; maps are sorted, and table options start with ``connector``."""
    source = {"source": plan.source} if plan.source is not None else {}
    init = {"init": list(plan.init)} if plan.init else {}
    reasons = {"reasons": {path: plan.reasons[path] for path in sorted(plan.reasons)}} if plan.reasons else {}
    return {
        "format": plan.format,
        "name": plan.name,
        **source,
        **init,
        "mode": plan.mode,
        "config": {key: plan.config[key] for key in sorted(plan.config)},
        "tables": {name: table_document(plan.tables[name]) for name in sorted(plan.tables)},
        "functions": {name: function_document(plan.functions[name]) for name in sorted(plan.functions)},
        "operators": [operator_document(operator) for operator in plan.declared],
        **reasons,
    }


def table_document(table: Table) -> Json:
    """Return one table; absent optional keys are left out."""
    document = field_json(table)
    assert isinstance(document, dict)  # a table has no short form
    return {**document, "options": in_order(table.options)}


def function_document(function: Function) -> Json:
    """Return one function; all of it is a fact."""
    accumulates: Json = {}
    if function.accumulator is not None:
        accumulates = {"accumulator": function.accumulator, "methods": list(function.methods)}
    return {
        "class": function.class_name,
        "language": function.language,
        "kind": function.kind,
        "arguments": list(function.arguments),
        "output": [field_json(column) for column in function.output],
        **accumulates,
    }


def operator_document(operator: Operator) -> Json:
    """Return one operator, starting with ``id`` and ``op``."""
    document: Json = {"id": operator.id, "op": operator.op}
    for form in _facts(type(operator)):
        value = getattr(operator, form.name)
        if value is form.left_out or value == form.left_out:
            continue
        if form.name == "state":
            document["state"] = [_state_entry(entry) for entry in value]
        else:
            document[form.key] = value if form.write is None or value is None else form.write(value)
    settings = operator.settings
    for group in operator.groups:
        if group.name in settings:
            document[group.name] = group_document(settings[group.name])
        elif group.absent == "null":
            document[group.name] = None
    return document


@cache
def _facts(kind: type[Operator]) -> tuple[FieldForm, ...]:
    return tuple(form for form in forms_of(kind) if form.name not in ("id", "settings"))


def from_document(document: Json) -> Plan:
    """Build the plan from well-formed JSON values."""
    return Plan(
        format=document["format"],
        name=document["name"],
        source=document.get("source"),
        init=tuple(document.get("init", ())),
        mode=document["mode"],
        config={key: _config_value(key, value) for key, value in document["config"].items()},
        tables={name: _read_table(table) for name, table in document["tables"].items()},
        functions={name: _read_function(function) for name, function in document["functions"].items()},
        operators=tuple(_read_operator(operator) for operator in document["operators"]),
        reasons=dict(document.get("reasons", {})),
        compiled=dict(document.get("digests", {}).get("settings", {})),
    )


def _read_operator(document: Json) -> Operator:
    kind = BY_OP[document["op"]]
    values: dict[str, Any] = {"id": document["id"]}
    for form in _facts(kind):
        if form.name == "state" and form.key in document:
            values["state"] = tuple(_read_state_entry(entry) for entry in document["state"])
        elif form.key in document:
            value = document[form.key]
            values[form.name] = value if form.read is None or value is None else form.read(value)
    if kind.groups:
        values["settings"] = _read_settings(document)
    return kind(**values)


def _read_settings(document: Json) -> Mapping[str, Settings]:
    groups = ((group, document.get(group.name)) for group in BY_OP[document["op"]].groups)
    return {group.name: read_group(group.settings, values) for group, values in groups if values is not None}


def _config_value(key: str, value: str) -> str:
    try:
        return normalise(key, value)
    except ValueError:
        return value  # unknown or invalid: validation reports the path and a remedy


def _state_entry(entry: StateEntry) -> Json:
    document: Json = {"index": entry.index, "name": entry.name, "input": entry.input}
    if entry.settings is not None:
        document |= {"ttl": entry.ttl, "origin": layers_of(entry.settings, "ttl")}
    return document


def _read_state_entry(document: Json) -> StateEntry:
    settings = None
    if "ttl" in document:
        origin = document.get("origin", {})
        settings = Settings(
            specs=STATE_SETTINGS,
            values={"ttl": _duration(document["ttl"])},
            origin={layer: {"ttl": _duration(origin[layer])} for layer in STATE_LAYERS if layer in origin},
        )
    return StateEntry(index=document["index"], name=document["name"], input=document["input"], settings=settings)


@lru_cache(maxsize=4096)
def _duration(text: str) -> str:
    return format_duration(parse_duration(text, require_unit=True))


def _read_table(document: Json) -> Table:
    watermark = document.get("watermark")
    return Table(
        columns=tuple(TableColumn(**column) for column in document["columns"]),
        primary_key=tuple(document.get("primary-key", ())),
        partitioned_by=tuple(document.get("partitioned-by", ())),
        watermark=Watermark(**watermark) if watermark else None,
        comment=document.get("comment"),
        options=dict(document["options"]),
    )


def _read_function(document: Json) -> Function:
    return Function(
        class_name=document["class"],
        language=document["language"],
        kind=document["kind"],
        arguments=tuple(document["arguments"]),
        output=tuple(Column(**column) for column in document["output"]),
        accumulator=document.get("accumulator"),
        methods=tuple(document.get("methods", ())),
    )

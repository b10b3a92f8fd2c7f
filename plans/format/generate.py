"""Generates ``plan.schema.json`` from the fields of operators, their settings and the configuration keys.

    python -m hintplan.plans.format.generate

The parts that no field describes (tables, functions, durations, digests) are in ``schema_base.json``. The result is
checked in, because people link to it and editors read it; a test fails when it is stale.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, is_dataclass
from importlib.resources import files
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from hintplan.plans.format.fields import bare_type, forms_of, is_optional, notes_on
from hintplan.plans.model.config import KEYS
from hintplan.plans.operators import KINDS, Operator
from hintplan.plans.operators.contract.output import JoinColumn
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.setting import Setting, value_text

Schema = dict[str, Any]

_FREE = "Settings, free to edit"
_ORIGIN = "The value of each layer that sets one. The later layer wins; a different value in force is a plan edit."
_LAYERS = {
    "default": "The built-in defaults that nothing else overrode.",
    "config": "From the configuration of the job.",
    "table": "From the options of the table.",
    "hint": "From the hint.",
    "statement": "From CACHE TABLE or UNCACHE TABLE.",
}
_ABSENT = {"never": "", "null": "; null if there are none", "left out": "; absent if no layer sets it"}


def generated_schema() -> Schema:
    """Return the schema of plans as a JSON value."""
    schema: Schema = json.loads(
        files("hintplan.plans").joinpath("format", "schema_base.json").read_text(encoding="utf-8")
    )
    keys = {name: key for name, key in KEYS.items() if key.in_config and not name.startswith("lookup.")}
    schema["properties"]["config"]["properties"] = {
        name: {"description": key.description, **_as_text(key)} for name, key in keys.items()
    }
    definitions = schema["$defs"]
    definitions["join-output"]["items"] = _record(JoinColumn)
    definitions["operator"] = _operators()
    for group in {id(group): group for kind in KINDS for group in kind.groups}.values():
        definitions |= _group(group)
    for kind in KINDS:
        definitions[kind.op] = _kind(kind)
    return schema


def schema_file_text() -> str:
    """Return the schema as the text of its file."""
    return json.dumps(generated_schema(), indent=2, ensure_ascii=False) + "\n"


def _operators() -> Schema:
    ops = [kind.op for kind in KINDS]
    cases = [
        {"if": {"properties": {"op": {"const": op}}, "required": ["op"]}, "then": {"$ref": f"#/$defs/{op}"}}
        for op in ops
    ]
    kind = {"description": "The kind of the operator, which determines its other fields.", "enum": ops}
    return {
        "description": "One operator; 'op' is its kind.",
        "type": "object",
        "required": ["id", "op"],
        "properties": {"op": kind},
        "allOf": cases,
    }


def _kind(kind: type[Operator]) -> Schema:
    forms = [form for form in forms_of(kind) if form.name not in ("id", "settings")]
    properties: Schema = {
        "id": {"$ref": "#/$defs/operator-id"},
        "op": {"description": "The kind of the operator.", "const": kind.op},
        **{form.key: _field(form.type, required=form.left_out is MISSING) for form in forms},
        **{group.name: {"$ref": f"#/$defs/{group.schema}"} for group in kind.groups},
    }
    always = [form.key for form in forms if form.left_out is MISSING]
    always += [group.name for group in kind.groups if not group.optional]
    return _object(properties, ["id", "op", *always], description=kind.description)


def _group(group: Group) -> Schema:
    """Return the definitions of a group and of one of its layers."""
    settings = {name: _setting(setting) for name, setting in group.settings.items()}
    layer = f"{group.schema}-layer"
    origin = {name: {"description": _LAYERS[name], "$ref": f"#/$defs/{layer}"} for name in group.layers}
    whole = _object(
        {**settings, "origin": _object(origin, [], description=_ORIGIN)},
        [*(group.required or group.settings), "origin"],
        description=f"{group.description} {_FREE}{_ABSENT[group.absent]}.",
    )
    if group.absent == "null":
        whole["type"] = ["object", "null"]
    least = {"minProperties": 1} if group.optional else {}
    return {layer: {**_object(settings, []), **least}, group.schema: whole}


def _setting(setting: Setting) -> Schema:
    described: Schema = {"description": setting.description}
    match setting.kind:
        case "bool":
            return described | {"type": "boolean"}
        case "choice":
            return described | {"enum": list(setting.choices)}
        case "duration" | "class":
            return described | {"$ref": f"#/$defs/{setting.kind}"}
        case "int":
            return described | {"type": "integer", "minimum": setting.minimum}
        case "time":
            return described | {
                "type": "string",
                "format": "hintplan-time",
                "examples": ["10:15", "10:15Z", "10:15+07:00"],
            }
        case "text" | "character":
            return described | {"type": "string"}


def _as_text(setting: Setting) -> Schema:
    """Return the schema of a setting that is written as text, as in the configuration."""
    examples = {"examples": [*setting.examples]} if setting.examples else {}
    if setting.offered:
        return {"enum": [*setting.offered]}
    if setting.kind == "duration":
        return {"$ref": "#/$defs/duration"}
    if setting.kind == "int":
        pattern = "^[1-9][0-9]*$" if setting.minimum else "^[0-9]+$"
        return {
            "type": "string",
            "pattern": pattern,
            "examples": [value_text(setting.default or setting.minimum)],
        } | examples
    return {"type": "string"} | examples


def _record(cls: object) -> Schema:
    """Return the schema of a dataclass that is part of an operator."""
    joined = getattr(cls, "JOINED", {})
    parts = {name for pair in joined.values() for name in pair}
    forms = [form for form in forms_of(cls) if form.name not in parts]
    properties = {form.key: _field(form.type, required=form.left_out is MISSING) for form in forms}
    required = [form.key for form in forms if form.left_out is MISSING]
    for key in joined:
        properties[key] = {
            "description": "left.<column> or right.<column>.",
            "type": "string",
            "pattern": "^(left|right)[.][\\s\\S]",
            "examples": ["left.o_id"],
        }
        required.append(key)
    short = getattr(cls, "SHORT", None)
    if short is None:
        return {**_object(properties, required), **getattr(cls, "SCHEMA", {})}
    # The short field alone is written as text, so an object has other fields.
    if short not in required:
        properties.pop(short)
    return {**_object(properties, [*properties]), "type": ["string", "object"], "minLength": 1}


def _field(kind: object, *, required: bool) -> Schema:
    notes = dict(notes_on(kind))
    description = {"description": notes.pop("description")} if "description" in notes else {}
    inner = {"$ref": notes.pop("$ref")} if "$ref" in notes else {} if "enum" in notes else _type(bare_type(kind))
    if is_optional(kind) and required:
        inner = _or_null(inner)
    return {**description, **inner, **notes}


def _type(kind: object) -> Schema:
    if kind in (str, int, bool):
        return {"type": {str: "string", int: "integer", bool: "boolean"}[kind]}
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) in (UnionType, Union):
        return {"type": [_type(member)["type"] for member in get_args(kind)]}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _field(get_args(kind)[0], required=False)}
    assert is_dataclass(kind), kind
    return _record(kind)


def _or_null(schema: Schema) -> Schema:
    """Return the schema or null; a reference is replaced by its definition, because null is added to the type."""
    base: Schema = json.loads(
        files("hintplan.plans").joinpath("format", "schema_base.json").read_text(encoding="utf-8")
    )
    if "$ref" in schema:
        schema = dict(base["$defs"][schema["$ref"].rpartition("/")[2]])
        schema.pop("description", None)
    return {**schema, "type": [schema["type"], "null"]}


def _object(properties: Schema, required: list[str], *, description: str = "") -> Schema:
    schema: Schema = {"description": description} if description else {}
    schema["type"] = "object"
    if required:
        schema["required"] = required
    return schema | {"additionalProperties": False, "properties": properties}


if __name__ == "__main__":
    Path(__file__).with_name("plan.schema.json").write_text(schema_file_text(), encoding="utf-8")

"""The JSON Schema for editors: the shipped schema, completed with data from other modules.

``plan.schema.json`` describes the shape of a plan. Configuration keys, defaults of settings and options of connectors
are data in other modules; they are added here, so that each is written once. The result must not refuse a plan that
hintplan accepts.

>>> options = editor_schema()["$defs"]["table"]["properties"]["options"]
>>> "jdbc" in options["properties"]["connector"]["enum"]
True
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hintplan.plans.connectors.connector import COLUMN_OPTIONS, Connector, LookedUp
from hintplan.plans.connectors.table import CONNECTORS
from hintplan.plans.format.schema import schema_text
from hintplan.plans.model.config import KEYS
from hintplan.plans.operators import KINDS
from hintplan.plans.settings.lookup import CACHING
from hintplan.plans.settings.setting import Setting, value_text

Schema = dict[str, Any]

_ENVIRONMENT: Schema = {"pattern": "\\$\\{env:"}
_DURATION: Schema = {"$ref": "#/$defs/duration"}


def editor_schema() -> Schema:
    """Return the schema as a JSON value."""
    schema: Schema = json.loads(schema_text())
    definitions = schema["$defs"]
    _complete_config(schema["properties"]["config"])
    for group in (group for kind in KINDS for group in kind.groups):
        for name, setting in group.settings.items():
            if setting.default is not None:
                definitions[group.schema]["properties"][name]["default"] = setting.default
    options = definitions["table"]["properties"]["options"]
    options["properties"]["connector"] |= {
        "enum": list(CONNECTORS),
        "enumDescriptions": [connector.description for connector in CONNECTORS.values()],
    }
    options["allOf"] = [_connector(spec, definitions) for spec in CONNECTORS.values()]
    return schema


def editor_schema_text() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(editor_schema(), indent=2, ensure_ascii=False) + "\n"


def _complete_config(config: Schema) -> None:
    """Add every key that config may contain, with its default and values; hintplan refuses all others."""
    for name, key in KEYS.items():
        if not key.in_config:
            continue
        entry = config["properties"].setdefault(name, {"description": key.description})
        if not entry.keys() & {"enum", "$ref", "type"}:
            entry |= {"type": "string", **_suggested(key)}
        if key.default is not None:
            entry["default"] = value_text(key.default)
    config["additionalProperties"] = False


def _connector(spec: Connector, definitions: Schema) -> Schema:
    """Return the schema of the options that a connector allows, as a condition on ``connector``."""
    properties: Schema = {"connector": {}}
    properties |= {option.name: _option(option) for option in spec.options}
    if isinstance(spec, LookedUp):
        cache = definitions["lookup-cache"]["properties"]
        properties |= {name: _cache_option(cache[name], name) for name in CACHING.settings}
    patterns: Schema = {f"^{family.replace('.', '[.]')}": {"type": "string"} for family in spec.families}
    prefix = COLUMN_OPTIONS.replace(".", "[.]")
    patterns |= {f"^{prefix}.+[.]{option.name}$": {"description": option.description} for option in spec.column_options}
    allowed: Schema = {"properties": properties, "additionalProperties": False}
    if patterns:
        allowed["patternProperties"] = patterns
    required = [option.name for option in spec.options if option.required]
    if required:
        allowed["required"] = required
    condition = {"properties": {"connector": {"const": spec.name}}, "required": ["connector"]}
    return {"if": condition, "then": allowed}


def _option(option: Setting) -> Schema:
    schema: Schema = {"description": option.description, "type": "string"}
    if option.default is not None:
        schema["default"] = option.default
    if option.secret:
        return schema | {"pattern": "^\\$\\{env:[A-Za-z_][A-Za-z0-9_]*\\}$", "examples": ["${env:PASSWORD}"]}
    forms: list[Schema] = {"duration": [_DURATION, {"pattern": "^[0-9]+$"}], "int": [{"pattern": "^[0-9]{1,18}$"}]}.get(
        option.kind, []
    )
    if option.offered:
        forms = [{"enum": [*option.offered]}, *([] if option.kind == "text" else [_any_case(option.offered)])]
    return schema | ({"anyOf": [*forms, _ENVIRONMENT]} if forms else {})


def _any_case(words: Iterable[str]) -> Schema:
    spelled = ("".join(f"[{letter.upper()}{letter}]" for letter in word) for word in words)
    return {"pattern": f"^({'|'.join(spelled)})$"}


def _cache_option(setting: Schema, name: str) -> Schema:
    spec = CACHING.settings[name]
    default = {} if spec.default is None else {"default": value_text(spec.default)}
    return {"description": setting["description"], "type": "string", **_suggested(spec), **default}


def _suggested(spec: Setting) -> Schema:
    """Return suggestions for a setting that is written as text; other notations of a value are valid, too."""
    if spec.offered:
        return {"anyOf": [{"enum": [*spec.offered]}, {"type": "string"}]}
    return {"examples": ["10 min", "1 h", "1 d"]} if spec.kind == "duration" else {}

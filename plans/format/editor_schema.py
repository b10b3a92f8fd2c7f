"""The JSON Schema that editors complete and check with: the shipped one, and what it leaves to other modules.

``plan.schema.json`` has the shape of a plan. Configuration keys, defaults of settings and options of connectors are
data elsewhere, and are put in here, so they are written down once. It must not refuse a plan that hintplan accepts.

>>> options = editor_schema()["$defs"]["table"]["properties"]["options"]
>>> "jdbc" in options["properties"]["connector"]["enum"]
True
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from plans.connectors.connector import COLUMN_OPTIONS, Connector
from plans.connectors.options import OptionSpec
from plans.connectors.table import CONNECTORS
from plans.format.schema import schema_text
from plans.settings.cached import SETTINGS as CACHED_SPECS
from plans.settings.calls import CALL_SETTINGS
from plans.settings.calls import CONFIG_KEYS as CALL_KEYS
from plans.settings.config import DEFAULT_STATE_TTL, KEYS, STATE_TTL
from plans.settings.layers import Specs
from plans.settings.lookup import CONFIG_KEYS as LOOKUP_KEYS
from plans.settings.lookup import SETTINGS as LOOKUP_SPECS
from plans.settings.phases import SPECS as PHASE_SPECS
from plans.settings.values import SettingSpec, shown

__all__ = ["editor_schema", "editor_schema_text"]

Schema = dict[str, Any]

_ENVIRONMENT: Schema = {"pattern": "\\$\\{env:"}
_DURATION: Schema = {"$ref": "#/$defs/duration"}


def editor_schema() -> Schema:
    """The schema as a JSON value."""
    schema: Schema = json.loads(schema_text())
    definitions = schema["$defs"]
    _complete_config(schema["properties"]["config"])
    for name, specs in _groups().items():
        for setting, spec in specs.items():
            if spec.default is not None:
                definitions[name]["properties"][setting]["default"] = spec.default
    options = definitions["table"]["properties"]["options"]
    options["properties"]["connector"] |= {
        "enum": list(CONNECTORS),
        "enumDescriptions": [connector.description for connector in CONNECTORS.values()],
    }
    options["allOf"] = [_connector(spec, definitions) for spec in CONNECTORS.values()]
    return schema


def editor_schema_text() -> str:
    """The schema as a file."""
    return json.dumps(editor_schema(), indent=2, ensure_ascii=False) + "\n"


def _groups() -> Mapping[str, Specs]:
    """The specs of each definition that is a group of settings."""
    # Calls of every kind have the same settings; only the keys of config differ.
    calls = CALL_SETTINGS["async-table"]
    return {
        "lookup-async": LOOKUP_SPECS["async"],
        "lookup-retry": LOOKUP_SPECS["retry"],
        "lookup-cache": LOOKUP_SPECS["cache"],
        "call-async": calls["async"],
        "call-retry": calls["retry"],
        "phases": PHASE_SPECS,
        "cached": CACHED_SPECS,
    }


def _complete_config(config: Schema) -> None:
    """Every key that may stand in config, with its default and its values; hintplan refuses any other."""
    known: dict[str | None, SettingSpec] = {spec.config: spec for spec in {**CACHED_SPECS, **PHASE_SPECS}.values()}
    known |= {key: spec for key, (_, spec) in LOOKUP_KEYS.items()}
    known |= {key: spec for key, (_, _, spec) in CALL_KEYS.items()}
    for key, config_key in KEYS.items():
        if not config_key.in_config:
            continue
        found = config["properties"].setdefault(key, {"description": config_key.description})
        spec = known.get(key)
        if spec is None:
            continue
        if not found.keys() & {"enum", "$ref", "type"}:
            found |= {"type": "string", **_suggested(spec)}
        if spec.default is not None:
            found["default"] = shown(spec.default)
    config["properties"][STATE_TTL]["default"] = DEFAULT_STATE_TTL
    config["additionalProperties"] = False


def _connector(spec: Connector, definitions: Schema) -> Schema:
    """What a connector's options may be, once ``connector`` says which it is."""
    properties: Schema = {"connector": {}}
    properties |= {option.name: _option(option) for option in spec.options}
    if spec.looking_up is not None:
        cache = definitions["lookup-cache"]["properties"]
        properties |= {name: _cache_option(cache[name], name) for name in LOOKUP_SPECS["cache"]}
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


def _option(option: OptionSpec) -> Schema:
    found: Schema = {"description": option.description, "type": "string"}
    if option.default is not None:
        found["default"] = option.default
    if option.secret:
        return found | {"pattern": "^\\$\\{env:[A-Za-z_][A-Za-z0-9_]*\\}$", "examples": ["${env:PASSWORD}"]}
    if option.choices:
        found_in = [{"enum": list(option.choices)}, *([_any_case(option.choices)] if option.kind == "word" else [])]
        return found | {"anyOf": [*found_in, _ENVIRONMENT]}
    if option.kind == "bool":
        return found | {"anyOf": [{"enum": ["true", "false"]}, _any_case(("true", "false")), _ENVIRONMENT]}
    if option.kind == "duration":
        return found | {"anyOf": [_DURATION, {"pattern": "^[0-9]+$"}, _ENVIRONMENT]}
    if option.kind == "int":
        return found | {"anyOf": [{"pattern": "^[0-9]{1,18}$"}, _ENVIRONMENT]}
    return found


def _any_case(words: Iterable[str]) -> Schema:
    spelled = ("".join(f"[{letter.upper()}{letter}]" for letter in word) for word in words)
    return {"pattern": f"^({'|'.join(spelled)})$"}


def _cache_option(setting: Schema, name: str) -> Schema:
    spec = LOOKUP_SPECS["cache"][name]
    default = {} if spec.default is None else {"default": shown(spec.default)}
    return {"description": setting["description"], "type": "string", **_suggested(spec), **default}


def _suggested(spec: SettingSpec) -> Schema:
    """What to offer for a setting that is written as text; other spellings of the same are as good."""
    choices = list(spec.choices) or (["true", "false"] if spec.kind == "bool" else [])
    if choices:
        return {"anyOf": [{"enum": choices}, {"type": "string"}]}
    return {"examples": ["10 min", "1 h", "1 d"]} if spec.kind == "duration" else {}

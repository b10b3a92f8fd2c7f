"""Words the findings for people who edit a plan: the expected value, by the keyword of the schema that is violated.

Knows the keywords that ``plan.schema.json`` uses, and nothing about the meaning of operators.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from jsonschema_rs import ValidationErrorKind

from hintplan.plans.format.finding import SchemaFinding, described_json
from hintplan.plans.format.schema_formats import FORMATS
from hintplan.plans.text.jsontext import Path
from hintplan.plans.text.names import did_you_mean, nearest

Schema = dict[str, Any]

ORDER = (
    *("type", "whole", "enum", "const", "minLength", "maxLength", "pattern", "format", "minimum", "maximum"),
    *("maxItems", "minItems", "required", "uniqueItems", "minProperties", "maxProperties"),
)
"""The keywords that have messages, in the order in which they are reported."""

_ARTICLES = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "boolean": "true or false",
    "null": "null",
    "integer": "a whole number",
}


def worded(kind: ValidationErrorKind, schema: Schema, value: object, path: Path) -> Iterator[SchemaFinding]:
    """Return the findings for one keyword of ``schema`` that the ``value`` at ``path`` violates."""
    if isinstance(kind, ValidationErrorKind.Required):
        assert isinstance(value, dict)
        return _missing_key(kind.property, schema, value, path)
    if kind.name == "uniqueItems":
        assert isinstance(value, list)
        return _given_twice(value, path)
    message, hint = _WORDS[kind.name](schema, value)
    return iter([SchemaFinding(path=path, message=message, hint=hint)])


def unknown_key(key: str, schema: Schema, value: dict[str, Any], path: Path) -> SchemaFinding:
    """Return the finding for a ``key`` that ``schema`` does not allow."""
    unused = [name for name in schema["properties"] if name not in value]
    hint = did_you_mean(key, unused, what="other keys here") if unused else "remove it"
    return SchemaFinding(path=(*path, key), message=f"unknown key '{key[:80]}'", hint=hint, key=True)


def _missing_key(key: str, schema: Schema, value: dict[str, Any], path: Path) -> Iterator[SchemaFinding]:
    closed = schema.get("additionalProperties") is False
    # A misspelt key is reported as unknown, with the right one as its hint.
    if not (closed and nearest(key, [name for name in value if name not in schema["properties"]])):
        yield SchemaFinding(path=path, message=f"missing key '{key}'")


def _given_twice(value: list[Any], path: Path) -> Iterator[SchemaFinding]:
    seen = set()
    for index, child in enumerate(value):
        text = json.dumps(child)
        if text in seen:
            yield SchemaFinding(path=(*path, index), message=f"{described_json(child)} is given twice")
        seen.add(text)


Words = tuple[str, str | None]
"""A message and a hint."""


def _type(schema: Schema, value: object) -> Words:
    types = (schema["type"],) if isinstance(schema["type"], str) else tuple(schema["type"])
    expected = " or ".join(_ARTICLES[name] for name in types)
    return f"expected {expected}, found {described_json(value)}", _type_hint(schema, types, value)


def _type_hint(schema: Schema, types: tuple[str, ...], value: object) -> str | None:
    if schema.get("format") == "hintplan-duration" and isinstance(value, (int, float)):
        return f'write a number with its unit, in double quotes, such as "{json.dumps(value)} ms"'
    if "string" in types and isinstance(value, (int, float)):
        return f'write "{json.dumps(value)}", in double quotes'
    if "integer" in types and isinstance(value, str) and value.isdigit():
        return f"write {value}, without quotes"
    if "boolean" in types and isinstance(value, str) and value.lower() in ("true", "false"):
        return f"write {value.lower()}, without quotes"
    return None


def _enum(schema: Schema, value: object) -> Words:
    allowed = schema["enum"] if "enum" in schema else [schema["const"]]
    expected = f"one of {', '.join(map(described_json, allowed))}" if len(allowed) > 1 else described_json(allowed[0])
    near = nearest(value, allowed) if isinstance(value, str) and len(allowed) > 1 else None
    return f"expected {expected}, found {described_json(value)}", f"did you mean '{near}'?" if near else None


def _pattern(schema: Schema, value: str) -> Words:
    example = f"write it like '{schema['examples'][0]}'" if "examples" in schema else None
    return f"expected text that matches {schema['pattern']}, found {described_json(value)}", example


def _format(schema: Schema, value: str) -> Words:
    problem = FORMATS[schema["format"]](value)
    assert problem is not None, "the validator asked the same function"
    return problem


def _max_length(schema: Schema, value: str) -> Words:
    return f"expected at most {schema['maxLength']} characters, found {len(value)}", None


def _min_items(schema: Schema, value: list[Any]) -> Words:
    least = schema["minItems"]
    expected = _count(least, "item") if least == schema.get("maxItems") else f"at least {_count(least, 'item')}"
    return f"expected {expected}, found {len(value)}", None


def _max_items(schema: Schema, value: list[Any]) -> Words:
    most = schema["maxItems"]
    expected = _count(most, "item") if schema.get("minItems", 0) == most else f"at most {most} items"
    return f"expected {expected}, found {len(value)}", None


def _min_properties(schema: Schema, value: dict[str, Any]) -> Words:
    keys = ", ".join(f"'{name}'" for name in schema["properties"])
    return f"expected at least one of the keys {keys}", None


def _max_properties(schema: Schema, value: dict[str, Any]) -> Words:
    most = schema["maxProperties"]
    expected = _count(most, "key") if schema.get("minProperties", 0) == most else f"at most {_count(most, 'key')}"
    return f"expected {expected}, found {len(value)}", None


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


_WORDS: dict[str, Callable[[Schema, Any], Words]] = {
    "type": _type,
    "whole": _type,
    "enum": _enum,
    "const": _enum,
    "minLength": lambda schema, value: ("expected text, found an empty string", None),
    "maxLength": _max_length,
    "pattern": _pattern,
    "format": _format,
    "minimum": lambda schema, value: (f"expected at least {schema['minimum']}, found {value}", None),
    "maximum": lambda schema, value: (f"expected at most {schema['maximum']}, found {value}", None),
    "minItems": _min_items,
    "maxItems": _max_items,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
}

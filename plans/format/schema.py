"""Checks a plan document against ``plan.schema.json`` and words what is wrong for the person who edited it.

The schema file is JSON Schema 2020-12, for editors and other tools. This module reads the part of the language that
the file uses: a general validator takes seconds for a plan of 10,000 operators, and its messages speak of schemas.
``format`` goes beyond the standard: durations, times of day and column types are parsed. Knows nothing of what
operators mean.

>>> [finding.message for finding in check({"format": "1.0"})][:2]
["missing key 'name'", "missing key 'mode'"]
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from plans.declarations.durations import DurationError, parse_duration
from plans.declarations.types import parse_type
from plans.settings.setting import SettingError, iso_time
from plans.text.jsontext import Path
from plans.text.names import did_you_mean, nearest

__all__ = ["ENOUGH", "Finding", "check", "schema_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is wrong with the value at ``path``, or with its key if ``key``."""

    path: Path
    message: str
    hint: str | None = None
    key: bool = False


ENOUGH = 101
"""Findings after which nobody reads on, and a hostile file only costs time."""

Schema = dict[str, Any]
Check = Callable[[Any, Path, list[Finding]], None]

_ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description", "examples"}
# Exact types: to Python True is an int. In JSON Schema 1.0 is an integer too, but an index is not written so.
_TYPES: dict[str, type] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
}
_ARTICLES = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "boolean": "true or false",
    "null": "null",
    "integer": "a whole number",
}


def schema_text() -> str:
    """The schema file as it ships."""
    return files("plans").joinpath("format", "plan.schema.json").read_text(encoding="utf-8")


def check(document: Any) -> list[Finding]:
    """The findings in the order of the document, about the first hundred; none if it is well formed."""
    findings: list[Finding] = []
    _compiled()(document, (), findings)
    return findings


def describe(value: Any) -> str:
    """A JSON value as a message names it, cut to a readable length."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, str):
        return f"'{value[:60]}...'" if len(value) > 60 else f"'{value}'"
    return f"the number {value}"


@cache
def _compiled() -> Check:
    root: Schema = json.loads(schema_text())
    definitions: dict[str, Check] = {}

    def resolve(reference: str) -> Check:
        name = reference.removeprefix("#/$defs/")
        if name not in definitions:
            definitions[name] = _compile(root["$defs"][name], resolve)
        return definitions[name]

    return _compile(root, resolve)


def _compile(schema: Schema, resolve: Callable[[str], Check]) -> Check:
    """One function for all keywords of ``schema``; a keyword applies only to values of its type, as in the standard."""
    checks: list[Check] = []
    rest = set(schema) - _ANNOTATIONS
    for keywords, build in _BUILDERS:
        if rest & keywords:
            checks.append(build(schema, resolve))
            rest -= keywords
    if rest - {"type", "allOf"}:
        raise NotImplementedError(f"plan.schema.json uses keywords that are not read: {sorted(rest)}")
    types = _type_names(schema)
    accepted = frozenset(_TYPES[name] for name in types)
    choose = _branches(schema, resolve) if "allOf" in schema else None
    is_duration = schema.get("format") == "hintplan-duration"
    if len(checks) == 1 and not types:
        return checks[0]

    def run(value: Any, path: Path, findings: list[Finding]) -> None:
        if accepted and type(value) not in accepted:
            findings.append(_wrong_type(types, value, path, is_duration=is_duration))
            return
        branch = choose(value) if choose else None
        # A branch says again, more precisely, what the general part says.
        for one in (branch,) if branch else checks:
            one(value, path, findings)

    return run


def _branches(schema: Schema, resolve: Callable[[str], Check]) -> Callable[[Any], Check | None]:
    """``allOf`` of ``if`` a property has this constant ``then``: looked up by the value instead of tried in turn."""
    branches: dict[str, Check] = {}
    keys = set()
    for branch in schema["allOf"]:
        ((key, constant),) = branch["if"]["properties"].items()
        keys.add(key)
        branches[constant["const"]] = _compile(branch["then"], resolve)
    (discriminator,) = keys

    def choose(value: Any) -> Check | None:
        chosen = value.get(discriminator) if type(value) is dict else None
        return branches.get(chosen) if type(chosen) is str else None

    return choose


def _type_names(schema: Schema) -> tuple[str, ...]:
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def _wrong_type(types: tuple[str, ...], value: Any, path: Path, *, is_duration: bool) -> Finding:
    expected = " or ".join(_ARTICLES[name] for name in types)
    hint = None
    if is_duration and isinstance(value, (int, float)):
        hint = f'write a number with its unit, in double quotes, such as "{json.dumps(value)} ms"'
    elif "string" in types and isinstance(value, (int, float)):
        hint = f'write "{json.dumps(value)}", in double quotes'
    elif "integer" in types and isinstance(value, str) and value.isdigit():
        hint = f"write {value}, without quotes"
    elif "boolean" in types and isinstance(value, str) and value.lower() in ("true", "false"):
        hint = f"write {value.lower()}, without quotes"
    return Finding(path=path, message=f"expected {expected}, found {describe(value)}", hint=hint)


def _reference(schema: Schema, resolve: Callable[[str], Check]) -> Check:
    return resolve(schema["$ref"])


def _object(schema: Schema, resolve: Callable[[str], Check]) -> Check:
    properties = {name: _compile(child, resolve) for name, child in schema.get("properties", {}).items()}
    required = tuple(schema.get("required", ()))
    additional = schema.get("additionalProperties", True)
    # False refuses unknown keys, True takes them, a schema checks them.
    other = _compile(additional, resolve) if isinstance(additional, dict) else None
    closed = additional is False
    least, most = schema.get("minProperties", 0), schema.get("maxProperties")

    def run(value: Any, path: Path, findings: list[Finding]) -> None:
        if type(value) is not dict or len(findings) >= ENOUGH:
            return
        for key in required:
            if key not in value:
                misspelt = nearest(key, [k for k in value if k not in properties]) if closed else None
                # A misspelt key is reported as unknown, with the right one as its hint.
                if misspelt is None:
                    findings.append(Finding(path=path, message=f"missing key '{key}'"))
        for key, child in value.items():
            if len(findings) >= ENOUGH:
                return
            one = properties.get(key, other)
            if one is not None:
                one(child, (*path, key), findings)
            elif closed:
                unused = [k for k in properties if k not in value]
                hint = did_you_mean(key, unused, what="other keys here") if unused else "remove it"
                findings.append(Finding(path=(*path, key), message=f"unknown key '{key[:80]}'", hint=hint, key=True))
        if len(value) < least:
            keys = ", ".join(f"'{name}'" for name in properties)
            findings.append(Finding(path=path, message=f"expected at least one of the keys {keys}"))
        if most is not None and len(value) > most:
            expected = _count(most, "key") if least == most else f"at most {_count(most, 'key')}"
            findings.append(Finding(path=path, message=f"expected {expected}, found {len(value)}"))

    return run


def _array(schema: Schema, resolve: Callable[[str], Check]) -> Check:
    item = _compile(schema["items"], resolve) if "items" in schema else None
    least, most, unique = schema.get("minItems", 0), schema.get("maxItems"), schema.get("uniqueItems", False)

    def run(value: Any, path: Path, findings: list[Finding]) -> None:
        if type(value) is not list or len(findings) >= ENOUGH:
            return
        if len(value) < least or (most is not None and len(value) > most):
            expected = _count(least, "item") if least == most else None
            expected = expected or (
                f"at least {_count(least, 'item')}" if len(value) < least else f"at most {most} items"
            )
            findings.append(Finding(path=path, message=f"expected {expected}, found {len(value)}"))
            if most is not None and len(value) > most:
                return
        if item is not None:
            for index, child in enumerate(value):
                item(child, (*path, index), findings)
        if unique:
            seen = set()
            for index, child in enumerate(value):
                text = json.dumps(child)
                if text in seen:
                    findings.append(Finding(path=(*path, index), message=f"{describe(child)} is given twice"))
                seen.add(text)

    return run


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _enum(schema: Schema, resolve: Callable[[str], Check]) -> Check:
    allowed = schema["enum"] if "enum" in schema else [schema["const"]]
    expected = f"one of {', '.join(map(describe, allowed))}" if len(allowed) > 1 else describe(allowed[0])

    def run(value: Any, path: Path, findings: list[Finding]) -> None:
        if value not in allowed or type(value) is not type(allowed[0]):
            found = nearest(value, allowed) if isinstance(value, str) and len(allowed) > 1 else None
            hint = f"did you mean '{found}'?" if found else None
            findings.append(Finding(path=path, message=f"expected {expected}, found {describe(value)}", hint=hint))

    return run


def _text(schema: Schema, resolve: Callable[[str], Check]) -> Check:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    # A format says more precisely what its pattern says for editors.
    parse = _FORMATS[schema["format"]] if "format" in schema else None
    pattern = re.compile(schema["pattern"]) if "pattern" in schema and parse is None else None
    example = f"write it like '{schema['examples'][0]}'" if "examples" in schema else None

    def run(value: Any, path: Path, findings: list[Finding]) -> None:
        if type(value) is not str:
            return
        if len(value) < least:
            findings.append(Finding(path=path, message="expected text, found an empty string"))
        elif most is not None and len(value) > most:
            message = f"expected at most {most} characters, found {len(value)}"
            findings.append(Finding(path=path, message=message))
        elif pattern is not None and not pattern.search(value):
            message = f"expected text that matches {pattern.pattern}, found {describe(value)}"
            findings.append(Finding(path=path, message=message, hint=example))
        elif parse is not None:
            problem = parse(value)
            if problem is not None:
                findings.append(Finding(path=path, message=problem[0], hint=problem[1]))

    return run


def _number(schema: Schema, resolve: Callable[[str], Check]) -> Check:
    least = schema["minimum"]

    def run(value: Any, path: Path, findings: list[Finding]) -> None:
        if type(value) in (int, float) and value < least:
            findings.append(Finding(path=path, message=f"expected at least {least}, found {value}"))

    return run


@lru_cache(maxsize=4096)
def _duration_problem(text: str) -> tuple[str, str | None] | None:
    try:
        parse_duration(text, require_unit=True)
    except DurationError as error:
        return f"bad duration {describe(text)}: {error.reason}", error.hint
    return None


@lru_cache(maxsize=4096)
def _type_problem(text: str) -> tuple[str, str | None] | None:
    try:
        parse_type(text)
    except (ValueError, RecursionError) as error:
        return f"bad type {describe(text)}: {error}", None
    return None


def _time_problem(text: str) -> tuple[str, str | None] | None:
    try:
        iso_time(text)
    except SettingError as error:
        return str(error), error.hint
    return None


_FORMATS: dict[str, Callable[[str], tuple[str, str | None] | None]] = {
    "hintplan-duration": _duration_problem,
    "hintplan-type": _type_problem,
    "hintplan-time": _time_problem,
}
_BUILDERS: tuple[tuple[set[str], Callable[[Schema, Callable[[str], Check]], Check]], ...] = (
    ({"$ref"}, _reference),
    ({"properties", "required", "additionalProperties", "minProperties", "maxProperties"}, _object),
    ({"items", "minItems", "maxItems", "uniqueItems"}, _array),
    ({"enum", "const"}, _enum),
    ({"pattern", "format", "minLength", "maxLength"}, _text),
    ({"minimum"}, _number),
)

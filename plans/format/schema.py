"""Checks a plan document against ``plan.schema.json``, which is JSON Schema 2020-12 for editors and other tools.

jsonschema-rs decides which keywords an invalid value violates. :mod:`hintplan.plans.format.schema_findings` words the
messages. This module descends only into invalid values, in the order of the document, so that a reader sees the first
problems first. A hostile file with a million problems costs no more than a file with a hundred.

>>> [finding.message for finding in schema_findings({"format": "1.0"})][:2]
["missing key 'name'", "missing key 'mode'"]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pkgutil import get_data
from typing import Any, cast

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationErrorKind, ValidatorMap, validator_map_for

from hintplan.plans.format.finding import SchemaFinding
from hintplan.plans.format.schema_findings import ORDER, Schema, unknown_key, worded
from hintplan.plans.format.schema_formats import FORMATS
from hintplan.plans.text.jsontext import Path

ENOUGH = 101
"""The maximum number of findings: more would not help a reader, and a hostile file would only cost time."""

# Keywords about the children of a value, and keywords that refer elsewhere.
_OF_CHILDREN = {"properties", "additionalProperties", "items"}
_ELSEWHERE = {"$ref", "allOf", "$defs", "$schema", "$id"}
# Violations of these keywords make findings about the children useless.
_ENDS = {"type", "maxItems"}
_AFTER_CHILDREN = {"uniqueItems", "minProperties", "maxProperties"}


class _Whole:
    """The keyword ``whole``: JSON Schema accepts 1.0 as an integer, but an index is not written like this."""

    def __init__(self, parent: Schema, value: object, path: list[str | int]) -> None:
        pass

    def validate(self, instance: object) -> None:
        if isinstance(instance, float):
            raise ValueError("not a whole number")


def _accepts(problem: Callable[[str], object | None]) -> Callable[[str], bool]:
    return lambda text: problem(text) is None


_OPTIONS: dict[str, Any] = {
    "formats": {name: _accepts(problem) for name, problem in FORMATS.items()},
    "validate_formats": True,
    "keywords": {"whole": _Whole},
    "pattern_options": RegexOptions(),
    "offline": True,
}


def schema_text() -> str:
    """Return the shipped schema file."""
    data = get_data("hintplan.plans", "format/plan.schema.json")
    assert data is not None  # the loaders of files and of archives can both read it
    return data.decode()


def schema_findings(document: object) -> list[SchemaFinding]:
    """Return up to ``ENOUGH`` findings in the order of the document, or none if it is well formed."""
    if _validator().is_valid(document):
        return []
    findings = list(islice(_findings(document, (), "#"), ENOUGH))
    if not findings:
        raise NotImplementedError("plan.schema.json refuses the document with keywords that have no words here")
    return findings


@cache
def _root() -> Schema:
    schema = _exact(json.loads(schema_text()))
    assert isinstance(schema, dict)
    return schema


def _exact(node: object) -> object:
    """Return the schema as hintplan applies it: formats replace the patterns next to them, which are for editors."""
    if isinstance(node, list):
        return [_exact(child) for child in node]
    if not isinstance(node, dict):
        return node
    exact = {key: _exact(child) for key, child in node.items()}
    # A property may be called "format" or "type"; then the value here is its schema, not a keyword.
    if isinstance(exact.get("format"), str):
        exact.pop("pattern", None)
    types = exact.get("type")
    return {**exact, "whole": True} if isinstance(types, (str, list)) and "integer" in types else exact


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(_root(), **_OPTIONS)


@cache
def _validators() -> ValidatorMap:
    """Return a validator for every schema in the schema, by its pointer."""
    return validator_map_for(_root(), **_OPTIONS)


@cache
def _schema(pointer: str) -> Schema:
    node = _root()
    for part in pointer.split("/")[1:]:
        node = node[part]
    return node


@cache
def _own(pointer: str) -> Draft202012Validator:
    """Return a validator of the keywords at ``pointer`` that concern a value itself, and not its children."""
    own = {key: value for key, value in _schema(pointer).items() if key not in _OF_CHILDREN | _ELSEWHERE}
    return Draft202012Validator(own, **_OPTIONS)


def _findings(value: object, path: Path, pointer: str) -> Iterator[SchemaFinding]:
    """Yield the problems of ``value`` by the schema at ``pointer``: first its own, then its children's."""
    pointer = _chosen(value, pointer)
    schema = _schema(pointer)
    kinds = sorted((error.kind for error in _own(pointer).iter_errors(_shell(value, schema))), key=_rank)
    # Report only one keyword for a scalar: an empty text need not match the pattern as well.
    if kinds and (kinds[0].name in _ENDS or not isinstance(value, (dict, list))):
        yield from worded(kinds[0], schema, value, path)
        return
    for kind in kinds:
        if kind.name not in _AFTER_CHILDREN:
            yield from worded(kind, schema, value, path)
    children = cast(Any, value)  # an object or a list, if it has parts
    for key, part in _parts_of(value, schema, pointer):
        if part is None:
            yield unknown_key(str(key), schema, children, path)
        elif not _validators()[part].is_valid(children[key]):
            yield from _findings(children[key], (*path, key), part)
    for kind in kinds:
        if kind.name in _AFTER_CHILDREN:
            yield from worded(kind, schema, value, path)


def _rank(kind: ValidationErrorKind) -> int:
    return ORDER.index(kind.name)


def _chosen(value: object, pointer: str) -> str:
    """Return the pointer to the most specific schema for ``value``.

    References are followed. In an ``allOf`` of conditions on a property, the matching ``then`` is chosen, which repeats
    the surrounding schema in more detail.
    """
    schema = _schema(pointer)
    if "$ref" in schema:
        return _chosen(value, schema["$ref"])
    for branch in schema.get("allOf", ()):
        ((key, constant),) = branch["if"]["properties"].items()
        if isinstance(value, dict) and value.get(key) == constant["const"]:
            return _chosen(value, branch["then"]["$ref"])
    return pointer


def _parts_of(value: object, schema: Schema, pointer: str) -> Iterator[tuple[str | int, str | None]]:
    """Yield each key with the pointer to its value's schema, or None if the key is unknown."""
    if isinstance(value, list) and "items" in schema:
        yield from ((index, f"{pointer}/items") for index in range(len(value)))
    properties, additional = schema.get("properties", ()), schema.get("additionalProperties")
    for key in value if isinstance(value, dict) else ():
        if key in properties:
            yield key, f"{pointer}/properties/{key}"
        elif isinstance(additional, dict):
            yield key, f"{pointer}/additionalProperties"
        elif additional is False:
            yield key, None


def _shell(value: object, schema: Schema) -> object:
    """Return ``value`` without its children, which every error would copy."""
    if isinstance(value, dict):
        return dict.fromkeys(value)
    return [None] * len(value) if isinstance(value, list) and not schema.get("uniqueItems") else value

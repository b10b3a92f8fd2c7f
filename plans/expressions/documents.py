"""Recognises calls of JSON_OBJECT, JSON_ARRAY and JSON_STRING, which the compiler composes from Spark's functions.

A document is a ``concat`` of its literal texts and of an expression for each value. A hand-written ``concat`` usually
writes values in another way, and then is no document.

>>> from hintplan.plans.expressions.nodes import read_expression
>>> found = document_call(read_expression("concat('{\\"a\\":', btrim(to_json(array(s)), '[]'), ',\\"b\\":1}'))"))
>>> found is None
True
>>> found = document_call(read_expression("concat('{\\"a\\":', btrim(to_json(array(s)), '[]'), ',\\"b\\":1}')"))
>>> found.function, [(member.name, member.value.text) for member in found.members]
('JSON_OBJECT', [('a', 's'), ('b', '1')])
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hintplan.plans.expressions.nodes import Node
from hintplan.plans.frozen import frozen

_MARK = "\ue000"
"""Precedes the number of a value in the text that is parsed as JSON."""
_NULL_TEXT, _BRACKETS = Node("string", "null"), Node("string", "[]")


@frozen
class Member:
    """A value of a document, which may be a nested document. A member of an object has a name."""

    name: str | None
    value: Node | Document


@frozen
class Document:
    """A call of ``function``. ``clause`` is its handling of NULL, or empty for the function's default."""

    function: str
    members: tuple[Member, ...]
    clause: str = ""


def document_call(node: Node | None) -> Document | None:
    """Return the document that ``node`` makes, or None."""
    if node is None or node.kind != "call":
        return None
    if (value := _written_alone(node)) is not None:
        return Document(function="JSON_STRING", members=(Member(name=None, value=value),))
    parts = node.parts
    if node.text != "concat" or any(part.kind == "string" and _MARK in part.text for part in parts):
        return None
    if len(parts) == 3 and parts[1].kind == "call" and parts[1].text == "concat_ws":
        return _without_nulls(parts)
    return _of_text(parts)


def _of_text(parts: Sequence[Node]) -> Document | None:
    values = [part for part in parts if part.kind != "string"]
    numbers = iter(range(len(values)))
    text = "".join(part.text if part.kind == "string" else f'"{_MARK}{next(numbers)}"' for part in parts)
    if text[:1] not in ("{", "["):
        return None
    parsed = _loaded(text)
    return None if parsed is None else _document_of(parsed, values)


def _loaded(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_Object, parse_float=_Number, parse_int=_Number)
    except (ValueError, RecursionError):
        return None


class _Object(list[tuple[str, Any]]):
    """The members of a JSON object, in order."""


class _Number(str):
    """A JSON number as its text."""

    __slots__ = ()


def _document_of(found: object, values: Sequence[Node]) -> Document | None:
    if not isinstance(found, list):
        return None
    is_object = isinstance(found, _Object)
    entries = found if is_object else [(None, element) for element in found]
    members = [(name, _member(element, values)) for name, element in entries]
    complete = tuple(Member(name=name, value=value) for name, value in members if value is not None)
    if len(complete) != len(members):
        return None
    has_null_clause = not is_object and any(isinstance(element, str) and element.startswith(_MARK) for element in found)
    name = "JSON_OBJECT" if is_object else "JSON_ARRAY"
    return Document(function=name, members=complete, clause="NULL ON NULL" if has_null_clause else "")


def _member(found: object, values: Sequence[Node]) -> Node | Document | None:
    if isinstance(found, _Number):
        return Node("number", found)
    if isinstance(found, str) and found.startswith(_MARK):
        return _value(values[int(found[1:])])
    if isinstance(found, str):
        return Node("string", found)
    if found is None or isinstance(found, bool):
        return Node("constant", "NULL" if found is None else str(found).upper())
    return _document_of(found, values)


def _without_nulls(parts: Sequence[Node]) -> Document | None:
    """Return a document that omits NULLs: ``concat('{', concat_ws(',', concat('"a":', x)), '}')``."""
    ends = (parts[0].text, parts[2].text) if parts[0].kind == parts[2].kind == "string" else ("", "")
    if ends not in (("{", "}"), ("[", "]")) or parts[1].parts[:1] != (Node("string", ","),):
        return None
    members: list[Member] = []
    for part in parts[1].parts[1:]:
        inside = part.parts if ends[0] == "{" and part.kind == "call" and part.text == "concat" else (part,)
        document_of_part = _of_text((Node("string", ends[0]), *inside, Node("string", ends[1])))
        if document_of_part is None:
            return None
        members += document_of_part.members
    is_object = ends[0] == "{"
    name = "JSON_OBJECT" if is_object else "JSON_ARRAY"
    return Document(function=name, members=tuple(members), clause="ABSENT ON NULL" if is_object else "")


def _value(node: Node) -> Node | Document | None:
    """Return the value that ``node`` writes into a document, or None if it is not written as the compiler does."""
    if _is_call(node, "coalesce", 2) and node.parts[1] == _NULL_TEXT:
        node = node.parts[0]
    if node.kind == "cast" and node.text == "CAST STRING":
        return node.parts[0]
    return _quoted_text(node) or _written_alone(node) or document_call(node)


def _written_alone(node: Node) -> Node | None:
    """Return the value of a JSON_STRING that has an unambiguous form."""
    if _is_call(node, "nullif", 2) and node.parts[1] == _NULL_TEXT:
        inside = node.parts[0]
        return _quoted_text(inside.parts[0] if _is_call(inside, "regexp_replace", 3) else inside)
    if _is_call(node, "hp_json_number", 1) and node.parts[0].kind == "cast":
        return node.parts[0].parts[0]
    if _is_call(node, "hp_json_query", 2) and node.parts[0].kind == "call" and node.parts[0].text == "to_json":
        return node.parts[0].parts[0]
    if _is_call(node, "to_json", 1):
        return node.parts[0]
    if not _is_call(node, "concat", 3) or node.parts[0] != node.parts[2] or node.parts[0] != Node("string", '"'):
        return None
    inside = node.parts[1]
    if _is_call(inside, "replace", 3) and inside.parts[0].kind == "cast":
        return inside.parts[0].parts[0]
    return inside.parts[0] if _is_call(inside, "base64", 1) else None


def _quoted_text(node: Node) -> Node | None:
    """Return ``x`` of ``btrim(to_json(array(x)), '[]')``, or None."""
    if not _is_call(node, "btrim", 2) or node.parts[1] != _BRACKETS:
        return None
    array = node.parts[0].parts[0] if node.parts[0].kind == "call" and node.parts[0].text == "to_json" else None
    return array.parts[0] if array is not None and _is_call(array, "array", 1) else None


def _is_call(node: Node, function: str, arguments: int) -> bool:
    return node.kind == "call" and node.text == function and len(node.parts) == arguments

"""Builds JSON documents from values: the text of a value of each type, objects and arrays.

Spark's ``to_json`` writes text with the same escapes as Flink, because both use Jackson. The names in an object are
known at compile time, and are sorted, as in Flink.

>>> from hintplan.planner.expressions.spark_text import to_spark_sql
>>> to_spark_sql(json_object({"k": json_document(literal("1", STRING))}, absent=False, offset=0), {})
'\\'{"k":1}\\''
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hintplan.planner.expressions.functions.arguments import Builder, check_arguments
from hintplan.planner.expressions.nested_parts import fields, is_constructor
from hintplan.planner.expressions.typed import BOOLEAN, DOUBLE, NULL, STRING, Call, Expr, Literal, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType
from hintplan.plans.text.escapes import json_string

FORMS = ("JSON_ARRAY", "JSON_EXISTS", "JSON_OBJECT", "JSON_QUERY", "JSON_STRING", "JSON_VALUE")
"""Functions with keywords among their arguments, or that depend on the form of an argument. They are compiled by
:mod:`hintplan.planner.translation.json_calls`.
"""
_NULL = literal("null", STRING)
_IN_UTC = ("timeZone", "UTC", "timestampFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
_PLAIN_SCALE = 6
"""The largest scale at which a DECIMAL is never written with an exponent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonValue:
    """A value in a document. If the value is NULL, ``text`` is NULL, and ``or_null`` is the JSON literal ``null``."""

    text: Expr
    or_null: Expr


def json_document(text: Expr) -> JsonValue:
    """Return a document that becomes part of another document as it is."""
    return JsonValue(text=text, or_null=text)


def part_of(source: Source, name: str, value: Expr, offset: int) -> JsonValue:
    """Return the form of ``value`` in a document; raise SqlError for a type that JSON does not support."""
    place = value.offset or offset
    if value.type == NULL:
        raise source.error(f"{name} does not take NULL without a type", place, "write CAST(NULL AS STRING)")
    if isinstance(value, Literal) and value.text is None:
        return JsonValue(text=literal(None, STRING), or_null=_NULL)
    if value.type.is_text:
        if isinstance(value, Literal):
            return json_document(literal(json_string(value.text or ""), STRING))
        array = call("to_json", (call("array", (value,), STRING, place),), STRING, place)
        # Text has quotes in JSON, so null without quotes stands for NULL.
        or_null = call("btrim", (array, literal("[]", STRING)), STRING, place)
        return JsonValue(text=call("nullif", (or_null, _NULL), STRING, place), or_null=or_null)
    if isinstance(value, Literal) and (value.type.root == "BOOLEAN" or value.type.is_integer):
        return json_document(literal((value.text or "").lower(), STRING))
    text = _text_of_nested(source, name, value, place) if value.type.is_nested else _text_of(value, place)
    if text is None:
        kind = value.type.as_nullable()
        advice = "write its parts one by one" if kind.is_nested else "write it as text: CAST(... AS STRING)"
        raise source.error(f"{name} does not take {kind}", place, advice)
    return JsonValue(text=text, or_null=call("coalesce", (text, _NULL), STRING, place))


def _text_of(value: Expr, place: int) -> Expr | None:
    """Return the JSON text of a value that is not text, or None for an unsupported type."""
    root = value.type.root
    text = call("CAST", (value,), STRING, place)
    if root == "BOOLEAN" or value.type.is_integer:
        return text
    if root == "DECIMAL":
        exponent = (value.type.scale or 0) > _PLAIN_SCALE
        return call("hp_json_number", (text,), STRING, place) if exponent else text
    if root in ("FLOAT", "DOUBLE"):
        double = value if root == "DOUBLE" else call("CAST", (value,), DOUBLE, place)
        return call("hp_json_number", (call("CAST", (double,), STRING, place),), STRING, place)
    if root in ("BYTES", "BINARY", "VARBINARY"):
        return _joined([literal('"', STRING), call("base64", (value,), STRING, place), literal('"', STRING)], place)
    if root == "TIMESTAMP_LTZ":
        options = call("map", tuple(literal(word, STRING) for word in _IN_UTC), STRING, place)
        array = call("to_json", (call("array", (value,), STRING, place), options), STRING, place)
        moment = call("btrim", (array, literal("[]", STRING)), STRING, place)
        digits = (moment, literal(r"\.?0+Z", STRING), literal("Z", STRING))
        return call("nullif", (call("regexp_replace", digits, STRING, place), _NULL), STRING, place)
    if root == "TIMESTAMP":
        local = call("replace", (text, literal(" ", STRING), literal("T", STRING)), STRING, place)
        return _joined([literal('"', STRING), local, literal('"', STRING)], place)
    return None


def _text_of_nested(source: Source, name: str, value: Expr, place: int) -> Expr | None:
    """Return the JSON text of a nested value with sorted names, or None if ``to_json`` differs from Flink.

    A ROW, or an ARRAY that is constructed in the expression, may have parts of any type.
    """
    if value.type.root == "ROW":
        names = value.type.names
        members = zip(names, (part_of(source, name, each, place) for each in fields(value, place)), strict=True)
        whole = json_object(dict(members), absent=False, offset=place)
        missing = call("IS NULL", (value,), BOOLEAN, place)
        return whole if is_constructor(value) else call("CASE", (missing, literal(None, STRING), whole), STRING, place)
    if value.type.root == "ARRAY" and is_constructor(value) and isinstance(value, Call):
        elements = [part_of(source, name, each, place) for each in value.args]
        return json_array(elements, absent=False, offset=place)
    if value.type.root == "ARRAY" and _is_plain(value.type.children[0]):
        return call("to_json", (value,), STRING, place)
    if not _is_written(value.type):
        return None
    options = call("map", (literal("ignoreNullFields", STRING), literal("false", STRING)), STRING, place)
    written = call("to_json", (value, options), STRING, place)
    return call("hp_json_query", (written, literal("$", STRING)), STRING, place)


def _is_plain(kind: DataType) -> bool:
    """Return True if ``to_json`` writes values of ``kind`` as Flink does."""
    return kind.is_text or kind.is_integer or kind.root == "BOOLEAN"


def _is_written(kind: DataType) -> bool:
    """Return True if ``hp_json_query`` can turn the output of ``to_json`` into Flink's.

    It sorts names, and changes the format of numbers.
    """
    if kind.has_entries and not kind.parts[0].is_text:
        return False
    inside = kind.parts[1:] if kind.has_entries else kind.parts
    return all(map(_is_written, inside)) if kind.is_nested else _is_plain(kind) or kind.root == "DOUBLE"


def json_object(members: Mapping[str, JsonValue], *, absent: bool, offset: int) -> Expr:
    """Return the object with ``members``; a NULL member is left out if ``absent``, else it is ``null``."""
    named = {name: literal(json_string(name) + ":", STRING) for name in sorted(members, key=_in_java)}
    parts = [([before], members[name]) for name, before in named.items()]
    return _enclosed("{", "}", parts, absent=absent, offset=offset)


def json_member(name: Expr, value: Expr, offset: int) -> Expr:
    """Return a member of an object with a computed ``name``, or NULL if the name is NULL; ``value`` is never NULL."""
    array = call("to_json", (call("array", (name,), STRING, offset),), STRING, offset)
    quoted = call("btrim", (array, literal("[]", STRING)), STRING, offset)
    whole = _joined([quoted, literal(":", STRING), value], offset)
    return call("CASE", (call("IS NULL", (name,), BOOLEAN, offset), literal(None, STRING), whole), STRING, offset)


def json_array(elements: Sequence[JsonValue], *, absent: bool, offset: int) -> Expr:
    """Return the array of ``elements``; a NULL element is left out if ``absent``, else it is ``null``."""
    return _enclosed("[", "]", [([], element) for element in elements], absent=absent, offset=offset)


def _enclosed(
    opening: str, closing: str, parts: Sequence[tuple[Sequence[Expr], JsonValue]], *, absent: bool, offset: int
) -> Expr:
    comma = literal(",", STRING)
    if absent and any(part.text != part.or_null for _, part in parts):
        # concat_ws skips NULLs.
        texts = [_joined([*before, part.text], offset) for before, part in parts]
        inside: list[Expr] = [call("concat_ws", (comma, *texts), STRING, offset)]
    else:
        inside = []
        for number, (before, part) in enumerate(parts):
            inside += [*([comma] if number else []), *before, part.or_null]
    return _joined([literal(opening, STRING), *inside, literal(closing, STRING)], offset)


def _joined(texts: Sequence[Expr], offset: int) -> Expr:
    """Concatenate ``texts``, with adjacent literals merged into one."""
    pieces: list[Expr] = []
    for text in texts:
        last = pieces[-1] if pieces else None
        if isinstance(text, Literal) and isinstance(last, Literal) and None not in (text.text, last.text):
            pieces[-1] = literal(f"{last.text}{text.text}", STRING)
        else:
            pieces.append(text)
    return pieces[0] if len(pieces) == 1 else call("concat", tuple(pieces), STRING, offset)


def _in_java(name: str) -> bytes:
    """Return the sort key by which Java compares text: its UTF-16 code units."""
    return name.encode("utf-16-be", "surrogatepass")


def _quoted(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("text",), offset)
    return call(f"hp_{name.lower()}", args, STRING, offset)


BUILDERS: Mapping[str, Builder] = {"JSON_QUOTE": _quoted, "JSON_UNQUOTE": _quoted}

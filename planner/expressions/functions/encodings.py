"""Functions of text and bytes that write one as the other: character sets, hexadecimal digits, formats, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.functions.arguments import (
    Builder,
    check,
    choose,
    first_null,
    integer_or_none,
    text_of,
)
from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, INT, STRING, Expr, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType

_BYTES = DataType(root="BYTES")
_UTF = ("UTF-8", "UTF-16", "UTF-16BE", "UTF-16LE")
_BYTES_OF = ((128, 0, 0), (2048, 6, -64), (65536, 12, -32))
"""Code points up to which the first byte of UTF-8 is the point, shifted to the right, and what is added to it."""
_CONVERSION = re.compile(
    r"%(?:(?P<percent>[%n])|-?\d*(?P<text>s)|[-+ 0,]*\d*(?P<whole>[dxX])|[-+ 0,]*\d*(?:\.\d+)?(?P<real>[fe]))"
)
_TAKES: Mapping[str, tuple[str, Callable[[DataType], bool]]] = {
    "text": ("text or an integer", lambda t: t.is_text or t.is_integer),
    "whole": ("an integer", lambda t: t.is_integer),
    "real": ("a DOUBLE", lambda t: t.root == "DOUBLE"),
}


def _ascii(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """The first byte of the text in UTF-8, with its sign, and 0 for an empty one; Spark gives the code point."""
    check(source, name, args, ("text",), offset)
    point = call("ascii", args, INT, offset)

    def byte(shift: int, more: int) -> Expr:
        shifted = call("shiftright", (point, literal(shift, INT)), INT, offset)
        return call("+", (shifted, literal(more, INT)), INT, offset) if shift else point

    found = byte(18, -16)
    for limit, shift, more in reversed(_BYTES_OF):
        found = choose(call("<", (point, literal(limit, INT)), BOOLEAN, offset), byte(shift, more), found)
    return found


def _character_set(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """ENCODE and DECODE: where all characters of a text are in the set, which Spark wants."""
    check(source, name, args, ("text" if name == "ENCODE" else "any", "text"), offset)
    if name == "DECODE" and args[0].type.root not in ("BYTES", "BINARY", "VARBINARY", "NULL"):
        found = args[0].type.as_nullable()
        raise source.error(f"argument 1 of DECODE must be BYTES, found {found}", args[0].offset or offset, "convert it")
    chosen = text_of(source, f"the character set of {name}", args[1], offset).upper()
    if chosen not in _UTF or (name == "DECODE" and chosen != "UTF-8"):
        known = ", ".join(_UTF) if name == "ENCODE" else "UTF-8"
        message = f"{name} with {chosen} is not supported: Spark fails at characters that Flink replaces"
        raise source.error(message, args[1].offset or offset, f"use {known}")
    if chosen == "UTF-8":
        return cast(args[0], _BYTES if name == "ENCODE" else STRING, offset)
    return call("encode", (args[0], literal(chosen, STRING)), _BYTES, offset)


def _unhex(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """NULL if something is no digit. The first of an odd number of digits counts nothing in Flink, but must be one."""
    check(source, name, args, ("text",), offset)
    (text,) = args
    rest = call("%", (call("length", args, INT, offset), literal(2, INT)), INT, offset)

    def behind(digits: str, of: Expr) -> Expr:
        return call("unhex", (call("concat", (literal(digits, STRING), of), STRING, offset),), _BYTES, offset)

    wrong = call("IS NULL", (behind("0", text),), BOOLEAN, offset)
    others = call("substring", (text, literal(2, INT)), STRING, offset)
    counted = choose(wrong, literal(None, _BYTES), behind("00", others))
    odd = call("=", (rest, literal(1, INT)), BOOLEAN, offset)
    return choose(odd, counted, call("unhex", args, _BYTES, offset))


def _printf(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """The format is a literal of conversions that Java and Spark do alike, each for a value of its type."""
    if not args:
        raise source.error("PRINTF takes a format and values", offset, "such as PRINTF('%s: %d', name, total)")
    form = text_of(source, "the format of PRINTF", args[0], offset)
    place = args[0].offset or offset
    wanted = [m.lastgroup for m in _CONVERSION.finditer(form) if m.lastgroup != "percent"]
    if "%" in _CONVERSION.sub("", form):
        advice = "write %s, %d, %x, %f or %e, with a width and digits, in the order of the values"
        raise source.error("PRINTF has a conversion that is not supported", place, advice)
    if len(wanted) != len(args) - 1:
        message = f"the format of PRINTF takes {len(wanted)} values, found {len(args) - 1}"
        raise source.error(message, place, "check the format")
    for i, (kind, value) in enumerate(zip(wanted, args[1:], strict=True), 2):
        what, fits = _TAKES[kind or ""]
        if not fits(value.type):
            message = f"argument {i} of PRINTF must be {what}, found {value.type.as_nullable()}"
            raise source.error(message, value.offset or offset, "convert it with CAST")
    return call("format_string", args, STRING, offset)


def _overlay(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """``other`` in place of what is there from ``start`` on; the text as it is if it does not have so many characters.

    Without ``FOR`` as much goes as comes. Nothing is left behind it if less than one character is to go.
    """
    check(source, name, args, ("text", "text", "integer", "integer?"), offset)
    text, other, start = args[:3]
    length = args[3] if len(args) == 4 else call("length", (other,), INT, offset)
    size = call("length", (text,), INT, offset)
    before = call("left", (text, call("-", (start, literal(1, INT)), INT, offset)), STRING, offset)
    rest = call("substring", (text, call("+", (start, length), INT, offset)), STRING, offset)
    some = call("BETWEEN", (length, literal(1, INT), call("-", (size, start), INT, offset)), BOOLEAN, offset)
    behind = choose(some, rest, literal("", STRING))
    replaced = call("concat", (before, other, behind), STRING, offset)
    inside = call("BETWEEN", (start, literal(1, INT), size), BOOLEAN, offset)
    return first_null(args, choose(inside, replaced, cast(text, STRING, offset)))


def _address(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """INET_NTOA: the four bytes of a number, NULL if it has more."""
    check(source, name, args, ("integer",), offset)
    number = cast(args[0], BIGINT, offset)
    parts: list[Expr] = []
    for shift in (24, 16, 8, 0):
        part: Expr = call("shiftright", (number, literal(shift, INT)), BIGINT, offset) if shift else number
        if shift != 24:
            part = call("%", (part, literal(256, INT)), BIGINT, offset)
        parts += [*([literal(".", STRING)] if parts else []), call("CAST", (part,), STRING, offset)]
    there = call("BETWEEN", (number, literal(0, INT), literal((1 << 32) - 1, BIGINT)), BOOLEAN, offset)
    return choose(there, call("concat", tuple(parts), STRING, offset), literal(None, STRING))


def _truncate(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Digits behind the point cut off, of an exact number."""
    check(source, name, args, ("number", "integer?"), offset)
    value, kind = args[0], args[0].type.as_nullable()
    places = integer_or_none(args[1]) if len(args) == 2 else 0
    if kind.root in ("FLOAT", "DOUBLE"):
        message = f"TRUNCATE does not take {kind}: Flink fails at infinities, NaN and large numbers"
        raise source.error(message, value.offset or offset, "write CAST(... AS DECIMAL(p, s))")
    if places is None or places < 0:
        raise source.error("TRUNCATE takes a literal of at least 0 digits", args[1].offset or offset, "write it out")
    if kind.is_integer or places >= (kind.scale or 0):
        return value
    whole = (kind.precision or 0) - (kind.scale or 0)
    found = DataType(root="DECIMAL", precision=whole + places + 1, scale=places)
    cut = call("floor", (call("abs", (value,), kind, offset), literal(places, INT)), found, offset)
    negative = call("<", (value, literal(0, INT)), BOOLEAN, offset)
    return call("CAST", (choose(negative, call("NEGATE", (cut,), found, offset), cut),), found, offset)


BUILDERS: dict[str, Builder] = {
    "ASCII": _ascii,
    "DECODE": _character_set,
    "ENCODE": _character_set,
    "INET_NTOA": _address,
    "OVERLAY": _overlay,
    "PRINTF": _printf,
    "TRUNCATE": _truncate,
    "UNHEX": _unhex,
}

"""Functions that convert between text and bytes: character sets, hexadecimal digits, formats and addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.functions.arguments import (
    Builder,
    check_arguments,
    choose,
    first_null,
    integer_or_none,
    nonempty_text_literal,
)
from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, INT, STRING, Expr, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType

_BYTES = DataType(root="BYTES")
_UTF = ("UTF-8", "UTF-16", "UTF-16BE", "UTF-16LE")
_BYTES_OF = ((128, 0, 0), (2048, 6, -64), (65536, 12, -32))
"""Limits of code points. Below a limit, the first UTF-8 byte is the code point, shifted right and plus the addend."""
_CONVERSION = re.compile(
    r"%(?:(?P<percent>[%n])|-?\d*(?P<text>s)|[-+ 0,]*\d*(?P<whole>[dxX])|[-+ 0,]*\d*(?:\.\d+)?(?P<real>[fe]))"
)
_TAKES: Mapping[str, tuple[str, Callable[[DataType], bool]]] = {
    "text": ("text or an integer", lambda t: t.is_text or t.is_integer),
    "whole": ("an integer", lambda t: t.is_integer),
    "real": ("a DOUBLE", lambda t: t.root == "DOUBLE"),
}


def _ascii(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile ASCII: the first UTF-8 byte as a signed number, 0 for empty text. Spark returns the code point."""
    check_arguments(source, name, args, ("text",), offset)
    point = call("ascii", args, INT, offset)

    def byte(shift: int, more: int) -> Expr:
        shifted = call("shiftright", (point, literal(shift, INT)), INT, offset)
        return call("+", (shifted, literal(more, INT)), INT, offset) if shift else point

    result = byte(18, -16)
    for limit, shift, more in reversed(_BYTES_OF):
        result = choose(call("<", (point, literal(limit, INT)), BOOLEAN, offset), byte(shift, more), result)
    return result


def _character_set(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile ENCODE and DECODE, for UTF character sets only, because Spark fails at characters that a set lacks."""
    check_arguments(source, name, args, ("text" if name == "ENCODE" else "any", "text"), offset)
    if name == "DECODE" and args[0].type.root not in ("BYTES", "BINARY", "VARBINARY", "NULL"):
        kind = args[0].type.as_nullable()
        raise source.error(f"argument 1 of DECODE must be BYTES, found {kind}", args[0].offset or offset, "convert it")
    chosen = nonempty_text_literal(source, f"the character set of {name}", args[1], offset).upper()
    if chosen not in _UTF or (name == "DECODE" and chosen != "UTF-8"):
        supported = ", ".join(_UTF) if name == "ENCODE" else "UTF-8"
        message = f"{name} with {chosen} is not supported: Spark fails at characters that Flink replaces"
        raise source.error(message, args[1].offset or offset, f"use {supported}")
    if chosen == "UTF-8":
        return cast(args[0], _BYTES if name == "ENCODE" else STRING, offset)
    return call("encode", (args[0], literal(chosen, STRING)), _BYTES, offset)


def _unhex(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile UNHEX: NULL for text with a non-digit. Flink reads the first of an odd number of digits as 0."""
    check_arguments(source, name, args, ("text",), offset)
    (text,) = args
    remainder = call("%", (call("length", args, INT, offset), literal(2, INT)), INT, offset)

    def behind(digits: str, of: Expr) -> Expr:
        return call("unhex", (call("concat", (literal(digits, STRING), of), STRING, offset),), _BYTES, offset)

    wrong = call("IS NULL", (behind("0", text),), BOOLEAN, offset)
    tail = call("substring", (text, literal(2, INT)), STRING, offset)
    counted = choose(wrong, literal(None, _BYTES), behind("00", tail))
    odd = call("=", (remainder, literal(1, INT)), BOOLEAN, offset)
    return choose(odd, counted, call("unhex", args, _BYTES, offset))


def _printf(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile PRINTF with a literal format, whose conversions must give the same result in Java and Spark."""
    if not args:
        raise source.error("PRINTF takes a format and values", offset, "such as PRINTF('%s: %d', name, total)")
    form = nonempty_text_literal(source, "the format of PRINTF", args[0], offset)
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
    """Compile OVERLAY: replace the text from ``start`` on, for ``length`` characters, by ``other``.

    The default length is the length of ``other``. A ``start`` outside the text leaves it unchanged. With a length below
    1, the result ends after ``other``.
    """
    check_arguments(source, name, args, ("text", "text", "integer", "integer?"), offset)
    text, other, start = args[:3]
    length = args[3] if len(args) == 4 else call("length", (other,), INT, offset)
    size = call("length", (text,), INT, offset)
    before = call("left", (text, call("-", (start, literal(1, INT)), INT, offset)), STRING, offset)
    tail = call("substring", (text, call("+", (start, length), INT, offset)), STRING, offset)
    some = call("BETWEEN", (length, literal(1, INT), call("-", (size, start), INT, offset)), BOOLEAN, offset)
    behind = choose(some, tail, literal("", STRING))
    replaced = call("concat", (before, other, behind), STRING, offset)
    inside = call("BETWEEN", (start, literal(1, INT), size), BOOLEAN, offset)
    return first_null(args, choose(inside, replaced, cast(text, STRING, offset)))


def _address(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile INET_NTOA: the four bytes of a number, or NULL if the number has more bytes."""
    check_arguments(source, name, args, ("integer",), offset)
    number = cast(args[0], BIGINT, offset)
    parts: list[Expr] = []
    for shift in (24, 16, 8, 0):
        part: Expr = call("shiftright", (number, literal(shift, INT)), BIGINT, offset) if shift else number
        if shift != 24:
            part = call("%", (part, literal(256, INT)), BIGINT, offset)
        parts += [*([literal(".", STRING)] if parts else []), call("CAST", (part,), STRING, offset)]
    in_range = call("BETWEEN", (number, literal(0, INT), literal((1 << 32) - 1, BIGINT)), BOOLEAN, offset)
    return choose(in_range, call("concat", tuple(parts), STRING, offset), literal(None, STRING))


def _truncate(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile TRUNCATE of an exact number: cut off its fraction digits."""
    check_arguments(source, name, args, ("number", "integer?"), offset)
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
    result = DataType(root="DECIMAL", precision=whole + places + 1, scale=places)
    cut = call("floor", (call("abs", (value,), kind, offset), literal(places, INT)), result, offset)
    negative = call("<", (value, literal(0, INT)), BOOLEAN, offset)
    return call("CAST", (choose(negative, call("NEGATE", (cut,), result, offset), cut),), result, offset)


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

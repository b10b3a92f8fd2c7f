"""Functions with regular expressions, in Java's syntax, and functions that check the format of a text.

>>> BUILDERS["IS_DECIMAL"](Source(text=""), "IS_DECIMAL", (literal(1, INT),), 0).function
'IS NOT NULL'
"""

from __future__ import annotations

import re

from hintplan.planner.expressions.functions.arguments import (
    Builder,
    check_arguments,
    choose,
    integer_of,
    literal_text,
    nonempty_text_literal,
)
from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, INT, STRING, Expr, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.patterns import SLOW_HINT, slow_pattern
from hintplan.plans.declarations.types import DataType

_MAY_BE_NULL = literal(None, STRING)
_TEXTS = DataType(root="ARRAY", children=(STRING,))
_OPTIONAL = re.compile(r"\||\)(\?|\*|\{0)")
"""Finds parts of a pattern because of which a group may not take part in a match."""
_WHOLE = r"[\p{Nd}&&[\x{0}-\x{FFFF}]]{1,18}"
_DOUBLE = r"(NaN|Infinity|(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|"
_DOUBLE += r"0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
_NUMBER = rf"\A([+-]?{_WHOLE}|[\x00-\x20]*[+-]?{_DOUBLE}[\x00-\x20]*)\z"
_BYTE = "0*(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = rf"\A{_BYTE}(\.{_BYTE}){{0,3}}\z"


def _pattern(source: Source, name: str, expression: Expr, offset: int) -> str:
    pattern = nonempty_text_literal(source, f"the pattern of {name}", expression, offset)
    slow = slow_pattern(pattern)
    if slow is not None:
        raise source.error(f"the pattern of {name} {slow}", expression.offset or offset, SLOW_HINT)
    return pattern


def _matching(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile REGEXP_COUNT, REGEXP_INSTR and REGEXP_SUBSTR."""
    check_arguments(source, name, args, ("text", "text"), offset)
    _pattern(source, name, args[1], offset)
    return call(name.lower(), args, STRING if name == "REGEXP_SUBSTR" else INT, offset)


def _regexp(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("text", "text"), offset)
    _pattern(source, name, args[1], offset)
    return call("regexp_like", args, BOOLEAN, offset)


def _regexp_replace(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile REGEXP_REPLACE. Flink's replacement is plain text, so ``$`` and backslashes are escaped for Spark."""
    check_arguments(source, name, args, ("text", "text", "text"), offset)
    _pattern(source, name, args[1], offset)
    text, escaped = literal_text(args[2]), args[2]
    for special in ("\\", "$"):
        if text is None:
            pair = (literal(special, STRING), literal("\\" + special, STRING))
            escaped = call("replace", (escaped, *pair), STRING, offset)
        else:
            text = text.replace(special, "\\" + special)
            escaped = literal(text, STRING, offset)
    return call("regexp_replace", (args[0], args[1], escaped), STRING, offset)


def _regexp_extract(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile REGEXP_EXTRACT: the whole match by default, and NULL, not empty text, without a match."""
    check_arguments(source, name, args, ("text", "text", "integer?"), offset)
    pattern = _pattern(source, name, args[1], offset)
    group = _group(source, name, pattern, args[2:], 0, offset)
    extracted = call("regexp_extract", (args[0], args[1], literal(group, INT)), STRING, offset)
    return choose(call("regexp_like", args[:2], BOOLEAN, offset), extracted, _MAY_BE_NULL)


def _group(source: Source, name: str, pattern: str, given: tuple[Expr, ...], usual: int, offset: int) -> int:
    """Return the number of the group in a call, or ``usual`` if it has none; raise SqlError for a missing group."""
    group = integer_of(source, f"the group of {name}", given[0], 0, offset) if given else usual
    try:
        groups = re.compile(pattern).groups
    except re.error:
        groups = group  # Java may accept a pattern that Python does not
    if group > groups:
        raise source.error(f"the pattern has {groups} groups, and none with number {group}", offset, "check the group")
    return group


def _regexp_extract_all(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile REGEXP_EXTRACT_ALL: the first group of each match by default.

    It refuses a group that may not take part in a match, because Spark returns empty text for it.
    """
    check_arguments(source, name, args, ("text", "text", "integer?"), offset)
    pattern = _pattern(source, name, args[1], offset)
    group = _group(source, name, pattern, args[2:], 1, offset)
    if group and _OPTIONAL.search(pattern):
        message = f"{name} does not take a group that may take no part in a match"
        raise source.error(
            message, args[1].offset or offset, "take group 0, the whole match, or leave '|' and ')?' out"
        )
    extracted = call("regexp_extract_all", (args[0], args[1], literal(group, INT)), _TEXTS, offset)
    empty = call("=", (args[0], literal("", STRING)), BOOLEAN, offset)
    return choose(empty, call("CAST", (call("array", (), _TEXTS, offset),), _TEXTS, offset), extracted)


def _all_characters(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile IS_ALPHA and IS_DIGIT: FALSE for NULL and for empty text."""
    check_arguments(source, name, args, ("text",), offset)
    kind = "L" if name == "IS_ALPHA" else "Nd"
    only = call("regexp_like", (args[0], literal(f"\\A\\p{{{kind}}}+\\z", STRING)), BOOLEAN, offset)
    return call("coalesce", (only, literal("FALSE", BOOLEAN)), BOOLEAN, offset)


def _is_decimal(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile IS_DECIMAL: TRUE if Java can parse the text, with blanks, as an int, long or double; FALSE for NULL."""
    (value,) = args if len(args) == 1 else (literal(None, STRING),)
    if value.type.is_numeric:
        return call("IS NOT NULL", args, BOOLEAN, offset)
    check_arguments(source, name, args, ("text",), offset)
    matches = call("regexp_like", (value, literal(_NUMBER, STRING)), BOOLEAN, offset)
    return call("coalesce", (matches, literal("FALSE", BOOLEAN)), BOOLEAN, offset)


def _inet_aton(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile INET_ATON. With fewer than four parts, the last part is the lowest byte, the others are the highest."""
    check_arguments(source, name, args, ("text",), offset)
    parts = call("split", (args[0], literal("[.]", STRING)), _TEXTS, offset)
    size = call("size", (parts,), INT, offset)

    def part(place: Expr) -> Expr:
        return call("CAST", (call("get", (parts, place), STRING, offset),), BIGINT, offset)

    number = part(call("-", (size, literal(1, INT)), INT, offset))
    for place, bits in enumerate((24, 16, 8)):
        high = call("shiftleft", (part(literal(place, INT)), literal(bits, INT)), BIGINT, offset)
        present = call(">", (size, literal(place + 1, INT)), BOOLEAN, offset)
        number = call("+", (number, choose(present, high, literal(0, BIGINT))), BIGINT, offset)
    address = call("regexp_like", (args[0], literal(_ADDRESS, STRING)), BOOLEAN, offset)
    return choose(address, number, literal(None, BIGINT))


def _parse_url(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile PARSE_URL. The key is checked like a pattern, because Spark searches for it with a regular expression."""
    check_arguments(source, name, args, ("text", "text", "text?"), offset)
    if len(args) == 3:
        _pattern(source, f"{name}, which is its key,", args[2], offset)
    return call("try_parse_url", args, STRING, offset)


BUILDERS: dict[str, Builder] = {
    "INET_ATON": _inet_aton,
    "IS_ALPHA": _all_characters,
    "IS_DECIMAL": _is_decimal,
    "IS_DIGIT": _all_characters,
    "PARSE_URL": _parse_url,
    "REGEXP": _regexp,
    **dict.fromkeys(("REGEXP_COUNT", "REGEXP_INSTR", "REGEXP_SUBSTR"), _matching),
    "REGEXP_EXTRACT": _regexp_extract,
    "REGEXP_EXTRACT_ALL": _regexp_extract_all,
    "REGEXP_REPLACE": _regexp_replace,
}

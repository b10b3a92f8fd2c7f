"""Bounds on the size of results that small expressions can produce: repeated or padded text, and arrays of copies.

``repeat('a', 2000000000)`` is a small expression, but its result exceeds the memory of a worker. The count is known
only when Spark computes a row, so Spark gets a call that checks its count first. A text longer than ``MOST_CHARACTERS``
becomes NULL. An array of more than ``MOST_COPIES`` elements fails with an error, because copies of rows must not get
lost.

>>> bounded("lpad ( `s` , 2000000000 , 'x' )")
"lpad(`s`, nullif(least(2000000000, 10000001), 10000001), 'x')"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import sqlglot
from sqlglot.tokenizer_core import Token, TokenType

MOST_CHARACTERS = 10_000_000
MOST_COPIES = 10_000_000
MOST_DIGITS = 1_000
"""The most characters or digits of one conversion in ``format_string``."""

_OPENING, _CLOSING = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
_LEAF = re.compile(r"`(?:[^`]|``)+`(?: ?\. ?`(?:[^`]|``)+`)*|'(?:[^'\\]|\\.)*'|NULL", re.DOTALL)
_WIDTH = re.compile(r"%[^a-zA-Z%]*?(\d{4,})")
_VALUE = "__value"
_MATCHING = {
    **dict.fromkeys(("regexp_count", "regexp_extract", "regexp_extract_all", "regexp_instr"), slice(1, 2)),
    **dict.fromkeys(("regexp_like", "regexp_replace", "regexp_substr", "rlike", "split"), slice(1, 2)),
    "str_to_map": slice(1, 3),
    "try_parse_url": slice(2, 3),
}
"""The arguments that are regular expressions, or parts of one, by function."""


def bounded(sql: str) -> str:
    """Return ``sql``, an expression for Spark, with a check of the count in each call that can produce a large result.

    The result may contain lambdas, which :mod:`hintplan.runtime.expressions.arithmetic` cannot parse; so that module
    runs first.
    """
    if _GROWING_NAME.search(sql) is None:
        return sql
    return _written(sql, sqlglot.tokenize(sql, dialect="spark"))


def too_wide(form: str | None) -> str | None:
    """Return the fault in a format of ``format_string``, or None; ``form`` is None if the format is not a literal."""
    if form is None:
        return "has a format that is not written out"
    if any(len(width) > 6 or int(width) > MOST_DIGITS for width in _WIDTH.findall(form)):
        return f"calls format_string with more than {MOST_DIGITS:,} characters or digits"
    return None


def patterns(tokens: Sequence[Token]) -> Iterator[str | None]:
    """Yield the regular expressions in an expression; None for each one that is not a literal."""
    for at, token in enumerate(tokens):
        name = token.text.lower()
        called = at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.L_PAREN
        if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            continue
        if called and name in _MATCHING:
            arguments, _ = _arguments(tokens, at + 1)
            yield from (_literal(argument) for argument in arguments[_MATCHING[name]])
            if len(arguments) < 2 and token.token_type == TokenType.RLIKE:
                yield None  # no call, but the operator before an operand in parentheses
        elif token.token_type == TokenType.RLIKE and not called:
            following = tokens[at + 1 : at + 3]
            # An operator after the literal would build the pattern from several parts.
            is_alone = len(following) < 2 or following[1].text not in ("||", "+", "[", "::")
            yield _literal(following[:1]) if is_alone else None
        elif token.token_type == TokenType.RLIKE:
            yield None


def _literal(tokens: Sequence[Token]) -> str | None:
    is_text = len(tokens) == 1 and tokens[0].token_type in (TokenType.STRING, TokenType.RAW_STRING)
    return tokens[0].text if is_text else None


def _written(sql: str, tokens: Sequence[Token]) -> str:
    parts: list[str] = []
    at, end = 0, tokens[0].start if tokens else 0
    while at < len(tokens):
        token = tokens[at]
        parts.append(sql[end : token.start])
        called = at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.L_PAREN
        grow = _GROWING.get(token.text.lower()) if called and token.token_type != TokenType.IDENTIFIER else None
        if grow is None:
            parts.append(sql[token.start : token.end + 1])
            end = token.end + 1
            at += 1
            continue
        arguments, closing = _arguments(tokens, at + 1)
        parts.append(grow(token.text.lower(), [_written(sql, argument) for argument in arguments]))
        end = tokens[closing].end + 1
        at = closing + 1
    return "".join(parts)


def _arguments(tokens: Sequence[Token], opening: int) -> tuple[list[Sequence[Token]], int]:
    """Return the tokens of each argument of a call, and the index of its closing bracket."""
    arguments: list[Sequence[Token]] = []
    depth, start = 0, opening + 1
    for at in range(opening, len(tokens)):
        kind = tokens[at].token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth == 0 or (depth == 1 and kind == TokenType.COMMA):
            arguments.append(tokens[start:at])
            start = at + 1
        if depth == 0:
            return arguments, at
    raise ValueError("a call is not closed")  # the expression has been parsed


def _at_most(count: str, most: str) -> str:
    """Return ``count``, written once, or NULL if it is ``most`` or more."""
    return f"nullif(least({count}, {most}), {most})"


def _repeat(name: str, arguments: list[str]) -> str:
    if len(arguments) != 2:
        return _plain(name, arguments)
    text, count = arguments
    value = text if _LEAF.fullmatch(text.strip()) else _VALUE
    fitting = f"CASE WHEN length({value}) > 0 THEN {MOST_CHARACTERS} DIV length({value}) + 1 ELSE 2147483647 END"
    most = f"CAST({fitting} AS INT)"
    call = f"repeat({value}, {_at_most(count, most)})"
    return call if value is text else f"get(transform(array({text}), {_VALUE} -> {call}), 0)"


def _pad(name: str, arguments: list[str]) -> str:
    if len(arguments) not in (2, 3):
        return _plain(name, arguments)
    text, count, *padding = arguments
    return _plain(name, [text, _at_most(count, str(MOST_CHARACTERS + 1)), *padding])


def _copies(name: str, arguments: list[str]) -> str:
    if len(arguments) != 2:
        return _plain(name, arguments)
    value, count = arguments
    message = f"array_repeat makes more than {MOST_COPIES:,} copies"
    failing = f"CASE WHEN {_VALUE} > {MOST_COPIES} THEN CAST(raise_error('{message}') AS INT) ELSE {_VALUE} END"
    return _plain(name, [value, f"get(transform(array({count}), {_VALUE} -> {failing}), 0)"])


def _plain(name: str, arguments: list[str]) -> str:
    return f"{name}({', '.join(argument.strip() for argument in arguments)})"


_GROWING: dict[str, Callable[[str, list[str]], str]] = {
    "repeat": _repeat,
    "lpad": _pad,
    "rpad": _pad,
    "array_repeat": _copies,
}
_GROWING_NAME = re.compile("|".join(_GROWING), re.IGNORECASE)

"""Bounds what an expression can make out of little: text that repeats or pads, and arrays of copies.

``repeat('a', 2000000000)`` is a small expression, and more than a worker has room for. Counts are known when rows are
computed, so that Spark gets a call that looks at its count first. A text that would be longer than ``MOST_CHARACTERS``
is NULL; more than ``MOST_COPIES`` elements fail by name, since copies of rows must not get lost.

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
"""The width or the digits of one conversion of ``format_string``."""

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
"""The arguments of functions that are regular expressions, or stand in one."""


def bounded(sql: str) -> str:
    """Return ``sql``, an expression for Spark, with calls that make much out of little made to look at their counts.

    Lambdas may be in it, which :mod:`hintplan.runtime.expressions.arithmetic` does not know: it comes first.
    """
    tokens = sqlglot.tokenize(sql, dialect="spark")
    if not any(token.text.lower() in _GROWING for token in tokens):
        return sql
    return _written(sql, tokens)


def too_wide(form: str | None) -> str | None:
    """Say what is wrong with the format of ``format_string``, None for one that is no literal; None if it is right."""
    if form is None:
        return "has a format that is not written out"
    if any(len(width) > 6 or int(width) > MOST_DIGITS for width in _WIDTH.findall(form)):
        return f"asks format_string for more than {MOST_DIGITS:,} characters or digits"
    return None


def patterns(tokens: Sequence[Token]) -> Iterator[str | None]:
    """The regular expressions in an expression; None for one that is not written out."""
    for at, token in enumerate(tokens):
        name = token.text.lower()
        called = at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.L_PAREN
        if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            continue
        if called and name in _MATCHING:
            arguments, _ = _arguments(tokens, at + 1)
            yield from (_literal(argument) for argument in arguments[_MATCHING[name]])
            if len(arguments) < 2 and token.token_type == TokenType.RLIKE:
                yield None  # no call, but the operator before something in brackets
        elif token.token_type == TokenType.RLIKE and not called:
            following = tokens[at + 1 : at + 3]
            # Something of more than one literal would be put together from others.
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
    """Return the tokens of each argument of a call, and where its closing bracket is."""
    found: list[Sequence[Token]] = []
    depth, start = 0, opening + 1
    for at in range(opening, len(tokens)):
        kind = tokens[at].token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth == 0 or (depth == 1 and kind == TokenType.COMMA):
            found.append(tokens[start:at])
            start = at + 1
        if depth == 0:
            return found, at
    raise ValueError("a call is not closed")  # the expression has been parsed


def _at_most(count: str, most: str) -> str:
    """The ``count``, written once, or NULL from ``most`` on."""
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
    text, count, *rest = arguments
    return _plain(name, [text, _at_most(count, str(MOST_CHARACTERS + 1)), *rest])


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

"""A strict reader of JSON text, which finds the line and column of any value.

It refuses, with the position: duplicate keys, NaN and Infinity, numbers that lose precision, invalid UTF-8, lone
surrogates, trailing text, nesting deeper than 64, and texts of more than 16 MiB. The fast path is the parser of the
standard library; the scanner below runs only to word an error or to find a position. This module does not know plans.

>>> text = JsonText(b'{"a": [1, true]}')
>>> text.line_column(text.spans({("a", 1)})["a", 1][1])
(1, 11)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from hintplan.plans.errors import PlanError

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 64
MAX_MEMBERS = 100_000
"""The maximum number of keys of an object."""

Path = tuple[str | int, ...]
Span = tuple[int, int, int]
"""Offsets of a value: the start of its key (or of the value, in an array), the start of the value, and its end."""

_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[^\s\[\]{}:,\"]+")
_BLANKS = re.compile(r"[ \t\r\n]*")
_BRACKETS = re.compile(r"[\[\]{}]")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_INTEGER_DIGITS = 20
_CONFLICT = "the file has merge conflicts: keep one side at each '<<<<<<<', and remove the lines that mark them"
_MEANT = {"true": "write true", "false": "write false", "none": "write null"} | dict.fromkeys(
    ("nan", "infinity", "-infinity", "+infinity"), "write a finite number"
)


class _Rejected(Exception):
    """Raised if the fast path finds an error, which the scanner then describes."""


class JsonText:
    """A JSON text and its parsed ``value``; the constructor raises PlanError, with the position, for invalid text."""

    def __init__(self, data: bytes | str, *, file: str | None = None) -> None:
        self.file = file
        self.text = self._decode(data)
        self.value: Any = self._parse()

    def spans(self, paths: set[Path]) -> dict[Path, Span]:
        """Return the spans of the values at ``paths``, for paths that exist."""
        return {path: span for path, span in _scan(self) if path in paths}

    def error(self, offset: int, message: str, *, hint: str | None = None, path: str | None = None) -> PlanError:
        line, column = self.line_column(offset)
        return PlanError(message, file=self.file, line=line, column=column, hint=hint, path=path)

    def line_column(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, counting from 1."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    def _decode(self, data: bytes | str) -> str:
        if len(data) > MAX_BYTES:
            raise PlanError(f"the file is larger than {MAX_BYTES // 2**20} MiB", file=self.file)
        if isinstance(data, str):
            text = data
        else:
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError as error:
                before = data[: error.start].decode("utf-8")
                line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
                byte = f"found byte 0x{data[error.start]:02x}"
                message = f"expected UTF-8, {byte}"
                raise PlanError(
                    message, file=self.file, line=line, column=column, hint="save the file as UTF-8"
                ) from None
        if text.startswith("\ufeff"):
            hint = "save the file as UTF-8 without it, which some editors of Windows write"
            raise PlanError("the file begins with a byte order mark", file=self.file, line=1, column=1, hint=hint)
        return text

    def _parse(self) -> object:
        if self._depth() > MAX_DEPTH or _SURROGATE.search(self.text):
            for _ in _scan(self):
                pass
        try:
            return json.loads(
                self.text,
                object_pairs_hook=_object,
                parse_constant=_reject,
                parse_int=_integer,
                parse_float=_float,
            )
        except (json.JSONDecodeError, _Rejected) as error:
            for _ in _scan(self):
                pass
            raise PlanError(f"not valid JSON: {error}", file=self.file) from None

    def _depth(self) -> int:
        deepest = depth = 0
        # In an invalid text the quotes may not pair up; the scanner then reports the error.
        for bracket in _BRACKETS.findall(_STRING.sub("", self.text)):
            depth += 1 if bracket in "[{" else -1
            deepest = max(deepest, depth)
        return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs) or len(pairs) > MAX_MEMBERS:
        raise _Rejected
    return members


def _reject(text: str) -> NoReturn:
    raise _Rejected


def _integer(text: str) -> int:
    if len(text) > _INTEGER_DIGITS or not -(2**63) <= int(text) < 2**63:
        raise _Rejected
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _Rejected
    return value


def _scan(source: JsonText) -> Iterator[tuple[Path, Span]]:
    """Yield every value with its path and span, innermost first; raise PlanError at the first error."""
    text, position = source.text, 0
    path: list[str | int] = []
    # Per open container: its closing bracket, the offsets of its key and start, and the keys seen so far.
    open_containers: list[tuple[str, int, int, dict[str, int]]] = []
    key_start: int | None = None
    while True:
        position = _skip(text, position)
        start, key_at = position, position if key_start is None else key_start
        key_start = None
        character = text[position : position + 1]
        if character in ("{", "["):
            if len(open_containers) == MAX_DEPTH:
                raise source.error(position, f"nested more than {MAX_DEPTH} levels deep")
            closing = "}" if character == "{" else "]"
            open_containers.append((closing, key_at, start, {}))
            position = _skip(text, position + 1)
            if text[position : position + 1] != closing:
                path.append(0)
                if closing == "}":
                    position, key_start = _key(source, position, path, open_containers[-1][3])
                continue
        else:
            position = _scalar(source, position, character)
            yield tuple(path), (key_at, start, position)
        # A value has ended, or an empty container is about to close: close it, or go to the next member.
        while open_containers:
            position = _skip(text, position)
            closing, opened_key, opened, keys = open_containers[-1]
            character = text[position : position + 1]
            if character == closing:
                open_containers.pop()
                position += 1
                if len(path) > len(open_containers):
                    path.pop()
                yield tuple(path), (opened_key, opened, position)
                continue
            if character != ",":
                raise source.error(
                    position,
                    f"expected ',' or '{closing}', found {_found(text, position)}",
                    hint=_end_hint(text, position),
                )
            comma, position = position, _skip(text, position + 1)
            if text[position : position + 1] == closing:
                raise source.error(comma, f"expected no comma before '{closing}'", hint="remove the comma")
            if closing == "}":
                if len(keys) == MAX_MEMBERS:
                    raise source.error(opened, f"an object with more than {MAX_MEMBERS:,} keys")
                position, key_start = _key(source, position, path, keys)
            else:
                last = path[-1]
                path[-1] = last + 1 if isinstance(last, int) else 0
            break
        else:
            break
    position = _skip(text, position)
    if position < len(text):
        raise source.error(position, f"expected the end of the file, found {_found(text, position)}")


def _skip(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return match.end() if match else position


def _key(source: JsonText, position: int, path: list[str | int], keys: dict[str, int]) -> tuple[int, int]:
    """Read ``"key":`` and put the key in place of the last part of ``path``; return where value and key start."""
    text = source.text
    if text[position : position + 1] != '"':
        actual = _found(text, position)
        raise source.error(position, f"expected a key in double quotes, found {actual}", hint=_end_hint(text, position))
    end = _string_end(source, position)
    key = json.loads(text[position:end])
    if key in keys:
        line, _ = source.line_column(keys[key])
        raise source.error(position, f"duplicate key '{key}', first in line {line}", hint="remove one of the two")
    keys[key] = position
    path[-1] = key
    colon = _skip(text, end)
    if text[colon : colon + 1] != ":":
        raise source.error(
            colon, f"expected ':' after the key '{key}', found {_found(text, colon)}", hint=_end_hint(text, colon)
        )
    return colon + 1, position


def _scalar(source: JsonText, position: int, character: str) -> int:
    text = source.text
    if character == '"':
        return _string_end(source, position)
    word = _WORD.match(text, position)
    if word is None:
        actual = _found(text, position)
        raise source.error(position, f"expected a value, found {actual}", hint=_end_hint(text, position))
    if word[0] in ("true", "false", "null"):
        return word.end()
    number = _NUMBER.fullmatch(word[0])
    shown = _found(text, position)
    if number is None:
        hint = _end_hint(text, position) or _MEANT.get(word[0].lower(), "write text in double quotes")
        raise source.error(position, f"expected a value, found {shown}", hint=hint)
    if number[1] is None and number[2] is None:
        if len(word[0]) > _INTEGER_DIGITS or not -(2**63) <= int(word[0]) < 2**63:
            raise source.error(position, f"expected a whole number of at most 64 bit, found {shown}")
    elif float(word[0]) in (float("inf"), float("-inf")):
        raise source.error(position, f"expected a finite number, found {shown}")
    return word.end()


def _string_end(source: JsonText, position: int) -> int:
    text = source.text
    match = _STRING.match(text, position)
    if match is None:
        line_end = text.find("\n", position)
        raise source.error(
            position,
            "the text in double quotes does not end in its line, or has an invalid character or escape in it",
            hint='close the quotes; write \\n, \\t, \\" and \\\\ as such'
            if line_end >= 0
            else _end_hint(text, len(text)),
        )
    if not match[0].isascii() or "\\u" in match[0]:
        lone = _LONE_SURROGATE.search(json.loads(match[0]))
        if lone:
            raise source.error(position, "the text has half of a surrogate pair in it, which is no character")
    return match.end()


def _found(text: str, position: int) -> str:
    if position >= len(text):
        return "the end of the file"
    word = _WORD.match(text, position)
    shown = word[0] if word else text[position]
    return f"'{shown[:40]}...'" if len(shown) > 40 else f"'{shown}'"


def _end_hint(text: str, position: int) -> str | None:
    if text.startswith(("<<<<<<<", "=======", ">>>>>>>", "|||||||"), position):
        return _CONFLICT
    if text.startswith(("//", "/*", "#"), position):
        return "JSON has no comments; why an edit was made is kept with it: hintplan set PLAN PATH=VALUE --reason TEXT"
    return "the file seems to be cut off" if position >= len(text) else None

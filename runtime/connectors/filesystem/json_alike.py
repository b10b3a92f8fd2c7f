r"""JSON lines that are alike, as programs write them: the same keys in the same order, with the same marks between.

Then each line is the literals of the first line with other values in between, and the quotes tell where they are. That
takes a third of the time of a JSON parser. Lines whose NULLs or keys are others are a group of their own. A line with a
nested value or a backslash is like no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.types import DataType
from hintplan.runtime.connectors.filesystem.text_values import FLOATING, are_plain_numbers, column_of, has_negative_zero
from hintplan.runtime.types import to_arrow

Columns = dict[str, pa.Array]

_QUOTE = ord('"')
_BACKSLASH = ord("\\")
_BLANK = ord(" ")
_WINDOW = 8
_MOST_GROUPS = 8
_MOST_OTHERS = 100
"""So many lines in a row may be like no others, before the rest of a block goes to the parser."""
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_SCALAR = f"^(?:{_NUMBER}|true|false|null)$"
_WITHOUT_QUOTES = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True, slots=True)
class Value:
    """A value of each line: its key, the literal before it, the first quote in that literal, and whether it is text."""

    key: str
    before: bytes
    quote: int
    is_text: bool


def columns_alike(
    data: bytes,
    starts: np.ndarray[Any, Any],
    ends: np.ndarray[Any, Any],
    types: Mapping[str, DataType],
    parse: Callable[[bytes, int], Columns | None],
) -> Columns | None:
    """Return the columns of lines, most of which are alike; None if Spark might read a value differently.

    ``data`` are UTF-8. Each line is from one of ``starts`` to the line feed at one of ``ends``. Lines that are like no
    others go to ``parse``, with their number.
    """
    marks = np.frombuffer(data, np.uint8)
    if np.count_nonzero(marks < _BLANK) != len(ends):
        return None
    quotes = np.flatnonzero(marks == _QUOTE).astype(np.int32)
    last_quotes = _quotes_before(quotes, starts, ends)
    first_quotes = np.concatenate(([0], last_quotes[:-1]))
    others = np.zeros(len(ends), bool)
    if b"\\" in data:
        others[np.searchsorted(ends, np.flatnonzero(marks == _BACKSLASH))] = True
    groups: list[tuple[np.ndarray[Any, Any], Columns]] = []
    left = np.flatnonzero(~others)
    while left.size and len(groups) < _MOST_GROUPS:
        template = _template(data[int(starts[left[0]]) : int(ends[left[0]])])
        alike = None
        if template is not None:
            values, last = template
            per_line = sum(2 + 2 * value.is_text for value in values)
            like = left[last_quotes[left] - first_quotes[left] == per_line]
            are_all = quotes.size == per_line * len(like)
            of_lines = quotes if are_all else quotes[first_quotes[like][:, None] + np.arange(per_line)]
            of_lines = of_lines.reshape(len(like), per_line)
            alike, places = _places(data, starts[like], ends[like], of_lines, values, last)
        if alike is None or not alike[0]:
            others[left[0]] = True
            left = left[1:]
            if np.count_nonzero(others) > _MOST_OTHERS:
                break
            continue
        columns = _columns(data, places, values, types)
        if columns is None:
            return None
        groups.append((like[alike], columns))
        is_left = np.zeros(len(ends), bool)
        is_left[left] = True
        is_left[like[alike]] = False
        left = np.flatnonzero(is_left)
    others[left] = True
    rest = np.flatnonzero(others)
    if rest.size:
        pieces = [data[first : end + 1] for first, end in zip(starts[rest].tolist(), ends[rest].tolist(), strict=True)]
        parsed = parse(b"".join(pieces) if groups else data, len(rest))
        if parsed is None:
            return None
        groups.append((rest, parsed))
    return _in_order(groups)


def _quotes_before(
    quotes: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return how many of ``quotes`` are before the end of each line."""
    lines = len(ends)
    if quotes.size and quotes.size % lines == 0:
        evenly = quotes.reshape(lines, -1)
        if (evenly[:, 0] > starts).all() and (evenly[:, -1] < ends).all():
            return np.arange(1, lines + 1) * (quotes.size // lines)
    return np.searchsorted(quotes, ends)


def _in_order(groups: list[tuple[np.ndarray[Any, Any], Columns]]) -> Columns:
    """Return the columns of all groups, each with the numbers of its lines, in the order of the lines."""
    if len(groups) == 1:
        return groups[0][1]
    order = pa.array(np.argsort(np.concatenate([lines for lines, _ in groups]), kind="stable"))
    return {key: pa.concat_arrays([columns[key] for _, columns in groups]).take(order) for key in groups[0][1]}


def _template(line: bytes) -> tuple[list[Value], bytes] | None:
    """Return the values of a line, and the literal behind the last one; None if the line is not one flat object."""
    try:
        pairs = json.loads(line, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return None
    keys = [key for key, _ in pairs] if isinstance(pairs, list) else []
    if not keys or len(set(keys)) < len(keys) or any(isinstance(value, list) for _, value in pairs):
        return None
    values: list[Value] = []
    at, since = 0, 0
    for key, value in pairs:
        name = b'"' + key.encode() + b'"'
        quote = line.index(name, at)
        at = quote + len(name)
        is_text = isinstance(value, str)
        while line[at] in b": ":
            at += 1
        at += is_text
        values.append(Value(key, line[since:at], quote - since, is_text))
        since = at
        while line[at] not in (b'"' if is_text else b",} "):
            at += 1
        since, at = at, at + is_text  # its quote is in the next literal
    return values, line[since:]


def _places(
    data: bytes,
    starts: np.ndarray[Any, Any],
    ends: np.ndarray[Any, Any],
    quotes: np.ndarray[Any, Any],
    values: list[Value],
    last: bytes,
) -> tuple[np.ndarray[Any, Any], list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]]:
    """Return which lines have the literals of the template, and where each value begins and ends in those lines."""
    longest = max(len(last), *(len(value.before) for value in values))
    padded = data + bytes(longest + _WINDOW)
    windows: np.ndarray[Any, Any] = np.ndarray((len(data) + longest,), "<u8", padded, strides=(1,))
    literals: list[np.ndarray[Any, Any]] = []
    column = 0
    for value in values:
        literals.append(quotes[:, column] - value.quote)
        column += 2 + 2 * value.is_text
    literals.append(ends - len(last))
    alike = literals[0] == starts
    for literal, text in zip(literals, [*(value.before for value in values), last], strict=True):
        alike &= _are_at(windows, np.maximum(literal, 0), text)
    begins = [literal + len(value.before) for literal, value in zip(literals, values, strict=False)]
    for begin, end in zip(begins, literals[1:], strict=True):
        alike &= begin <= end
    places = zip(begins, literals[1:], strict=True)
    if alike.all():
        return alike, list(places)
    return alike, [(begin[alike], end[alike]) for begin, end in places]


def _are_at(windows: np.ndarray[Any, Any], places: np.ndarray[Any, Any], text: bytes) -> np.ndarray[Any, Any]:
    """Return at which of ``places`` the ``text`` is."""
    are_equal = np.ones(len(places), bool)
    for at in range(0, len(text), _WINDOW):
        part = text[at : at + _WINDOW]
        found = windows[places + at if at else places]
        if len(part) < _WINDOW:
            found = found & np.uint64((1 << 8 * len(part)) - 1)
        are_equal &= found == np.uint64(int.from_bytes(part, "little"))
    return are_equal


def _columns(
    data: bytes,
    places: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]],
    values: list[Value],
    types: Mapping[str, DataType],
) -> Columns | None:
    count = len(places[0][0])
    buffer = pa.py_buffer(data)
    every_second = pa.array(np.arange(0, 2 * count - 1, 2, dtype=np.int32))
    nulls = b"null" in data
    found: Columns = {}
    for value, (begin, end) in zip(values, places, strict=True):
        data_type = types.get(value.key)
        if data_type is not None and value.is_text and data_type.root in _WITHOUT_QUOTES:
            return None
        if data_type is None and value.is_text:
            continue
        offsets = np.empty(2 * count, np.int32)
        offsets[::2], offsets[1::2] = begin, end
        texts = pa.StringArray.from_buffers(2 * count - 1, pa.py_buffer(offsets), buffer).take(every_second)
        if not value.is_text:
            if not (are_plain_numbers(texts) or pc.all(pc.match_substring_regex(texts, _SCALAR)).as_py()):
                return None
            if data_type is not None and data_type.root not in _WITHOUT_QUOTES:
                if not pc.all(pc.equal(texts, "null")).as_py():
                    return None
                continue
            if nulls:
                texts = pc.if_else(pc.equal(texts, "null"), None, texts)
        if data_type is None:
            continue
        column = column_of(texts, data_type)
        if column is None or (data_type.root in FLOATING and has_negative_zero(column)):
            return None
        found[value.key] = column
    return {key: found[key] if key in found else pa.nulls(count, to_arrow(str(kind))) for key, kind in types.items()}

r"""JSON lines that are alike, as programs write them: the same keys in the same order, with the same marks between.

Then each line is the literals of the first line with other values in between, and the quotes tell where they are. That
takes a third of the time of a JSON parser. Lines whose NULLs or keys are others are a group of their own. A line is
like no other if it has a backslash, or a nested value of a field that is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.types import DataType
from hintplan.runtime.connectors.text_values import FLOATING, are_plain_numbers, column_of, has_negative_zero
from hintplan.runtime.types import to_arrow

Columns = dict[str, pa.Array]
Convert = Callable[[pa.Array, DataType], pa.Array | None]
"""Returns texts as a column of a type; None if one of them must be read otherwise."""
Key = str | tuple[str, int]

_QUOTE = ord('"')
_BACKSLASH = ord("\\")
_NULL = b"null"
_WINDOW = 8
_MOST_GROUPS = 16
_MOST_OTHERS = 100
"""So many lines in a row may be like no others, before the rest of a block goes to the parser."""
_FEW = 0.001
"""A smaller share of the lines of a block is not worth a group."""
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_TOKEN = re.compile(rb'("[^"]*"|[^\s"{}\[\]:,]+|[{}\[\]])\s*(:?)')
_OPENING, _CLOSING = (b"{", b"["), (b"}", b"]")
_SCALAR = f"^(?:{_NUMBER}|true|false|null)$"
_WITHOUT_QUOTES = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True, slots=True)
class Value:
    """A value of each line, and the literal ``before`` it.

    A value inside of a field has a pair as its ``key``. The first quote of the literal is at ``place``, and is the
    quote with the number ``quote`` in its line.
    """

    key: Key
    before: bytes
    quote: int
    place: int
    is_text: bool


@dataclass(frozen=True, slots=True)
class Group:
    """The ``lines`` that are alike, and for each key where its values begin and end, and whether they are text."""

    lines: np.ndarray[Any, Any]
    places: Mapping[Key, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], bool]]


@dataclass(frozen=True, slots=True)
class Values:
    """The places of the values of one key in all lines, which of them are in quotes, and which are absent."""

    begins: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]
    is_text: np.ndarray[Any, Any]
    is_absent: np.ndarray[Any, Any]


def columns_alike(
    data: bytes,
    starts: np.ndarray[Any, Any],
    ends: np.ndarray[Any, Any],
    types: Mapping[str, DataType],
    parse: Callable[[bytes, int], Columns | None],
    convert: Convert = column_of,
) -> Columns | None:
    """Return the columns of lines, most of which are alike; None if a value must be read otherwise.

    ``data`` are UTF-8 without control characters. Each line is from one of ``starts`` to the line feed at one of
    ``ends``. Lines that are like no others go to ``parse``, with their number. ``convert`` gives values their types; by
    default, it is for values as Spark reads them.
    """
    marks = np.frombuffer(data, np.uint8)
    groups = _groups(data, marks, starts, ends, types)
    rest = np.ones(len(ends), bool)
    for group in groups:
        rest[group.lines] = False
    others = np.flatnonzero(rest)
    parsed: Columns | None = None
    if others.size:
        pieces = [data[first : end + 1] for first, end in zip(starts[others], ends[others], strict=True)]
        parsed = parse(b"".join(pieces) if groups else data, len(others))
        if parsed is None or not groups:
            return parsed
    for group in groups:
        for key in group.places.keys() - types.keys():
            if not _is_json(data, group, key):
                return None
    columns: Columns = {}
    for key, data_type in types.items():
        if any(key in group.places for group in groups):
            column = _column(data, marks, _values(groups, rest, starts, key), data_type, convert)
            if column is None:
                return None
            columns[key] = column
        else:
            columns[key] = pa.nulls(len(ends), to_arrow(str(data_type)))
    if parsed is None:
        return columns
    order = np.arange(len(ends))
    order[others] = len(ends) + np.arange(len(others))
    return {key: pa.concat_arrays([columns[key], parsed[key]]).take(pa.array(order)) for key in types}


def _groups(
    data: bytes,
    marks: np.ndarray[Any, Any],
    starts: np.ndarray[Any, Any],
    ends: np.ndarray[Any, Any],
    read: Collection[str],
) -> list[Group]:
    """Return groups of lines that are alike; lines that are like no others are in none."""
    quotes = np.flatnonzero(marks == _QUOTE).astype(np.int32)
    last_quotes = _quotes_before(quotes, starts, ends)
    quotes_of_lines = np.diff(last_quotes, prepend=0)
    windows = _windows(data, int((ends - starts).max()))
    left = np.arange(len(ends))
    if b"\\" in data:
        has_none = np.ones(len(ends), bool)
        has_none[np.searchsorted(ends, np.flatnonzero(marks == _BACKSLASH))] = False
        left = np.flatnonzero(has_none)
    groups: list[Group] = []
    others = 0
    while left.size and len(groups) < _MOST_GROUPS and others < _MOST_OTHERS:
        if groups and left.size < _FEW * len(ends):
            break
        group = None
        template = _template(data[int(starts[left[0]]) : int(ends[left[0]])], read)
        if template is not None:
            values, last = template
            per_line = values[-1].quote + values[-1].before.count(b'"') + last.count(b'"')
            like = left[quotes_of_lines[left] == per_line]
            group = _group(windows, starts, ends, like, _quotes_at(quotes, last_quotes, like, per_line), values, last)
        if group is None or group.lines[0] != left[0]:
            others += 1
            left = left[1:]
            continue
        groups.append(group)
        if len(group.lines) == left.size:
            break
        is_left = np.zeros(len(ends), bool)
        is_left[left] = True
        is_left[group.lines] = False
        left = np.flatnonzero(is_left)
    return groups


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


def _template(line: bytes, read: Collection[str]) -> tuple[list[Value], bytes] | None:
    """Return the values of a line, also those inside of fields that are not ``read``, and the literal behind the last.

    None if the quotes do not tell where all values are, or a field that is read has a nested value.
    """
    try:
        pairs = json.loads(line, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return None
    keys = [key for key, _ in pairs] if isinstance(pairs, list) else []
    if len(set(keys)) < len(keys):
        return None
    values: list[Value] = []
    depth, since, quotes, key = 0, 0, 0, ""
    for token in _TOKEN.finditer(line):
        text, colon = token.groups()
        if text in _OPENING:
            depth += 1
            if depth > 1 and key in read:
                return None
        elif text in _CLOSING:
            depth -= 1
        elif colon:
            key = text[1:-1].decode() if depth == 1 else key
        else:
            is_text = text.startswith(b'"')
            start, end = token.span(1)
            before = line[since : start + is_text]
            if b'"' not in before:
                return None
            values.append(
                Value(key if depth == 1 else (key, len(values)), before, quotes, before.index(b'"'), is_text=is_text)
            )
            quotes += before.count(b'"')
            since = end - is_text
    return (values, line[since:]) if values else None


def _quotes_at(
    quotes: np.ndarray[Any, Any], last_quotes: np.ndarray[Any, Any], lines: np.ndarray[Any, Any], per_line: int
) -> Callable[[int], np.ndarray[Any, Any]]:
    """Return a function for the place of the quote with a number in each of ``lines``, which have ``per_line``."""
    if quotes.size == per_line * len(lines):
        of_lines = quotes.reshape(len(lines), per_line)
        return lambda number: of_lines[:, number]
    first = last_quotes[lines] - per_line
    return lambda number: quotes[first + number]


def _group(
    windows: np.ndarray[Any, Any],
    starts: np.ndarray[Any, Any],
    ends: np.ndarray[Any, Any],
    like: np.ndarray[Any, Any],
    quotes: Callable[[int], np.ndarray[Any, Any]],
    values: list[Value],
    last: bytes,
) -> Group:
    """Return the lines among ``like`` that have the literals of the template.

    ``quotes`` returns the place in each of these lines of the quote with a number.
    """
    literals = [quotes(value.quote) - value.place for value in values]
    all_lines = len(like) == len(ends)
    literals.append((ends if all_lines else ends[like]) - len(last))
    alike = literals[0] == (starts if all_lines else starts[like])
    for literal, text in zip(literals, [*(value.before for value in values), last], strict=True):
        alike &= _are_at(windows, np.maximum(literal, 0), text)
    begins = [literal + len(value.before) for literal, value in zip(literals, values, strict=False)]
    for begin, end in zip(begins, literals[1:], strict=True):
        alike &= begin <= end
    of_values = zip(values, begins, literals[1:], strict=False)
    if alike.all():
        return Group(like, {value.key: (begin, end, value.is_text) for value, begin, end in of_values})
    return Group(like[alike], {value.key: (begin[alike], end[alike], value.is_text) for value, begin, end in of_values})


def _windows(data: bytes, longest: int) -> np.ndarray[Any, Any]:
    """Return the eight bytes at each place of ``data``, with zeros behind, for texts of up to ``longest`` bytes."""
    return np.ndarray((len(data) + longest,), "<u8", data + bytes(longest + _WINDOW), strides=(1,))


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


def _values(groups: list[Group], rest: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], key: Key) -> Values:
    """Return the values of ``key`` in all lines: each is in one of ``groups``, or among the ``rest``.

    The rest is given the value of the first line of a group, so that it is not NULL, which would cost time.
    """
    lines = len(rest)
    if len(groups) == 1 and len(groups[0].lines) == lines:
        begins, ends, is_text = groups[0].places[key]
        return Values(begins, ends, is_text=np.full(lines, is_text), is_absent=np.zeros(lines, bool))
    begins, ends = starts.copy(), starts.copy()
    are_text, is_absent = np.zeros(lines, bool), np.zeros(lines, bool)
    for group in groups:
        if key in group.places:
            begins[group.lines], ends[group.lines], is_text = group.places[key]
            if is_text:
                are_text[group.lines] = True
        else:
            is_absent[group.lines] = True
    given = groups[0].lines[0]
    begins[rest], ends[rest] = begins[given], ends[given]
    are_text[rest], is_absent[rest] = are_text[given], is_absent[given]
    return Values(begins, ends, is_text=are_text, is_absent=is_absent)


def _is_json(data: bytes, group: Group, key: Key) -> bool:
    """Return true if the values of ``key``, which is not read, are JSON."""
    begins, ends, is_text = group.places[key]
    return is_text or _are_scalars(_texts(data, begins, ends))


def _column(
    data: bytes, marks: np.ndarray[Any, Any], values: Values, data_type: DataType, convert: Convert
) -> pa.Array | None:
    """Return the column of ``values`` in ``data``; None if one of them must be read otherwise."""
    is_null, is_bare = values.is_absent, ~(values.is_text | values.is_absent)
    some_text = bool(values.is_text.any())
    has_no_quotes = data_type.root in _WITHOUT_QUOTES
    if has_no_quotes and some_text:
        return None
    if not has_no_quotes and is_bare.any():
        are_null = _are_null(marks, values, is_bare)
        if (is_bare & ~are_null).any():
            return None
        is_null = is_null | are_null
    texts = _texts(data, values.begins, values.ends, is_null)
    if has_no_quotes and not are_plain_numbers(texts):
        texts = _texts(data, values.begins, values.ends, is_null | _are_null(marks, values, is_bare))
        if not _are_scalars(texts):
            return None
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), to_arrow(str(data_type)))
    column = convert(texts, data_type)
    has_odd_sign = column is not None and data_type.root in FLOATING and has_negative_zero(column)
    return None if has_odd_sign else column


def _are_scalars(texts: pa.Array) -> bool:
    """Return true if all ``texts`` are JSON without quotes, or NULL."""
    return are_plain_numbers(texts) or pc.all(pc.match_substring_regex(texts, _SCALAR)).as_py() is not False


def _are_null(marks: np.ndarray[Any, Any], values: Values, is_bare: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return which of the ``values`` are the literal ``null``; ``is_bare`` is true for those without quotes."""
    bare = np.flatnonzero(is_bare & (values.ends - values.begins == len(_NULL)))
    for place, character in enumerate(_NULL):
        bare = bare[marks[values.begins[bare] + place] == character]
    are_null = np.zeros(len(is_bare), bool)
    are_null[bare] = True
    return are_null


def _texts(
    data: bytes,
    begins: np.ndarray[Any, Any],
    ends: np.ndarray[Any, Any],
    is_null: np.ndarray[Any, Any] | None = None,
) -> pa.Array:
    lines = len(begins)
    offsets = np.empty(2 * lines, np.int32)
    offsets[::2], offsets[1::2] = begins, ends
    texts = pa.StringArray.from_buffers(2 * lines - 1, pa.py_buffer(offsets), pa.py_buffer(data))
    places = np.arange(0, 2 * lines - 1, 2, dtype=np.int32)
    return texts.take(pa.array(places, mask=is_null if is_null is not None and is_null.any() else None))

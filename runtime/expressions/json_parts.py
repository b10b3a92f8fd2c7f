"""The parts of JSON documents at one or more paths, for which msgspec parses each document once.

msgspec checks the whole document, but creates only the parts. A part is a value, or the text of a value.
:mod:`hintplan.runtime.expressions.json_reader` stays the definition of a document: it reads the documents that msgspec
may read in another way than Jackson. These are the texts with a lone surrogate or with text after the document,
``null``, and those with a number or a nesting near the limits of Jackson.

>>> price = Part(("a", "price"))
>>> read = read_parts(pa.array(['{"a": {"price": 1.50}}', '{"a": ', '{"a": 1} x']), (price,))
>>> read.values(price), read.broken, read.left
([Decimal('1.50'), UNSET, UNSET], [1], [2])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from operator import attrgetter
from types import GenericAlias
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.expressions.json_reader import MOST_BRACKETS

try:
    import msgspec
except ModuleNotFoundError:  # a worker may have only what Spark needs
    msgspec = None  # type: ignore[assignment]

MISSING: Any = None if msgspec is None else msgspec.UNSET
"""The value of a part that a document does not have."""
_LARGE_NUMBER = "[0-9]{100}|[eE][+-]?[0-9]{10}"
"""A pattern of all numbers that may have too many digits, or too large an exponent, for Jackson."""
_SAMPLED = 3
"""Three samples at this distance lie in any ten digits that follow each other."""
_NAME = re.compile(r'[^"\\\x00-\x1f]+')
_MOST_STEPS = 16
_NOWHERE = (AttributeError, IndexError, KeyError, TypeError)
_Way = tuple[str | Callable[[Any], Any], ...]
"""The steps to a part: attributes and functions."""


@dataclass(frozen=True, slots=True)
class Part:
    """The value at ``steps``, or its text if ``as_text``; without steps, only a check of the document."""

    steps: tuple[str | int, ...] = ()
    as_text: bool = False

    @property
    def is_readable(self) -> bool:
        """True if msgspec can find the part."""
        return len(self.steps) <= _MOST_STEPS and all(isinstance(s, int) or _NAME.fullmatch(s) for s in self.steps)


class Parts(NamedTuple):
    """The ``texts`` with the result of the parser for each.

    The texts at ``broken`` are no documents. The texts at ``left`` are NULL or must be read in another way. All of
    these have no parts.
    """

    texts: list[bytes]
    documents: list[Any]
    broken: list[int]
    left: list[int]
    reader: _Reader

    def values(self, part: Part) -> list[Any]:
        """Return the part of each document: for a missing part ``MISSING``, or ``null`` as text."""
        values = self.documents
        no = null_text() if part.as_text else MISSING
        for get in self.reader.getters[part]:
            values = each(get, values, _NOWHERE, no)
        return values


class _Reader(NamedTuple):
    """A parser of documents, its result for a document without parts, and the functions that lead to each part."""

    decode: Callable[[bytes], Any]
    nothing: Any
    getters: dict[Part, list[Callable[[Any], Any]]]


@lru_cache(maxsize=1)
def null_text() -> Any:
    """Return ``null`` as the text of a value."""
    return msgspec.Raw(b"null")


def each(
    function: Callable[[Any], Any],
    values: Iterable[Any],
    errors: type[Exception] | tuple[type[Exception], ...],
    no: Any,
) -> list[Any]:
    """Return the result of ``function`` for each value, or ``no`` if it raises one of ``errors``."""
    results: list[Any] = []
    append = results.append
    rest = iter(values)
    while True:
        try:
            for result in map(function, rest):
                append(result)
        except errors:
            append(no)
        else:
            return results


def read_parts(texts: pa.Array, parts: tuple[Part, ...]) -> Parts:
    """Read the ``parts`` of each document in ``texts``."""
    reader = _reader(parts)
    rows = texts.cast(pa.binary()).to_pylist()
    left = _beyond_limits(texts, rows)
    for row in left:
        rows[row] = b"0"
    documents: list[Any] = []
    broken: list[int] = []
    append = documents.append
    for text in rows:
        try:
            append(reader.decode(text))
        except (msgspec.MsgspecError, RecursionError) as error:
            (broken if _is_broken(text, error) else left).append(len(documents))
            append(reader.nothing)
    if reader.getters:  # JsonPath does not accept null as a document
        left += [row for row, document in enumerate(documents) if document is None]
    return Parts(rows, documents, broken, left, reader)


def _is_broken(text: bytes, error: Exception) -> bool:
    """Return True if ``error`` proves that ``text`` is no document for Jackson, too."""
    if type(error) is not msgspec.DecodeError or b"\\u" in text:
        return False
    message = str(error)
    return message.startswith(("Input data was truncated", "JSON is malformed: ")) and "trailing char" not in message


def is_installed() -> bool:
    """Return True if msgspec is installed."""
    return msgspec is not None


def written(texts: Iterable[bytes]) -> list[bytes | None]:
    """Return each document without blanks and with names in order; None for a text that msgspec does not read.

    The names are in the order of their code points, and numbers keep their digits.
    """
    decode = msgspec.json.Decoder(float_hook=Decimal).decode
    errors = (msgspec.MsgspecError, OverflowError, RecursionError)
    return each(_encoder().encode, map(decode, texts), errors, None)


@lru_cache(maxsize=1)
def _encoder() -> Any:
    return msgspec.json.Encoder(order="sorted", decimal_format="number")


def _beyond_limits(texts: pa.Array, rows: Sequence[bytes | None]) -> list[int]:
    """Return the rows that are NULL or may be beyond a limit of Jackson."""
    found: set[int] = set()
    if texts.null_count:
        found.update(np.flatnonzero(np.asarray(texts.is_null())).tolist())
    lengths = pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(lengths > MOST_BRACKETS).tolist():
        text = rows[row] or b""
        if text.count(b"[") + text.count(b"{") > MOST_BRACKETS:
            found.add(row)
    if _has_ten_digits(texts):
        large = pc.fill_null(pc.match_substring_regex(texts, _LARGE_NUMBER), False)
        found.update(np.flatnonzero(large.to_numpy(zero_copy_only=False)).tolist())
    return sorted(found)


def _has_ten_digits(texts: pa.Array) -> bool:
    """Return False if certainly no ten digits follow each other in any text."""
    data = texts.buffers()[2]
    if data is None:
        return False
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    text = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    sampled = _are_digits(text[::_SAMPLED])
    found = np.flatnonzero(sampled[:-2] & sampled[1:-1] & sampled[2:]) * _SAMPLED
    between = found[:, None] + np.arange(1, 2 * _SAMPLED)
    return bool(_are_digits(text[between]).all(axis=1).any())


def _are_digits(characters: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    digits: npt.NDArray[np.bool_] = (characters - ord("0")) < 10
    return digits


@lru_cache(maxsize=256)
def _reader(parts: tuple[Part, ...]) -> _Reader:
    kind, default, ways = _node([(part, part.steps) for part in parts if part.steps])
    if not ways:
        return _Reader(msgspec.json.Decoder(msgspec.Raw).decode, None, {})
    functions = {part: _functions(way) for part, way in ways.items()}
    return _Reader(msgspec.json.Decoder(kind, float_hook=Decimal).decode, default or MISSING, functions)


def _node(parts: Sequence[tuple[Part, tuple[str | int, ...]]]) -> tuple[Any, Any, dict[Part, _Way]]:
    """Return the type of a value with ``parts`` at these steps below it, its default, and the way to each part."""
    if not parts:
        return msgspec.Raw, None, {}
    if any(not steps for _, steps in parts):
        if all(not steps and part.as_text for part, steps in parts):
            return msgspec.Raw, null_text(), {part: () for part, _ in parts}
        return Any, MISSING, {part: _of_value(part, steps) for part, steps in parts}
    kinds: list[Any] = [str, int, float, bool, None]
    ways: dict[Part, _Way] = {}
    default: Any = None
    fields = []
    names = sorted({steps[0] for _, steps in parts if isinstance(steps[0], str)})
    for number, name in enumerate(names):
        inner, without, below = _node([(part, steps[1:]) for part, steps in parts if steps[0] == name])
        fields.append((f"p{number}", inner, without))
        ways |= {part: (f"p{number}", *way) for part, way in below.items()}
    positions = {part: steps[0] for part, steps in parts if isinstance(steps[0], int)}
    if fields:
        renamed = {f"p{number}": name for number, name in enumerate(names)}
        struct = msgspec.defstruct("Node", fields, rename=renamed, frozen=True, gc=False)
        kinds.append(struct)
        default = struct()
    else:
        kinds.append(dict)
    if positions:
        inner, without, below = _node([(part, steps[1:]) for part, steps in parts if part in positions])
        kinds.append(GenericAlias(tuple, (inner, ...)))
        ways |= {part: (_element(positions[part], without), *way) for part, way in below.items()}
    else:
        kinds.append(list)
    union: Any = kinds[0]
    for kind in kinds[1:]:
        union = union | kind
    return union, default, ways


def _element(position: int, otherwise: Any) -> Callable[[Any], Any]:
    least = -position if position < 0 else position + 1

    def get(value: Any) -> Any:
        return value[position] if type(value) is tuple and len(value) >= least else otherwise

    return get


def _of_value(part: Part, steps: tuple[str | int, ...]) -> _Way:
    """Return the way to a part of a value that is read as a whole."""
    way = tuple(partial(_child, step=step) for step in steps)
    return (*way, _text_of) if part.as_text else way


def _child(value: Any, *, step: str | int) -> Any:
    if isinstance(value, list) and isinstance(step, int):
        return value[step]
    if isinstance(value, dict):
        return value[step]
    raise TypeError


def _text_of(value: Any) -> Any:
    return null_text() if value is MISSING else msgspec.Raw(_encoder().encode(value))


def _functions(way: _Way) -> list[Callable[[Any], Any]]:
    """Return the functions that follow ``way``, one for all attributes in a row."""
    functions: list[Callable[[Any], Any]] = []
    names: list[str] = []
    for step in way:
        if isinstance(step, str):
            names.append(step)
            continue
        if names:
            functions.append(attrgetter(".".join(names)))
            names = []
        functions.append(step)
    return [*functions, attrgetter(".".join(names))] if names else functions

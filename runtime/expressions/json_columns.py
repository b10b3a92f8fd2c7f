"""JSON functions over a column of texts, with msgspec as the parser of the documents that it reads like Flink.

msgspec reads a document in a tenth of the time. It creates only the value at the path, but checks the whole document.
:mod:`hintplan.runtime.expressions.json_reader` stays the definition, and reads all documents that msgspec rejects or
that may have a different meaning there: text after the document, lone surrogates, a number or a nesting near the limits
of Jackson, or a value of another kind on the path. If msgspec is not installed, it reads all documents.

>>> json_column(pa.array(['{"a": {"b": 1.50}}', '{"a": 1} x', None]), "hp_json_value", "$.a.b")
['1.50', None, None]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter, itemgetter
from types import GenericAlias
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.json_paths import JsonPath, parse_json_path
from hintplan.runtime.expressions import json_documents
from hintplan.runtime.expressions.json_reader import MOST_BRACKETS, brackets, is_too_deep, unsigned_zero
from hintplan.runtime.expressions.json_writer import document_text, quickly_written, sorts_as_in_java

try:
    import msgspec
except ModuleNotFoundError:  # a worker may have only what Spark needs
    msgspec = None  # type: ignore[assignment]

_NOWHERE = object()
"""The value at a path that leads nowhere in a document."""
_LEFT = object()
"""The value of a text that the other reader reads."""
_LARGE_NUMBER = "[0-9]{100}|[eE][+-]?[0-9]{6}"
"""A pattern of all numbers that may have too many digits, or too large an exponent, for Jackson."""
_NAME = re.compile(r'[^"\\\x00-\x1f]+')
_MOST_STEPS = 16
_BLANKS = " \t\n\r"
_KINDS = {"{": "object", "[": "array"}


def json_column(texts: pa.Array, name: str, *constants: Any) -> list[Any] | None:
    """Return the result of the function ``name`` for each text; None if each text must be read by itself."""
    column = _COLUMNS.get(name)
    return None if column is None or msgspec is None else column(texts, *constants)


def _values(texts: pa.Array, path: JsonPath) -> Iterator[tuple[str | None, Any]]:
    """Yield each text with the value at ``path``, ``_NOWHERE`` or ``_LEFT``."""
    reader = _path_reader(path.steps)
    if reader is None:
        yield from ((text, _LEFT) for text in texts.to_pylist())
        return
    decode, follow = reader
    for text, is_plain in _checked(texts):
        if not is_plain:
            yield text, _LEFT
            continue
        try:
            document = decode(text)
        except (msgspec.MsgspecError, RecursionError):
            yield text, _LEFT
            continue
        try:
            value = follow(document)
        except (AttributeError, IndexError, TypeError):
            value = _NOWHERE
        yield text, _NOWHERE if value is None or value is msgspec.UNSET else value


def _checked(texts: pa.Array) -> Iterator[tuple[Any, bool]]:
    """Yield each text, and True if it is within all limits of Jackson."""
    large = pc.match_substring_regex(texts, _LARGE_NUMBER)
    rows = texts.to_pylist()
    if pc.any(large).as_py():
        marks = large.to_pylist()
    else:
        marks = [False] * len(rows)
    for text, mark in zip(rows, marks, strict=True):
        plain = text is not None and not mark and (len(text) <= MOST_BRACKETS or brackets(text) <= MOST_BRACKETS)
        yield text, plain


class _PathReader(NamedTuple):
    """A parser of documents that creates the values on a path, and the function that follows the path in its result."""

    decode: Callable[[str], Any]
    follow: Callable[[Any], Any]


@lru_cache(maxsize=256)
def _path_reader(steps: tuple[str | int, ...]) -> _PathReader | None:
    if not 0 < len(steps) <= _MOST_STEPS or not all(isinstance(s, int) or _NAME.fullmatch(s) for s in steps):
        return None
    kind: Any = Any
    default: Any = msgspec.UNSET
    getters: list[Callable[[Any], Any]] = []
    for step in reversed(steps):
        inner = kind if kind is Any else kind | None
        if isinstance(step, str):
            kind = msgspec.defstruct("Part", [("part", inner, default)], rename={"part": step}, frozen=True, gc=False)
            default = kind()
            getters.append(attrgetter("part"))
        else:
            kind, default = GenericAlias(tuple, (inner, ...)), ()
            getters.append(itemgetter(step))
    follow = tuple(reversed(getters))
    if all(isinstance(step, str) for step in steps):
        follow = (attrgetter(".".join(["part"] * len(steps))),)
    decode = msgspec.json.Decoder(kind, float_hook=_real).decode
    return _PathReader(decode, follow[0] if len(follow) == 1 else _chain(follow))


def _chain(getters: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def follow(value: Any) -> Any:
        for get in getters:
            value = get(value)
        return value

    return follow


def _real(text: str) -> Decimal:
    return unsigned_zero(Decimal(text))


def _documents(texts: pa.Array, kind: str) -> list[bool]:
    decode = msgspec.json.Decoder(msgspec.Raw).decode
    results = []
    for text, is_plain in _checked(texts):
        if is_plain:
            try:
                decode(text)
            except (msgspec.MsgspecError, RecursionError):
                pass
            else:
                mark = text[0] if text[0] not in _BLANKS else text.lstrip(_BLANKS)[0]
                results.append(kind in ("value", _KINDS.get(mark, "scalar")))
                continue
        results.append(json_documents.is_document(text, kind))
    return results


def _exists(texts: pa.Array, path: str, on_error: bool | None = False) -> list[bool | None]:
    parsed = parse_json_path(path)
    nowhere = on_error if parsed.strict else False
    return [
        nowhere if value is _NOWHERE else json_documents.json_exists(text, path, on_error) if value is _LEFT else True
        for text, value in _values(texts, parsed)
    ]


def _query(
    texts: pa.Array, path: str, wrapper: str = "without", on_empty: str | None = None, on_error: str | None = None
) -> list[str | None]:
    parsed = parse_json_path(path)
    nowhere = on_error if parsed.strict else on_empty
    results: list[str | None] = []
    for text, value in _values(texts, parsed):
        if value is _LEFT:
            results.append(json_documents.json_query(text, path, wrapper, on_empty, on_error))
            continue
        if value is not _NOWHERE and (
            wrapper == "unconditional" or (wrapper == "conditional" and not isinstance(value, list))
        ):
            value = [value]
        if isinstance(value, dict | list):
            result = document_text(value) if "\\u" in (text or "") else _written(value)
            results.append(on_error if is_too_deep(result, "[") else result)
        else:
            results.append(nowhere)
    return results


def _written(value: object) -> str:
    """Return :func:`quickly_written`."""
    try:
        text: str = _encoder().encode(value).decode()
    except (msgspec.MsgspecError, OverflowError, RecursionError):
        return quickly_written(value)
    return text if sorts_as_in_java(text) else document_text(value)


@lru_cache(maxsize=1)
def _encoder() -> Any:
    return msgspec.json.Encoder(order="sorted", decimal_format="number")


def _scalars(scalar: json_documents.Scalar) -> Callable[..., list[Any]]:
    def column(texts: pa.Array, path: str, on_empty: Any = None, on_error: Any = None) -> list[Any]:
        parsed = parse_json_path(path)
        nowhere = on_error if parsed.strict else on_empty
        results = []
        for text, value in _values(texts, parsed):
            if value is _LEFT:
                results.append(scalar.function(text, path, on_empty, on_error))
            elif value is _NOWHERE or isinstance(value, dict | list):
                results.append(nowhere)
            else:
                converted = scalar.convert(value)
                results.append(on_error if converted is None else converted)
        return results

    return column


_COLUMNS: dict[str, Callable[..., list[Any]]] = {
    "hp_is_json": _documents,
    "hp_json_exists": _exists,
    "hp_json_query": _query,
    **{name: _scalars(scalar) for name, scalar in json_documents.SCALARS.items()},
}

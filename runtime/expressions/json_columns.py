"""JSON functions over a column of texts, with msgspec as the parser of the documents that it reads like Flink.

msgspec reads a document in a tenth of the time, and all functions over a column share its result
(:mod:`hintplan.runtime.expressions.json_parts`). :mod:`hintplan.runtime.expressions.json_documents` stays the
definition, and computes what msgspec leaves, or writes in another way than Flink. If msgspec is not installed, it
computes everything.

>>> json_column(pa.array(['{"a": {"b": 1.50}}', '{"a": 1} x', None]), "hp_json_value", ("$.a.b",))
['1.50', None, None]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.json_paths import parse_json_path
from hintplan.runtime.expressions import json_documents
from hintplan.runtime.expressions.json_parts import MISSING, Part, Parts, is_installed, null_text, read_parts, written
from hintplan.runtime.expressions.json_reader import MOST_BRACKETS, unsigned_zero
from hintplan.runtime.expressions.json_writer import scalar_text

_BLANKS = "[ \\t\\n\\r]*"
_OTHERWISE_IN_FLINK = r"[\x{E000}-\x{10FFFF}]|\\u|-0(\.0*)?([eE,\]}]|$)"
"""A pattern of all written documents that Flink may write otherwise: other escapes, order of names, or zeros."""
_LARGEST_SHARED = 1 << 24
"""The bytes of the largest column whose parsed documents are kept for the next function."""


class _Shared(NamedTuple):
    """The documents of a column for the functions that follow; it keeps the column, so that ``key`` stays unique."""

    key: tuple[Any, ...]
    texts: pa.Array
    read: Parts
    awaited: list[Part]


_shared: _Shared | None = None


def part_of(name: str, constants: Sequence[Any]) -> Part | None:
    """Return the part of a document that the function ``name`` needs; None if each text must be read by itself."""
    column = _COLUMNS.get(name)
    if column is None or not is_installed():
        return None
    steps = () if name == "hp_is_json" else parse_json_path(constants[0]).steps
    part = Part(steps, as_text=column.as_text)
    return part if part.is_readable and (steps or name in ("hp_is_json", "hp_json_query")) else None


def json_column(texts: pa.Array, name: str, constants: Sequence[Any], others: Sequence[Part] = ()) -> Any:
    """Return the result of the function ``name`` for each text; None if each text must be read by itself.

    ``others`` are the parts that functions of the same column need, in the same order for each of these functions.
    """
    part = part_of(name, constants)
    return None if part is None else _COLUMNS[name].function(texts, _read(texts, part, tuple(others)), part, *constants)


def _read(texts: pa.Array, part: Part, others: tuple[Part, ...]) -> Parts:
    """Read ``part`` and the ``others``, unless an earlier call has read them from the same column."""
    global _shared
    key = (others, texts.offset, len(texts), *(buffer and buffer.address for buffer in texts.buffers()))
    shared = _shared if _shared is not None and _shared.key == key and part in _shared.awaited else None
    if shared is None:
        if part not in others or texts.nbytes > _LARGEST_SHARED:
            return read_parts(texts, (part,))
        shared = _Shared(key, texts, read_parts(texts, tuple(dict.fromkeys(others))), [*others])
    shared.awaited.remove(part)
    _shared = shared if shared.awaited else None
    return shared.read


def _are_documents(texts: pa.Array, read: Parts, _part: Part, kind: str) -> pa.Array:
    are = np.ones(len(texts), np.bool_)
    if kind != "value":
        opening = {"object": r"\{", "array": r"\[", "scalar": r"[^\[{ \t\n\r]"}[kind]
        of_kind = pc.match_substring_regex(texts, f"^{_BLANKS}{opening}")
        are = pc.fill_null(of_kind, False).to_numpy(zero_copy_only=False).copy()
    are[read.broken] = False
    for row in read.left:
        are[row] = json_documents.is_document(texts[row].as_py(), kind)
    return pa.array(are)


def _exists(texts: pa.Array, read: Parts, part: Part, path: str, on_error: bool | None = False) -> list[bool | None]:
    nowhere = on_error if parse_json_path(path).strict else False
    null = null_text()
    results = [nowhere if value == null else True for value in read.values(part)]
    for row in read.left:
        results[row] = json_documents.json_exists(texts[row].as_py(), path, on_error)
    return results


def _query(
    texts: pa.Array,
    read: Parts,
    part: Part,
    path: str,
    wrapper: str = "without",
    on_empty: str | None = None,
    on_error: str | None = None,
) -> pa.Array:
    nowhere = pa.scalar(on_error if parse_json_path(path).strict else on_empty, pa.string())
    # JsonPath does not accept null as a document.
    null = nowhere if part.steps else pa.scalar(on_error, pa.string())
    parts = read.values(part) if part.steps else read.texts
    found = pa.array(written(parts), pa.binary()).cast(pa.string())
    results = _wrapped(found, wrapper, nowhere)
    results = pc.if_else(pc.equal(found, "null"), null, results)
    broken = {} if part.steps else dict.fromkeys(read.broken, nowhere.as_py())
    others = broken | {
        row: json_documents.json_query(texts[row].as_py(), path, wrapper, on_empty, on_error)
        for row in {*_otherwise_in_flink(found), *read.left}.difference(broken)
    }
    if not others:
        return results
    mask = np.zeros(len(texts), np.bool_)
    mask[[*others]] = True
    return pc.replace_with_mask(results, pa.array(mask), pa.array([others[row] for row in sorted(others)], pa.string()))


def _wrapped(written: pa.Array, wrapper: str, nowhere: pa.Scalar) -> pa.Array:
    is_array = pc.starts_with(written, "[")
    if wrapper == "without":
        return pc.if_else(pc.or_(is_array, pc.starts_with(written, "{")), written, nowhere)
    wrapped = pc.binary_join_element_wise("[", written, "]", "")
    return pc.if_else(is_array, written, wrapped) if wrapper == "conditional" else wrapped


def _otherwise_in_flink(written: pa.Array) -> list[int]:
    """Return the rows that msgspec has not written, or may write in another way than Flink."""
    may_differ = pc.or_kleene(
        pc.greater(pc.binary_length(written), MOST_BRACKETS),
        pc.match_substring_regex(written, _OTHERWISE_IN_FLINK),
    )
    rows: list[int] = np.flatnonzero(pc.fill_null(may_differ, True).to_numpy(zero_copy_only=False)).tolist()
    return rows


def _scalars(scalar: json_documents.Scalar) -> Callable[..., list[Any]]:
    is_text = scalar.convert is scalar_text

    def column(
        texts: pa.Array, read: Parts, part: Part, path: str, on_empty: Any = None, on_error: Any = None
    ) -> list[Any]:
        nowhere = on_error if parse_json_path(path).strict else on_empty

        def converted(value: Any) -> Any:
            if is_text and type(value) is Decimal and value:
                return str(value)
            if value is MISSING or value is None or isinstance(value, dict | list):
                return nowhere
            result = scalar.convert(unsigned_zero(value) if isinstance(value, Decimal) else value)
            return on_error if result is None else result

        values = read.values(part)
        if is_text:
            results = [value if type(value) is str else converted(value) for value in values]
        else:
            results = [*map(converted, values)]
        for row in read.left:
            results[row] = scalar.function(texts[row].as_py(), path, on_empty, on_error)
        return results

    return column


class _Column(NamedTuple):
    """A function over a column, its parsed documents, its part of them and its constants."""

    function: Callable[..., Any]
    as_text: bool = False


_COLUMNS: dict[str, _Column] = {
    "hp_is_json": _Column(_are_documents),
    "hp_json_exists": _Column(_exists, as_text=True),
    "hp_json_query": _Column(_query, as_text=True),
    **{name: _Column(_scalars(scalar)) for name, scalar in json_documents.SCALARS.items()},
}

r"""Lines of CSV and JSON files for batches of rows, to the byte as Spark's writers with the options of this connector.

>>> style = LineStyle(format="json", names=("a", "b"), java=17)
>>> batch = pa.record_batch({"a": [1, None], "b": ['x"', "y"]})
>>> lines_writer(style, batch.schema)(batch).to_pylist()
['{"a":1,"b":"x\\""}\n', '{"a":null,"b":"y"}\n']
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.connectors.filesystem.text_sink.values import (
    Texts,
    unquoted_texts,
    valid_texts,
    with_others,
)

COMMENT = "#"
"""Spark writes a text that begins with this sign in quotes, whether comments are allowed or not."""

WriteLines = Callable[[pa.RecordBatch], pa.Array]
"""Returns the lines of a batch, each with its line end."""

_SPECIAL_IN_JSON = "".join(map(chr, range(32))) + '"\\'
_CONTROL = _SPECIAL_IN_JSON[:32]
_SHORT = {"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_LONG = {chr(code): f"\\u{code:04X}" for code in range(32)} | {"\b": r"\b", "\f": r"\f"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LineStyle:
    """The format of lines, ``csv`` or ``json``, the names of their columns, and the options of CSV."""

    format: str
    names: tuple[str, ...]
    java: int
    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""


def lines_writer(style: LineStyle, schema: pa.Schema) -> WriteLines | None:
    """Return a function that writes the lines of batches with ``schema``; None for a type that it does not know."""
    write = _json_texts if style.format == "json" else _csv_texts
    writers: list[tuple[str, Texts]] = []
    for number, name in enumerate(style.names):
        texts = write(schema.field(name).type, style, is_first=number == 0)
        if texts is None:
            return None
        writers.append((name, texts))
    if style.format == "json":
        keys = [f"{',' if number else '{'}{_json_text(name)}:" for number, name in enumerate(style.names)]
        return partial(_lines, writers=writers, before=keys, null="null", end="}\n")
    return partial(_lines, writers=writers, before=["", *[style.delimiter] * len(writers)], null=style.null, end="\n")


def _lines(
    batch: pa.RecordBatch, *, writers: list[tuple[str, Texts]], before: list[str], null: str, end: str
) -> pa.Array:
    parts: list[Any] = []
    for start, (name, texts) in zip(before, writers, strict=False):
        parts += (start, texts(batch.column(name)).fill_null(null))
    return pc.binary_join_element_wise(*parts, end, "")


def _json_texts(kind: pa.DataType, style: LineStyle, *, is_first: bool) -> Texts | None:
    if pa.types.is_string(kind):
        return lambda column: _quoted(_escaped(valid_texts(column)), '"')
    texts = unquoted_texts(kind, style.java)
    if texts is None:
        return None
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return lambda column: _quoted(texts(column), '"')
    if pa.types.is_floating(kind):
        return lambda column: _with_quoted_names(texts(column))
    return texts


def _csv_texts(kind: pa.DataType, style: LineStyle, *, is_first: bool) -> Texts | None:
    if pa.types.is_string(kind):
        return partial(_fields, style=style, is_first=is_first)
    return unquoted_texts(kind, style.java)


def _fields(column: pa.Array, *, style: LineStyle, is_first: bool) -> pa.Array:
    """Return texts as fields of CSV: in quotes only where they need them."""
    texts = valid_texts(column)
    written = texts
    if _contain(texts, f"\r\n{style.delimiter}{style.quote}{COMMENT if is_first else ''}"):
        written = _quoted_where_needed(texts, style, is_first)
    is_empty = pc.equal(pc.binary_length(texts), 0)
    return pc.if_else(is_empty, style.quote * 2, written) if pc.any(is_empty).as_py() else written


def _quoted_where_needed(texts: pa.Array, style: LineStyle, is_first: bool) -> pa.Array:
    special = pc.match_substring_regex(texts, f"[\r\n{re.escape(style.delimiter + style.quote)}]")
    if is_first:
        special = pc.or_(special, pc.starts_with(texts, COMMENT))

    def write(mask: pa.Array) -> pa.Array:
        inner = texts.filter(mask)
        if style.escape != style.quote:
            inner = pc.replace_substring(inner, style.escape, style.escape * 2)
        return _quoted(pc.replace_substring(inner, style.quote, style.escape + style.quote), style.quote)

    return with_others(texts, special, write)


def _contain(texts: pa.Array, signs: str) -> bool:
    """Return true if any of the texts has one of these ASCII signs."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return False
    bounds = np.frombuffer(offsets, np.int32)
    content = np.frombuffer(data, np.uint8)[bounds[texts.offset] : bounds[texts.offset + len(texts)]]
    wanted = np.zeros(256, np.bool_)
    wanted[np.frombuffer(signs.encode("ascii"), np.uint8)] = True
    return bool(wanted[content].any())


def _escaped(texts: pa.Array) -> pa.Array:
    """Return texts with the escapes of JSON."""
    if not _contain(texts, _SPECIAL_IN_JSON):
        return texts
    for plain, escape in _SHORT.items():
        texts = pc.replace_substring(texts, plain, escape)
    if _contain(texts, _CONTROL):
        for plain, escape in _LONG.items():
            texts = pc.replace_substring(texts, plain, escape)
    return texts


def _json_text(text: str) -> str:
    written: str = _quoted(_escaped(pa.array([text])), '"')[0].as_py()
    return written


def _quoted(texts: pa.Array, quote: str) -> pa.Array:
    return pc.binary_join_element_wise(quote, texts, quote, "")


def _with_quoted_names(texts: pa.Array) -> pa.Array:
    """Return the texts of numbers with NaN and the infinities in quotes."""
    is_name = pc.match_substring_regex(texts, "[Ny]")
    return with_others(texts, is_name, lambda mask: _quoted(texts.filter(mask), '"'))

"""Hintplan's own JSON functions: by name, with their result types, and over a column of texts in Arrow.

This module knows no Spark; :mod:`hintplan.runtime.expressions.spark_columns` registers the functions there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from hintplan.runtime.expressions import json_documents, json_quotes, json_writer
from hintplan.runtime.expressions.json_columns import json_column
from hintplan.runtime.expressions.json_reader import REMEMBERED


class JsonFunction(NamedTuple):
    """A function of a text and constants, which never fails, and the type of its results."""

    function: Callable[..., Any]
    kind: pa.DataType


FUNCTIONS: Mapping[str, JsonFunction] = {
    "hp_is_json": JsonFunction(json_documents.is_document, pa.bool_()),
    "hp_json_boolean": JsonFunction(json_documents.json_boolean, pa.bool_()),
    "hp_json_double": JsonFunction(json_documents.json_double, pa.float64()),
    "hp_json_exists": JsonFunction(json_documents.json_exists, pa.bool_()),
    "hp_json_integer": JsonFunction(json_documents.json_integer, pa.int32()),
    "hp_json_number": JsonFunction(json_writer.json_number, pa.string()),
    "hp_json_query": JsonFunction(json_documents.json_query, pa.string()),
    "hp_json_quote": JsonFunction(json_quotes.json_quote, pa.string()),
    "hp_json_unquote": JsonFunction(json_quotes.json_unquote, pa.string()),
    "hp_json_value": JsonFunction(json_documents.json_value, pa.string()),
}
CALL = re.compile(r"\bhp_\w+(?= *\()", re.IGNORECASE)
"""A pattern of possible calls of these functions."""


def rows_at_once(expressions: Iterable[str]) -> int | None:
    """Return the number of rows per batch for which all calls share each parsed document; None for a single call."""
    calls = sum(len(CALL.findall(text)) for text in expressions)
    return REMEMBERED if calls > 1 else None


def over_texts(texts: pa.Array, *, name: str, constants: Sequence[Any]) -> pa.Array:
    """Return the result of the function ``name`` for each text, with ``constants`` as its further arguments."""
    function, kind = FUNCTIONS[name]
    results = json_column(texts, name, *constants)
    if results is None:
        results = [function(text, *constants) for text in texts.to_pylist()]
    return pa.array(results, kind)

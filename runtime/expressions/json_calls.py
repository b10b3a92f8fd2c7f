"""Hintplan's own JSON functions: by name, with their result types, and over a column of texts in Arrow.

This module knows no Spark; :mod:`hintplan.runtime.expressions.spark_columns` registers the functions there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from hintplan.runtime.expressions import json_documents, json_quotes, json_writer
from hintplan.runtime.expressions.json_columns import json_column, part_of
from hintplan.runtime.expressions.json_parts import Part
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


@dataclass(frozen=True, slots=True)
class JsonCall:
    """A call of the function ``name`` for each text, with ``constants`` as its further arguments.

    ``parts`` are the parts of the same documents that the calls of an operator need, one for each call
    (:mod:`hintplan.runtime.expressions.shared_documents`).
    """

    name: str
    constants: tuple[Any, ...]
    parts: tuple[Part, ...] = ()

    @property
    def part(self) -> Part | None:
        """The part of each document that the function needs; None if it reads each text by itself."""
        return part_of(self.name, self.constants)

    def __call__(self, texts: pa.Array) -> pa.Array:
        function, kind = FUNCTIONS[self.name]
        results = json_column(texts, self.name, self.constants, self.parts)
        if results is None:
            results = [function(text, *self.constants) for text in texts.to_pylist()]
        return results if isinstance(results, pa.Array) else pa.array(results, kind)

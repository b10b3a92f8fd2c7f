"""Gives a session hintplan's own functions of JSON, as soon as an expression calls one.

They are Python functions to Spark: each row goes to a worker and back. Spark computes them for all rows of a batch that
come so far, before it looks at branches of a CASE; so they must not fail, and do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from runtime.expressions import json_documents, json_quotes, json_writer
from runtime.spark.shipping import with_code

FUNCTIONS: Mapping[str, tuple[Callable[..., Any], str]] = {
    "hp_is_json": (json_documents.is_json, "boolean"),
    "hp_json_boolean": (json_documents.json_boolean, "boolean"),
    "hp_json_double": (json_documents.json_double, "double"),
    "hp_json_exists": (json_documents.json_exists, "boolean"),
    "hp_json_integer": (json_documents.json_integer, "int"),
    "hp_json_number": (json_writer.json_number, "string"),
    "hp_json_query": (json_documents.json_query, "string"),
    "hp_json_quote": (json_quotes.json_quote, "string"),
    "hp_json_unquote": (json_quotes.json_unquote, "string"),
    "hp_json_value": (json_documents.json_value, "string"),
}
_CALL = re.compile(r"\bhp_\w+(?= *\()", re.IGNORECASE)
_KNOWN: WeakKeyDictionary[SparkSession, set[tuple[str, bool]]] = WeakKeyDictionary()


def register_called(frame: DataFrame, text: str) -> None:
    """Let the session of ``frame`` know those of the functions that the checked expression ``text`` may call."""
    for name in sorted({found.lower() for found in _CALL.findall(text)} & FUNCTIONS.keys()):
        session = frame.sparkSession
        known = _KNOWN.setdefault(session, set())
        if (name, frame.isStreaming) not in known:
            function, kind = FUNCTIONS[name]
            # Rows of all versions of Spark, and of those without pandas.
            session.udf.register(name, F.udf(with_code(function, frame), kind, useArrow=False))
            known.add((name, frame.isStreaming))

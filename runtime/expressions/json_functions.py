"""Gives a session hintplan's own functions of JSON, as soon as an expression calls one.

They are Python functions to Spark: each row goes to a worker and back. Spark computes them for all rows of a batch that
come so far, before it looks at branches of a CASE; so they must not fail, and do not.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from hintplan.runtime.expressions.json_calls import CALL, FUNCTIONS
from hintplan.runtime.spark.shipping import with_code

_KNOWN: WeakKeyDictionary[SparkSession, set[tuple[str, bool]]] = WeakKeyDictionary()


def register_called(frame: DataFrame, text: str) -> None:
    """Let the session of ``frame`` know those of the functions that the checked expression ``text`` may call."""
    for name in sorted({found.lower() for found in CALL.findall(text)} & FUNCTIONS.keys()):
        session = frame.sparkSession
        known = _KNOWN.setdefault(session, set())
        if (name, frame.isStreaming) not in known:
            function, kind = FUNCTIONS[name]
            # Rows of all versions of Spark, and of those without pandas.
            session.udf.register(name, F.udf(with_code(function, frame), from_arrow_type(kind), useArrow=False))
            known.add((name, frame.isStreaming))

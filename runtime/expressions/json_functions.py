"""Registration of hintplan's own JSON functions in a session, when an expression first calls one.

To Spark they are Python functions: each row goes to a worker and back. Spark computes them for all rows of a batch
before it evaluates the branches of a CASE, so they never fail.
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
    """Register the functions that the checked expression ``text`` may call in the session of ``frame``."""
    for name in sorted({call.lower() for call in CALL.findall(text)} & FUNCTIONS.keys()):
        session = frame.sparkSession
        registered = _KNOWN.setdefault(session, set())
        if (name, frame.isStreaming) not in registered:
            function, kind = FUNCTIONS[name]
            # Without Arrow, this works in all versions of Spark, and without pandas.
            session.udf.register(name, F.udf(with_code(function, frame), from_arrow_type(kind), useArrow=False))
            registered.add((name, frame.isStreaming))

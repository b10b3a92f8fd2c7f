"""The types of Arrow in which Spark itself would send its own."""

from __future__ import annotations

from inspect import signature

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

__all__ = ["spark_sends"]

# Versions before 4.2 send times in UTC without being told.
_ZONE = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}


def spark_sends(kind: DataType) -> pa.DataType:
    """What Spark sends values of ``kind`` as, in a session in UTC."""
    return to_arrow_type(kind, **_ZONE)

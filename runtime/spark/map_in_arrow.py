"""``DataFrame.mapInArrow`` without pandas, which PySpark's own method requires on the driver but does not use."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from pyspark.util import PythonEvalType

from hintplan.runtime.spark.between_tasks import MapBatches, as_task
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.shipping import in_tasks


def map_in_arrow(frame: DataFrame, run: MapBatches, schema: str | StructType) -> DataFrame:
    """Apply ``run`` to the record batches of each task of ``frame``; return rows with ``schema``.

    A Spark Connect client always has pandas, since PySpark does not connect without it.
    """
    task = as_task(run)
    if is_remote(frame.sparkSession):
        return frame.mapInArrow(in_tasks(task, frame), schema)
    from pyspark.sql.udf import UserDefinedFunction

    function = UserDefinedFunction(task, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column: Any = function(*map(F.col, map(quoted, frame.columns)))
    mapped = frame._jdf.mapInArrow(column._jc, False, None)
    return DataFrame(mapped, frame.sparkSession)

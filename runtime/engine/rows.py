"""The rows on an edge of a streaming plan while it is built: as Spark has them, or in Arrow.

Rows stay in Arrow between stateful operators, and on their way from Parquet files, wherever they can. A reader that
needs Spark's rows gets them converted. The choice never changes the values.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from hintplan.runtime.engine.arrow_rows import ArrowRows


class Rows:
    """The rows of an operator; ``in_arrow`` is None if only Spark has them."""

    def __init__(self, spark: Callable[[], DataFrame], in_arrow: ArrowRows | None = None) -> None:
        self._spark = spark
        self._frame: DataFrame | None = None
        self.in_arrow = in_arrow

    @property
    def frame(self) -> DataFrame:
        """The rows as Spark has them, built on first access."""
        if self._frame is None:
            self._frame = self._spark()
        return self._frame

"""What flows on the edges of a streaming plan while it is built: rows as Spark has them, or as they are in Arrow.

Between operators with state rows stay in Arrow where they can, and so they do on their way from files of Parquet;
whoever needs Spark's own has them made. Which of both is used never changes what the rows are.
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
        """The rows as Spark has them; built when it is first asked for."""
        if self._frame is None:
            self._frame = self._spark()
        return self._frame

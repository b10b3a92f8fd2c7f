"""A sink: its rows are those of its input. What writes them is chosen where queries and jobs are started."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from plans.operators import Sink
from runtime.build.builder import OperatorBuilder
from runtime.build.edges import Edges
from runtime.engine.rows import Rows


def _stream(operator: Sink, inputs: Sequence[Rows], edges: Edges) -> Rows:
    (rows,) = inputs
    return rows


def _batch(operator: Sink, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    (frame,) = inputs
    return frame


BUILDER = OperatorBuilder(stream=_stream, batch=_batch)

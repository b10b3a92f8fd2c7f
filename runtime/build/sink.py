"""A sink: its rows are those of its input. What writes them is chosen where queries and jobs are started."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from hintplan.plans.operators import Sink
from hintplan.runtime.build.builder import OperatorBuilder
from hintplan.runtime.build.edges import Edges
from hintplan.runtime.engine.rows import Rows


def _stream(operator: Sink, inputs: Sequence[Rows], edges: Edges) -> Rows:
    (rows,) = inputs
    return rows


def _batch(operator: Sink, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    (frame,) = inputs
    return frame


BUILDER = OperatorBuilder(stream=_stream, batch=_batch)

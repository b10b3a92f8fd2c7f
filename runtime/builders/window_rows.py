"""The first rows of each window: in streams kernels on the engine, in batch jobs Spark's ``row_number``.

The columns of the window are a part of the key, so a batch job ranks as without windows.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from hintplan.plans.operators import WindowDeduplicate, WindowRank
from hintplan.runtime.builders.builder import OperatorBuilder, with_state
from hintplan.runtime.builders.edges import Edges
from hintplan.runtime.builders.rank import deduplicated, ranked


def _ranked(operator: WindowRank, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    return ranked(operator, _key(operator), inputs[0])


def _deduplicated(operator: WindowDeduplicate, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    return deduplicated(operator, _key(operator), inputs[0])


def _key(operator: WindowRank | WindowDeduplicate) -> tuple[str, ...]:
    return (operator.attached.start, operator.attached.end, *operator.key)


BUILDER = OperatorBuilder(stream=with_state(), batch=_ranked)
DEDUPLICATE_BUILDER = OperatorBuilder(stream=with_state(), batch=_deduplicated)

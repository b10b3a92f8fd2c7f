"""An expand, as Spark's own: each row once for each of the grouping sets."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from plans.operators import Expand
from runtime.build.builder import OperatorBuilder, from_frames
from runtime.build.edges import Edges
from runtime.expressions.allowed import quoted
from runtime.types import to_spark


def _expand(operator: Expand, inputs: Sequence[DataFrame], edges: Edges) -> DataFrame:
    (frame,) = inputs
    types = {column.name: column.type for column in edges.columns[operator.id]}
    digits = {key: 1 << place for place, key in enumerate(reversed(operator.keys))}

    def copy(kept: tuple[str, ...]) -> SparkColumn:
        """The keys and the id of one set."""
        keys = [
            (F.col(quoted(key)) if key in kept else F.lit(None).cast(to_spark(types[key]))).alias(key)
            for key in operator.keys
        ]
        group_id = sum(digit for key, digit in digits.items() if key not in kept)
        return F.struct(*keys, F.lit(group_id).cast("bigint").alias(operator.group_id))

    others = [quoted(name) for name in edges.names(operator.inputs[0]) if name not in operator.keys]
    metadata = edges.metadata(operator.id).names
    copies = frame.select(*others, *metadata, F.inline(F.array(*map(copy, operator.sets))))
    return copies.select(*map(quoted, edges.names(operator.id)), *metadata)


BUILDER = OperatorBuilder(stream=from_frames(_expand), batch=_expand)

"""Row kinds in files: the text in the field ``op`` of each row."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hintplan.runtime.operator import KIND, UPDATE_BEFORE
from hintplan.runtime.spark.names import quoted

OP = "op"
_KINDS = ("+I", "-U", "+U", "-D")
_OPS = "; it must be +I, -U, +U or -D"
_UPSERT_OPS = "; it must be +I, +U or -D, or not be there"


def kind_of_op(op: Column, *, upserts: bool) -> Column:
    """The row kind that ``op`` of a row names; any other text fails the run, for its row cannot be understood.

    Among ``upserts`` a row without one is inserted, and none takes back what another replaces.
    """
    op = F.coalesce(op, F.lit("+I")) if upserts else op
    what, ops = ("an upsert", _UPSERT_OPS) if upserts else ("a row of a changelog", _OPS)
    kind = F.raise_error(F.concat(F.lit(f"{what} has the op "), F.coalesce(op, F.lit("NULL")), F.lit(ops)))
    for number, name in enumerate(_KINDS):
        if not upserts or number != UPDATE_BEFORE:
            kind = F.when(op == name, F.lit(number)).otherwise(kind)
    return kind.cast("tinyint")


def with_op(df: DataFrame, *, changelog: bool) -> DataFrame:
    """The rows with their ``op`` as the last column; all are inserts if they are no ``changelog``."""
    if not changelog:
        return df.withColumn(OP, F.lit("+I"))
    names = F.array(*(F.lit(kind) for kind in _KINDS))
    data = [quoted(column) for column in df.columns if column != KIND]
    return df.select(*data, F.element_at(names, F.col(KIND).cast("int") + 1).alias(OP))

"""Row kinds in files: the text in the field ``op`` of each row."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hintplan.plans.declarations.row_kinds import ALL_KINDS
from hintplan.plans.errors import RunError
from hintplan.runtime.operator import KIND, UPDATE_BEFORE
from hintplan.runtime.spark.names import quoted

OP = "op"
_OPS = "; it must be +I, -U, +U or -D"
_UPSERT_OPS = "; it must be +I, +U or -D, or not be there"


def kind_of_op(op: Column, *, upserts: bool) -> Column:
    """Return the row kind for the text ``op`` of a row; any other text fails the run.

    With ``upserts``, a row without ``op`` is an insert, and ``-U`` is invalid.
    """
    op = F.coalesce(op, F.lit("+I")) if upserts else op
    subject, allowed = ("an upsert", _UPSERT_OPS) if upserts else ("a row of a changelog", _OPS)
    kind = F.raise_error(F.concat(F.lit(f"{subject} has the op "), F.coalesce(op, F.lit("NULL")), F.lit(allowed)))
    for number, name in enumerate(ALL_KINDS):
        if not upserts or number != UPDATE_BEFORE:
            kind = F.when(op == name, F.lit(number)).otherwise(kind)
    return kind.cast("tinyint")


def kinds_in_arrow(op: pa.ChunkedArray, *, upserts: bool) -> pa.Array:
    """Return the row kinds of :func:`kind_of_op` for the column ``op``; RunError for any other text."""
    if upserts:
        op = op.fill_null("+I")
    kinds = pc.index_in(op, pa.array(ALL_KINDS)).cast(pa.int8())
    wrong = pc.is_null(kinds)
    if upserts:
        wrong = pc.or_kleene(wrong, pc.equal(kinds, UPDATE_BEFORE))
    if pc.any(wrong).as_py():
        subject, allowed = ("an upsert", _UPSERT_OPS) if upserts else ("a row of a changelog", _OPS)
        first = op.filter(wrong)[0].as_py()
        raise RunError(f"{subject} has the op {'NULL' if first is None else first}{allowed}")
    return kinds.combine_chunks() if isinstance(kinds, pa.ChunkedArray) else kinds


def with_op(df: DataFrame, *, changelog: bool) -> DataFrame:
    """Return the rows with their ``op`` as the last column; without ``changelog``, all rows are inserts."""
    if not changelog:
        return df.withColumn(OP, F.lit("+I"))
    kinds = F.array(*(F.lit(kind) for kind in ALL_KINDS))
    data = [quoted(column) for column in df.columns if column != KIND]
    return df.select(*data, F.element_at(kinds, F.col(KIND).cast("int") + 1).alias(OP))

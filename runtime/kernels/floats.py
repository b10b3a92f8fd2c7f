"""FLOAT and DOUBLE in the one form that state knows: no -0.0, and one NaN.

-0.0 equals 0.0 and every NaN equals every other, also where rows are grouped, joined, told apart or taken back, so two
of them must not have different bits there. Rows get this form where they enter an operator with state; Spark's
operators of a batch job get it in :mod:`hintplan.runtime.expressions.normal_floats`.

>>> normal_floats(pa.table({"d": [-0.0, 1.5, None]}))["d"].to_pylist()
[0.0, 1.5, None]
"""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc


def normal_floats(rows: pa.Table) -> pa.Table:
    """``rows`` with 0.0 for -0.0 and one NaN for all, in columns of FLOAT and DOUBLE; nested ones are left alone."""
    for index, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            column = pc.add(rows.column(index), pa.scalar(0, pa.int8()).cast(field.type))  # -0.0 + 0.0 is 0.0
            no_number = pc.is_nan(column)
            if pc.any(no_number).as_py():
                column = pc.if_else(no_number, pa.scalar(math.nan, field.type), column)
            rows = rows.set_column(index, field, column)
    return rows

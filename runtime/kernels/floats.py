"""FLOAT and DOUBLE in the normal form of state: no -0.0, and a single NaN.

-0.0 equals 0.0 and every NaN equals every other. This also holds where rows are grouped, joined, deduplicated or
retracted, so equal values must have equal bits there. Rows are normalised where they enter a stateful operator. In
batch jobs, :mod:`hintplan.runtime.expressions.comparable` normalises the input of Spark's operators.

>>> normal_floats(pa.table({"d": [-0.0, 1.5, None]}))["d"].to_pylist()
[0.0, 1.5, None]
"""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc


def normal_floats(rows: pa.Table) -> pa.Table:
    """Replace -0.0 with 0.0 and every NaN with a single one, in FLOAT and DOUBLE columns, except in nested values."""
    for index, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            column = pc.add(rows.column(index), pa.scalar(0, pa.int8()).cast(field.type))  # -0.0 + 0.0 is 0.0
            no_number = pc.is_nan(column)
            if pc.any(no_number).as_py():
                column = pc.if_else(no_number, pa.scalar(math.nan, field.type), column)
            rows = rows.set_column(index, field, column)
    return rows

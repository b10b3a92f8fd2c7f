"""Every type that can be sorted by is, in both directions, with NULLs where they are said to be."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hintplan.plans.operators import SortKey
from hintplan.runtime.kernels.sorting import sorted_rows

ASCENDING: dict[str, tuple[list[Any], pa.DataType]] = {
    "boolean": ([False, True], pa.bool_()),
    "tinyint": ([-128, 2, 127], pa.int8()),
    "bigint": ([-(2**63), 0, 2**63 - 1], pa.int64()),
    "decimal": ([Decimal("-1.00"), Decimal("2.09"), Decimal("2.10"), Decimal(10**30)], pa.decimal128(38, 2)),
    "float": ([-1.5, 0.0, 2.5, float("inf"), float("nan")], pa.float32()),
    "double": ([-float("inf"), -1.5, -1.0, 1.0, float("nan")], pa.float64()),
    "string": (["", "Z", "a", "é", "\U0001f600"], pa.string()),
    "bytes": ([b"", b"a\x00", b"a\xff", b"b"], pa.binary()),
    "date": ([date(1960, 1, 1), date(2024, 1, 1), date(2024, 1, 2)], pa.date32()),
    "time": ([time(1), time(4), time(5)], pa.time32("ms")),
    "timestamp": ([-7, 4, 5], pa.timestamp("us")),
    "timestamp_ltz": ([-7, 4, 5], pa.timestamp("us", tz="UTC")),
}


@pytest.mark.parametrize("nulls", ["first", "last"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("kind", ASCENDING)
def test_rows_are_sorted_by_a_column_of_each_type(kind: str, direction: Any, nulls: Any) -> None:
    values, type_ = ASCENDING[kind]
    places = np.random.default_rng(len(values)).permutation(len(values) + 1)
    column = pa.array([*values, None], type_).take(pa.array(places))  # place i of ``values`` is where places == i
    order = sorted_rows(
        pa.table({"c": column}),
        np.zeros(len(places), np.int64),
        (SortKey(column="c", direction=direction, nulls=nulls),),
        np.arange(len(places)),
    )
    wanted = list(range(len(values)))[:: 1 if direction == "asc" else -1]
    null = [len(values)]
    assert places[order].tolist() == (null + wanted if nulls == "first" else wanted + null)

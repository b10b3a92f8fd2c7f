"""Batch aggregates against the streaming kernels, type by type: NULLs, overflows, rounding, NaN, DISTINCT, FILTER."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hintplan.plans.operators import Aggregate, AggregateCall
from hintplan.plans.settings.state import StateEntry, ttl_settings
from hintplan.runtime.builders.aggregate import native_aggregate
from hintplan.runtime.builders.bound import build_operator
from hintplan.runtime.state.memory import MemoryStore
from hintplan.runtime.types import to_arrow, to_spark
from tests.runtime.changelog import delta, events_of

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

BIG = (1 << 63) - 1
# Type, results of SUM and AVG (None: not for this type), values of which some groups get none.
CASES: dict[str, tuple[str | None, str | None, list[Any]]] = {
    "TINYINT": ("TINYINT", "TINYINT", [127, 127, -3, -4, None, 1, 2, -128]),
    "SMALLINT": ("SMALLINT", "SMALLINT", [32767, 1, -3, -4, None, 2]),
    "INT": ("INT", "INT", [2147483647, 2147483647, -3, -4, None, 7]),
    "BIGINT": ("BIGINT", "BIGINT", [BIG, BIG, BIG, -BIG - 1, 5, None, 1 << 33, -7, -8]),
    "FLOAT": ("FLOAT", "FLOAT", [0.5, 1.25, -2.0, None, 8.0, math.nan]),
    "DOUBLE": ("DOUBLE", "DOUBLE", [0.5, 1.25, -2.0, None, 1e300, math.nan, 3.0]),
    "DECIMAL(10, 2)": (
        "DECIMAL(38, 2)",
        "DECIMAL(38, 6)",
        [Decimal("1.00"), Decimal("2.00"), Decimal("2.01"), None, Decimal("-99999999.99"), Decimal("0.05")],
    ),
    "DECIMAL(38, 18)": (
        "DECIMAL(38, 18)",
        "DECIMAL(38, 18)",
        [Decimal("2.166666666666666666"), Decimal("2.166666666666666667"), Decimal("-1"), None],
    ),
    "DECIMAL(38, 0)": (
        "DECIMAL(38, 0)",
        "DECIMAL(38, 6)",
        [Decimal("9" * 38), Decimal("9" * 38), None, Decimal(1), Decimal("8" * 38), Decimal(7)],
    ),
    "STRING": (None, None, ["b", "", "a", None, "ä"]),
    "BOOLEAN": (None, None, [True, False, None]),
    "DATE": (None, None, [date(2020, 1, 2), date(1969, 12, 31), None]),
    "TIMESTAMP(3)": (None, None, [datetime(2020, 1, 2, 3, 4, 5, 6000), datetime(1969, 1, 1), None]),
}
COLUMNS = ("k", "f", "x")


def aggregate(kind: str) -> Aggregate:
    total, average, _ = CASES[kind]
    wanted = [("COUNT", "BIGINT"), ("MIN", kind), ("MAX", kind), ("ARRAY_AGG", f"ARRAY<{kind}>")]
    wanted += [("COLLECT", f"MULTISET<{kind}>")]
    wanted += [(function, found) for function, found in (("SUM", total), ("AVG", average)) if found]
    wanted += [(function, "DOUBLE") for function in ("VAR_POP", "STDDEV_SAMP") if total]
    calls = [AggregateCall(name="every", function="COUNT", type="BIGINT")]
    calls.append(AggregateCall(name="kept", function="COUNT", filter="f", type="BIGINT"))
    for function, result in wanted:
        for name, options in (("plain", {}), ("only", {"filter": "f"}), ("once", {"distinct": True})):
            call = AggregateCall(name=f"{function}_{name}", function=function, argument="x", type=result, **options)
            calls.append(call)
    state = (StateEntry(index=0, name="groupAggregateState", input="t", settings=ttl_settings()),)
    return Aggregate(id="a", inputs=("t",), keys=("k",), aggregates=tuple(calls), state=state, changelog=("+I", "+U"))


def rows_of(kind: str) -> list[tuple[Any, ...]]:
    """Groups of all values, of some, of one twice, of NULL only, and of nothing that passes the filter; a NULL key."""
    values = CASES[kind][2]
    rows = [("all", index % 3 != 0, value) for index, value in enumerate(values)]
    rows += [("some", None if index % 2 else True, value) for index, value in enumerate(values[1:3])]
    rows += [("twice", True, values[0]), ("twice", True, values[0]), ("twice", False, values[1])]
    rows += [("null", True, None), ("filtered", False, values[0]), (None, True, values[0]), (None, True, None)]
    return rows


def by_kernel(kind: str) -> list[tuple[Any, ...]]:
    columns = tuple(zip(COLUMNS, ("STRING", "BOOLEAN", kind), strict=True))
    from hintplan.plans.declarations.tables import Column

    operator = build_operator(
        aggregate(kind), (tuple(Column(name=name, type=text) for name, text in columns),), (False,)
    )
    events = [("+I", row) for row in rows_of(kind)]
    result = operator.process([delta(operator.inputs[0], events)], None, MemoryStore(), 0)
    return [row for _, row in events_of(result.output)]


def by_spark(spark: SparkSession, kind: str) -> list[tuple[Any, ...]]:
    from pyspark.sql.types import StructField, StructType

    types = dict(zip(COLUMNS, ("STRING", "BOOLEAN", kind), strict=True))
    schema = StructType([StructField(name, to_spark(text)) for name, text in types.items()])
    columns = list(zip(*rows_of(kind), strict=True))
    table = pa.table([pa.array(c, to_arrow(t)) for c, t in zip(columns, types.values(), strict=True)], list(types))
    calls = aggregate(kind).aggregates
    frame = native_aggregate(("k",), calls, spark.createDataFrame(table).to(schema), types)
    wanted = [("k", to_spark("STRING")), *((c.name, to_spark(c.type)) for c in aggregate(kind).aggregates)]
    assert [(field.name, field.dataType) for field in frame.schema] == wanted
    found = frame.toArrow()
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def comparable(rows: list[tuple[Any, ...]]) -> dict[Any, tuple[Any, ...]]:
    """Rows by their key; a batch job has no order in which values come."""
    return {row[0]: tuple(_compared(v) for v in row) for row in rows}


def _compared(value: Any) -> Any:
    if isinstance(value, list | tuple | frozenset):
        return sorted(map(repr, value))
    # Digits that variances differ in are those of the order in which values come.
    return f"{value:.10g}" if isinstance(value, float) else value


@pytest.fixture(scope="module")
def own(spark: SparkSession) -> SparkSession:
    """A session with the settings of a run."""
    from hintplan.runtime.spark.session import prepare_session

    return prepare_session(spark, time_zone="UTC", once=True)


@pytest.mark.parametrize("kind", CASES)
def test_a_batch_aggregate_gives_what_the_streaming_kernel_gives(own: SparkSession, kind: str) -> None:
    expected = comparable(by_kernel(kind))
    assert len(expected) == 6
    assert comparable(by_spark(own, kind)) == expected


def test_flinks_recorded_results_of_integers_and_decimals(own: SparkSession) -> None:
    tiny = comparable(by_spark(own, "TINYINT"))
    names = [call.name for call in aggregate("TINYINT").aggregates]
    assert tiny["twice"][1 + names.index("SUM_plain")] == 127 * 3 - 256
    assert tiny["null"][1 + names.index("AVG_plain")] is None
    low = native_aggregate(
        (),
        (
            AggregateCall(name="avg", function="AVG", argument="x", type="INT"),
            AggregateCall(name="sum", function="SUM", argument="y", type="BIGINT"),
        ),
        own.createDataFrame([(-3, BIG), (-4, 1)], "x int, y bigint"),
        {"x": "INT", "y": "BIGINT"},
    )
    assert [tuple(row) for row in low.collect()] == [(-3, -BIG - 1)]

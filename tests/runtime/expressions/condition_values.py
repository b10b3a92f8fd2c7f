"""Values of all types for conditions of joins, and what Spark says of expressions over all pairs of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from runtime.types import to_arrow, to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAN, INF = float("nan"), float("inf")
TYPES: dict[str, tuple[str, list[Any]]] = {
    "flag": ("BOOLEAN", [True, False]),
    "tiny": ("TINYINT", [-128, -1, 0, 1, 7, 127]),
    "small": ("SMALLINT", [-32768, -1, 0, 1, 7, 32767]),
    "int": ("INT", [-(2**31), -1, 0, 1, 7, 2**24 + 1, 2**31 - 1]),
    "big": ("BIGINT", [-(2**63), -1, 0, 1, 7, 2**24 + 1, 2**53 + 1, 2**63 - 1]),
    "real": ("FLOAT", [-INF, -1.0, -0.0, 0.0, 0.57, 7.0, float(2**24), 3.0e38, NAN]),
    "double": ("DOUBLE", [-INF, -1.0, -0.0, 0.57, 0.35, 7.0, float(2**24), float(2**53), 1e300, NAN]),
    "cent": ("DECIMAL(2, 2)", [Decimal(v) for v in ("-0.99", "0.00", "0.57", "0.35")]),
    "money": ("DECIMAL(12, 2)", [Decimal(v) for v in ("-9999999999.99", "-1.00", "0.00", "0.57", "7.00", "16777217")]),
    "huge": ("DECIMAL(38, 0)", [Decimal(v) for v in ("-" + "9" * 38, "-1", "0", "7", "9007199254740993", "9" * 38)]),
    "fine": ("DECIMAL(38, 10)", [Decimal(v) for v in ("-0.0000000001", "0", "0.57", "7", f"{'9' * 28}.{'9' * 10}")]),
    "finest": ("DECIMAL(38, 38)", [Decimal(v) for v in (f"-0.{'9' * 38}", "0", "0.57", f"0.{'9' * 38}")]),
    "text": ("STRING", ["", "7", "Z", "a", "a\nb", "é", "\uffff", "\U0001f600", "\\"]),
    "bytes": ("BYTES", [b"", b"\x7f", b"\xff", b"\xff\x00"]),
    "day": ("DATE", [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
    "time": (
        "TIMESTAMP(6)",
        [dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3, 4), dt.datetime(9999, 1, 1)],
    ),
    "milli": ("TIMESTAMP(3)", [dt.datetime(1969, 12, 31, 23, 59, 59, 999000), dt.datetime(2024, 2, 29)]),
    "zoned": ("TIMESTAMP_LTZ(6)", [dt.datetime(2024, 2, 29, tzinfo=dt.UTC), dt.datetime(9999, 1, 1, tzinfo=dt.UTC)]),
}
SCHEMA = pa.schema([(name, to_arrow(kind)) for name, (kind, _) in TYPES.items()])
ROWS = 1 + max(len(values) for _, values in TYPES.values())
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def column(name: str) -> pa.Array:
    """All values of a type and then NULL, over and over again."""
    kind, values = TYPES[name]
    return pa.array([[*values, None][i % (len(values) + 1)] for i in range(ROWS)], to_arrow(kind))


def pairs() -> tuple[pa.Table, pa.Table]:
    """All pairs of rows: each value of each type on the left beside each on the right."""
    one = pa.table([column(name) for name in SCHEMA.names], SCHEMA)
    left = one.take([i for i in range(ROWS) for _ in range(ROWS)])
    return left, one.take([i for _ in range(ROWS) for i in range(ROWS)])


def in_spark(spark: SparkSession) -> DataFrame:
    """The pairs with columns ``__l_<name>`` and ``__r_<name>``, in one partition and order."""
    left, right = pairs()
    names = [(f"__{side}_{name}", kind) for side in "lr" for name, (kind, _) in TYPES.items()]
    table = pa.table([*left.columns, *right.columns], [name for name, _ in names])
    schema = StructType([StructField(name, to_spark(kind)) for name, kind in names])
    return spark.createDataFrame(table, schema).coalesce(1)


def answers(frame: DataFrame, columns: Sequence[Any]) -> list[list[Any]]:
    """The values of each of ``columns`` for all pairs, a few hundred in a job."""
    found: list[list[Any]] = []
    for start in range(0, len(columns), 300):
        some = [column.alias(f"c{i}") for i, column in enumerate(columns[start : start + 300])]
        found += [list(values) for values in zip(*frame.select(*some).collect(), strict=True)]
    return found

"""Rows as Flink's print connector spells them.

Expectations follow Java: Double.toString, LocalDateTime.toString, Instant.toString and BigDecimal.toString.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hintplan.runtime.connectors.rowtext import lines


def text(value, data_type) -> str:
    (line,) = lines(pa.table({"v": pa.array([value], data_type)}), None)
    assert line.startswith("+I[")
    return line[3:-1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5.0, "5.0"),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (1e300, "1.0E300"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_a_double_is_written_as_java_writes_it(value, expected):
    assert text(value, pa.float64()) == expected


def test_a_float_has_only_the_digits_of_a_float():
    assert text(0.1, pa.float32()) == "0.1"
    assert text(16777216.0, pa.float32()) == "1.6777216E7"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2020, 1, 1), "2020-01-01T00:00"),
        (datetime(2020, 1, 1, 12, 30, 5), "2020-01-01T12:30:05"),
        (datetime(2020, 1, 1, 12, 30, 0, 5000), "2020-01-01T12:30:00.005"),
        (datetime(2020, 1, 1, 12, 30, 0, 5), "2020-01-01T12:30:00.000005"),
    ],
)
def test_a_timestamp_leaves_out_what_is_zero(value, expected):
    assert text(value, pa.timestamp("us")) == expected


def test_a_timestamp_with_local_time_zone_is_an_instant_in_utc():
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    assert text(noon, pa.timestamp("us", "UTC")) == "2020-01-01T12:00:00Z"
    assert text(noon, pa.timestamp("us", "Europe/Berlin")) == "2020-01-01T12:00:00Z"


@pytest.mark.parametrize(
    ("value", "data_type", "expected"),
    [
        (None, pa.int32(), "null"),
        (True, pa.bool_(), "true"),
        (-7, pa.int64(), "-7"),
        ("DE", pa.string(), "DE"),
        (Decimal("12.50"), pa.decimal128(10, 2), "12.50"),
        (Decimal("0E-8"), pa.decimal128(10, 8), "0E-8"),
        (date(2020, 2, 29), pa.date32(), "2020-02-29"),
        (b"\x01\xff", pa.binary(), "[1, -1]"),
        ([1, None], pa.list_(pa.int32()), "[1, null]"),
        ([("k", 1.0)], pa.map_(pa.string(), pa.float64()), "{k=1.0}"),
        ({"a": 1, "b": None}, pa.struct([("a", pa.int32()), ("b", pa.string())]), "+I[1, null]"),
    ],
)
def test_other_types_are_written_as_flink_writes_them(value, data_type, expected):
    assert text(value, data_type) == expected


def test_each_row_starts_with_its_kind_and_keeps_its_place():
    table = pa.table({"id": [1, 2, 3, 4], "c": ["DE", None, "FR", "IT"]})
    assert list(lines(table, [0, 1, 2, 3])) == ["+I[1, DE]", "-U[2, null]", "+U[3, FR]", "-D[4, IT]"]

"""Values of partitions as Iceberg's specification makes them: its own examples, and PyIceberg's functions in Python."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as iceberg
from pyiceberg.transforms import parse_transform

from hintplan.runtime.connectors.lakes.bucket_hash import bucket_hash
from hintplan.runtime.connectors.lakes.divisions import Division, is_known

MOMENT = datetime(2017, 11, 16, 22, 31, 8)


@pytest.mark.parametrize(
    ("value", "kind", "hashed"),
    [
        (34, pa.int32(), 2017239379),
        (34, pa.int64(), 2017239379),
        (Decimal("14.20"), pa.decimal128(9, 2), -500754589),
        (date(2017, 11, 16), pa.date32(), -653330422),
        (MOMENT, pa.timestamp("us"), -2047944441),
        (MOMENT.replace(tzinfo=UTC), pa.timestamp("us", tz="UTC"), -2047944441),
        (MOMENT.replace(microsecond=1), pa.timestamp("us"), -1207196810),
        ("iceberg", pa.string(), 1210000089),
        (bytes([0, 1, 2, 3]), pa.binary(), -188683207),
    ],
)
def test_hashes_are_those_of_the_specification(value: Any, kind: pa.DataType, hashed: int) -> None:
    assert bucket_hash(pa.array([None, value, value], kind)).tolist()[1:] == [hashed, hashed]


def _numbers(chance: random.Random, bits: int) -> list[int]:
    return [0, 1, -1, 7, -7, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), *(chance.randrange(-999, 999) for _ in range(99))]


CHANCE = random.Random(7)
_EPOCH = datetime(1970, 1, 1)
MOMENTS = [
    _EPOCH + timedelta(microseconds=each)
    for each in (0, 1, -1, *(CHANCE.randrange(-(9**17), 9**17) for _ in range(99)))
]
DECIMALS = [Decimal(n).scaleb(-2) for n in (*_numbers(CHANCE, 32), 127, 128, -128, -129, 255, 256, 10**17, -(10**17))]
TEXTS = ["", "a", "ab", "é", "😀é", "日本語", "iceberg", *("x" * n for n in range(9)), *(f"é{n}z" for n in range(99))]
VALUES: dict[str, tuple[pa.DataType, iceberg.IcebergType, list[Any]]] = {
    "INT": (pa.int32(), iceberg.IntegerType(), _numbers(CHANCE, 32)),
    "BIGINT": (pa.int64(), iceberg.LongType(), _numbers(CHANCE, 62)),
    "DECIMAL": (pa.decimal128(20, 2), iceberg.DecimalType(20, 2), DECIMALS),
    "DATE": (pa.date32(), iceberg.DateType(), sorted({moment.date() for moment in MOMENTS})),
    "TIMESTAMP": (pa.timestamp("us"), iceberg.TimestampType(), MOMENTS),
    "TIMESTAMP_LTZ": (
        pa.timestamp("us", tz="UTC"), iceberg.TimestamptzType(), [moment.replace(tzinfo=UTC) for moment in MOMENTS],
    ),
    "STRING": (pa.string(), iceberg.StringType(), TEXTS),
    "BYTES": (pa.binary(), iceberg.BinaryType(), [text.encode() for text in TEXTS]),
}  # fmt: skip
TRANSFORMS = (
    "identity",
    "void",
    "bucket[1]",
    "bucket[16]",
    "truncate[1]",
    "truncate[3]",
    "truncate[10]",
    "year",
    "month",
    "day",
    "hour",
)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("type_", VALUES)
def test_values_are_those_of_pyiceberg(type_: str, transform: str) -> None:
    kind, theirs, values = VALUES[type_]
    there = parse_transform(transform)
    if not there.can_transform(theirs):
        pytest.skip("not a transform of this type")
    column = pa.chunked_array([pa.array([None, *values[:5]], kind), pa.array([*values[5:], None], kind)])
    found = Division(name="d", column="c", transform=transform).values(column)
    wanted = [None if transform == "void" else there.transform(theirs)(value) for value in (None, *values, None)]
    if type_ == "INT":  # which wraps around in Java, and not in Python
        wanted = [each if each is None or each >= -(2**31) else each + 2**32 for each in wanted]
    told = found.cast(pa.int32()) if transform == "day" else found
    assert told.to_pylist() == wanted
    assert is_known(transform)


def test_what_is_not_known_is_said() -> None:
    assert not is_known("zorder[2]")
    assert not is_known("made up")

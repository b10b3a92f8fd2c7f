"""The odd values of every type come back from files of every format: from a batch job, from a stream, to either."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructField, StructType

from plans.connectors.check import check_table
from plans.connectors.files.formats import FORMATS
from plans.connectors.table import option
from plans.declarations.tables import Column, Table, TableColumn
from runtime.connectors.filesystem.scan import FilesScan
from runtime.connectors.table import batch_writer, read, read_batch
from runtime.lookup.api import LookupContext
from runtime.types import to_arrow, to_spark
from tests.connectors.files.test_formats_on_spark import streamed

pytestmark = pytest.mark.spark

TEXTS = [
    "a", "", None, " a ", "\ta\t", " ", "\t", " \t ", '"', 'a"b', '"a"', '""', '",', ",", "a,b", "a\nb", "a\rb",
    "a\r\nb", "\n", "\r\n", "a\n", "a\n\nb", "\na", "\\", "a\\", "\\n", 'a\\"b', "\\,", "é", "𝄞", "a𝄞b", "\u2028", "\u2029",
    "\x85", "\xa0", "\x00", "\x00a", "a\x00", "\x01", "\x0b", "\x0c", "\x1b", "\x7f", "\ufeff", "a\ufeff", "#", "#a",
    "null", "NULL", "NaN", "true", "1", "-", "'", "''", ";", "|", "{}", "[1]", "+I", "x" * 40_000,
]  # fmt: skip
_BREAKS = ["\r", "a\r", "\r\r"]
"""Texts that end with a carriage return."""

_MOMENTS = [
    datetime(1, 1, 1), datetime(1582, 10, 15), datetime(1600, 2, 29, 1, 2, 3, 450000), datetime(1883, 11, 18, 12),
    datetime(1899, 12, 31, 23, 59, 59, 999000), datetime(1969, 12, 31, 23, 59, 58, 999000),
    datetime(1969, 12, 31, 23, 59, 59), datetime(1969, 12, 31, 23, 59, 59, 1000),
    datetime(1969, 12, 31, 23, 59, 59, 500000), datetime(1969, 12, 31, 23, 59, 59, 999000), datetime(1970, 1, 1),
    datetime(1970, 1, 1, 0, 0, 0, 1000), datetime(2020, 2, 29, 2, 30, 0, 120000), datetime(2038, 1, 19, 3, 14, 8),
    datetime(2262, 4, 11, 23, 47, 16, 854000), datetime(9999, 12, 31, 23, 59, 59, 999000),
]  # fmt: skip
_FINE = [moment.replace(microsecond=moment.microsecond + n) for moment in _MOMENTS for n in (0, 1, 999)]
_OUT_OF_ORC = ("TIMESTAMP_LTZ",)
_NESTED = ["ARRAY<STRING>", "MAP<STRING, DOUBLE>", "ROW<x DOUBLE, t TIMESTAMP(3), s STRING>"]

VALUES: dict[str, list[Any]] = {
    "STRING": [*TEXTS, *_BREAKS],
    "BOOLEAN": [True, False],
    "TINYINT": [0, 127, -128],
    "SMALLINT": [0, 2**15 - 1, -(2**15)],
    "INT": [0, 2**31 - 1, -(2**31)],
    "BIGINT": [0, 2**63 - 1, -(2**63), 2**53 + 1],
    "FLOAT": [0.0, -0.0, 1.5, 2.0**-149, 3.4028234663852886e38, math.nan, math.inf, -math.inf],
    "DOUBLE": [0.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, -1e22, math.nan, math.inf, -math.inf],
    "DECIMAL(10, 2)": [D("0.00"), D("0.01"), D("-0.01"), D("99999999.99"), D("-99999999.99"), D("100.00")],
    "DECIMAL(38, 0)": [D("9" * 38), D("-" + "9" * 38), D("1" + "0" * 37)],
    "DECIMAL(38, 38)": [D("0." + "9" * 38), D("0." + "0" * 37 + "1"), D("-0." + "0" * 37 + "1")],
    "DATE": [date(1, 1, 1), date(1582, 10, 15), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
    "TIMESTAMP(3)": _MOMENTS,
    "TIMESTAMP(6)": _FINE,
    "TIMESTAMP_LTZ(6)": _FINE,
    "BYTES": [b"", b"\x00\xff", b" a\n", bytes(range(256))],
    "ARRAY<STRING>": [[], [None], ["", None, ' "a"\n'], ["𝄞"]],
    "MAP<STRING, DOUBLE>": [[], [("", math.nan)], [(' "a"\n', None), ("b", -0.0)]],
    "ROW<x DOUBLE, t TIMESTAMP(3), s STRING>": [
        {"x": None, "t": None, "s": None},
        {"x": math.inf, "t": datetime(1969, 12, 31, 23, 59, 59, 999000), "s": ""},
    ],
}
"""Odd values of each type; NULL is one more of each."""


def table(path: Path, chosen: str, columns: dict[str, str], **options: str) -> Table:
    return Table(
        columns=tuple(TableColumn(name=name, type=kind) for name, kind in columns.items()),
        options={"connector": "filesystem", "path": str(path), "format": chosen, **options},
    )


def held(chosen: str) -> dict[str, str]:
    """The columns of all types that files of the format hold; text is the last one, and one of those before it."""
    kinds = {f"c{i}": kind for i, kind in enumerate(VALUES)}
    found = {n: k for n, k in kinds.items() if not check_table("t", table(Path("/x"), chosen, {n: k}))}
    return {"id": "INT", **found, "z": "STRING"}


def given(columns: dict[str, str], chosen: str) -> pa.Table:
    """A row for each odd value of the type that has the most of them."""
    count = max(len(VALUES[kind]) for kind in columns.values())
    found = {}
    for name, kind in columns.items():
        values = VALUES[kind]
        if name == "z" and chosen == "csv":
            values = TEXTS
        found[name] = list(range(count)) if name == "id" else [[*values, None][i % (len(values) + 1)] for i in range(count)]
    return arrow(found, columns)


def arrow(values: dict[str, list[Any]], columns: dict[str, str]) -> pa.Table:
    return pa.table({name: pa.array(found, to_arrow(columns[name])) for name, found in values.items()})


def schema_of(columns: dict[str, str]) -> StructType:
    return StructType([StructField(name, to_spark(kind)) for name, kind in columns.items()])


def plain(rows: pa.Table, columns: dict[str, str]) -> list[str]:
    """Each row as text in which NaN is itself and zeros have signs, in the order of the first column."""
    first, *_ = columns
    typed = rows.select(list(columns)).cast(pa.schema([(n, to_arrow(k)) for n, k in columns.items()])).sort_by(first)
    return [repr(row) for row in typed.to_pylist()]


def different(found: pa.Table, expected: pa.Table, columns: dict[str, str]) -> dict[str, Any]:
    """The columns that did not come back, each with the first values that differ."""
    if found.num_rows != expected.num_rows:
        return {"rows": (found.num_rows, expected.num_rows)}
    wrong = {}
    for name, kind in columns.items():
        only = {next(iter(columns)): columns[next(iter(columns))], name: kind}
        pairs = zip(plain(found, only), plain(expected, only), strict=True)
        if differing := [(a[:120], b[:120]) for a, b in pairs if a != b]:
            wrong[f"{name} {kind}"] = differing[:5]
    return wrong


def looked_up(source: Table) -> pa.Table:
    columns = tuple(Column(name=c.name, type=c.type) for c in source.columns)
    context = LookupContext(table="t", options=source.options, columns=columns, keys=(), declared=columns)
    found = [part if isinstance(part, pa.Table) else pa.table(part) for part in FilesScan().scan(context)]
    types = pa.schema([(column.name, to_arrow(column.type)) for column in source.columns])
    return pa.concat_tables([part.cast(types) for part in found])


@pytest.mark.parametrize("chosen", [name for name in FORMATS if name != "raw"])
def test_odd_values_come_back(spark, tmp_path: Path, chosen: str) -> None:
    columns = held(chosen)
    rows = given(columns, chosen)
    frame = spark.createDataFrame(rows, schema_of(columns))
    (first, second) = (table(tmp_path / name, chosen, columns) for name in ("a", "b"))
    batch_writer(frame.coalesce(1), "t", first)()
    assert different(read_batch(spark, "t", first, tuple(columns)).toArrow(), rows, columns) == {}
    streamed(read(spark, "t", first, tuple(columns)), second, tmp_path / "c")
    assert different(read_batch(spark, "t", second, tuple(columns)).toArrow(), rows, columns) == {}
    if chosen != "avro":
        assert different(looked_up(first), rows, columns) == {}

"""What a calc computes in Arrow of ROW, ARRAY and MAP has the types and values that Spark gives the same calc."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Column
from hintplan.plans.operators import Calc, SelectItem
from hintplan.runtime.builders.calc import calc_in_spark
from hintplan.runtime.builders.calc_in_arrow import calc_in_arrow
from hintplan.runtime.spark.session import prepare_session
from hintplan.runtime.types import to_arrow, to_spark

COLUMNS = tuple(
    Column(name=name, type=kind)
    for name, kind in {
        "buyer": "ROW<name STRING, address ROW<city STRING, zip INT>>",
        "tags": "ARRAY<STRING>",
        "lines": "ARRAY<ROW<sku STRING, at TIMESTAMP(3), price DECIMAL(10, 2)>>",
        "prices": "MAP<STRING, DOUBLE>",
        "counts": "MAP<SMALLINT, ARRAY<INT>>",
        "i": "INT",
    }.items()
)
ROWS = """
SELECT named_struct('name', 'ann', 'address', named_struct('city', 'Rom', 'zip', 1)) AS buyer, array('a', NULL) AS tags,
  array(named_struct('sku', 'x', 'at', TIMESTAMP_NTZ '2024-02-29 01:02:03', 'price', 1.25BD), NULL) AS lines,
  map('a', 1.5D, 'b', NULL) AS prices, map(1S, array(1, 2), 2S, NULL) AS counts, 0 AS i
UNION ALL SELECT named_struct('name', NULL, 'address', NULL), array(), array(), map(), map(), 1
UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL
UNION ALL SELECT named_struct('name', '', 'address', named_struct('city', NULL, 'zip', NULL)), array('b', 'c', 'd'),
  array(NULL, named_struct('sku', NULL, 'at', NULL, 'price', NULL)), map('b', 2D, '', 0D), map(1S, array()), -1
UNION ALL SELECT NULL, array('z'), NULL, map('B', 1D), map(3S, array(7)), 2147483647
"""
COMPUTED = [
    ("buyer.name", "STRING"),
    ("buyer.address.city", "STRING"),
    ("buyer.address.zip", "BIGINT"),
    ("buyer.address", "ROW<city STRING, zip INT>"),
    ("get(tags, 0)", "STRING"),
    ("get(tags, 2)", "STRING"),
    ("get(tags, i)", "STRING"),
    ("get(lines, 0).at", "TIMESTAMP(3)"),
    ("get(lines, 1)", "ROW<sku STRING, at TIMESTAMP(3), price DECIMAL(10, 2)>"),
    ("coalesce(get(lines, 0).price, CAST(0 AS DECIMAL(10, 2)))", "DECIMAL(10, 2)"),
    ("prices['b']", "DOUBLE"),
    ("prices['']", "DOUBLE"),
    ("get(counts[1], 1)", "INT"),
    ("counts[1S]", "ARRAY<INT>"),
    ("size(tags)", "INT"),
    ("size(counts)", "INT"),
    ("size(counts[1])", "BIGINT"),
    ("CASE WHEN size(tags) > 1 THEN tags END", "ARRAY<STRING>"),
    ("buyer.address.city IS NULL OR prices['a'] > 1", "BOOLEAN"),
    ("buyer.address.zip + i", "INT"),
]


def calc(expression: str, kind: str) -> Calc:
    item = SelectItem(name="c", type=kind, expression=expression)
    return Calc(id="calc", inputs=("above",), select=(item,))


@pytest.mark.spark
def test_parts_in_arrow_are_those_of_spark(spark: SparkSession) -> None:
    own = prepare_session(spark, time_zone="UTC", once=True)
    own.conf.set("spark.sql.codegen.wholeStage", "false")
    own.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    frame = own.sql(ROWS)
    frame = frame.select(*(frame[column.name].cast(to_spark(column.type)).alias(column.name) for column in COLUMNS))
    frame = frame.localCheckpoint()
    schema = pa.schema([(column.name, to_arrow(column.type)) for column in COLUMNS])
    rows = frame.toArrow().cast(schema)
    edges: Any = SimpleNamespace(names=lambda _: [column.name for column in COLUMNS], metadata=lambda _: pa.schema([]))
    for expression, kind in COMPUTED:
        made = calc_in_arrow(calc(expression, kind), COLUMNS, [])
        assert made is not None, expression
        theirs = calc_in_spark(calc(expression, kind), [frame], edges).toArrow()["c"].cast(to_arrow(kind))
        for part in (rows, rows.slice(1, 3)):
            found = made(part)["c"]
            assert found.type == to_arrow(kind), expression
            whole = theirs if part is rows else theirs.slice(1, 3)
            assert found.to_pylist() == whole.to_pylist(), expression

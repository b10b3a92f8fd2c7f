"""A calc between two operators with state gets rows in Arrow with what they have beside their data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import hintplan
from hintplan.plans.operators import Calc
from hintplan.runtime.builders.backend import SparkBackend
from hintplan.runtime.builders.edges import edges_of
from hintplan.runtime.builders.stream import build_stream
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.storage.place import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_a_filter_above_an_outer_join_passes_row_kinds_on(spark: SparkSession, tmp_path: Path) -> None:
    table = "CREATE TABLE {} (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{}');"
    plan = hintplan.compile_sql(
        f"{table.format('a', tmp_path)}{table.format('b', tmp_path)}"
        "CREATE TABLE s (k BIGINT, n BIGINT) WITH ('connector' = 'print');"
        "INSERT INTO s SELECT k, COUNT(*) FROM (SELECT a.k, b.v FROM a LEFT JOIN b ON a.k = b.k) AS t "
        "WHERE v > 1 OR k = 2 GROUP BY k;"
    )
    places = {name: Place(root="nowhere", operator=name) for name in plan.by_id}
    rows = build_stream(
        edges_of(plan, SparkBackend(session=spark), places=places, lookups=RequestRun(token="1")),
        [sink.id for sink in plan.sinks],
    )
    (calc,) = [o.id for o in plan.operators if isinstance(o, Calc) and o.filter is not None]
    in_arrow = rows[calc].in_arrow
    assert in_arrow is not None
    joined = pa.table({"k": [1, 1, 2], "v": [5, 1, None], "__kind": pa.array([0, 3, 0], pa.int8())})
    for step in in_arrow.steps:
        joined = step(joined)
    assert joined.to_pylist() == [{"k": 1, "__kind": 0}, {"k": 2, "__kind": 0}]


@pytest.mark.spark
def test_fields_of_rows_are_read_where_the_rows_are(spark: SparkSession, tmp_path: Path) -> None:
    files = f"WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}')"
    plan = hintplan.compile_sql(
        f"CREATE TABLE o (id BIGINT, customer ROW<id BIGINT, tags ARRAY<STRING>>, amount BIGINT) {files};"
        f"CREATE TABLE c (k BIGINT, w BIGINT) {files};"
        "CREATE TABLE s (k BIGINT, tag STRING, n BIGINT) WITH ('connector' = 'print');"
        "INSERT INTO s SELECT customer.id, customer.tags[1], SUM(amount) FROM o JOIN c ON o.id = c.k "
        "WHERE CARDINALITY(customer.tags) < w GROUP BY customer.id, customer.tags[1];"
    )
    places = {name: Place(root="nowhere", operator=name) for name in plan.by_id}
    rows = build_stream(
        edges_of(plan, SparkBackend(session=spark), places=places, lookups=RequestRun(token="1")),
        [sink.id for sink in plan.sinks],
    )
    above = [o.id for o in plan.operators if isinstance(o, Calc) and o.inputs[0].startswith("join")]
    assert above
    assert all(rows[calc].in_arrow is not None for calc in above)

"""The plan that Spark gets grows with the number of operators, on classic Spark as on Spark Connect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hintplan
from hintplan.runtime.builders.backend import SparkBackend
from hintplan.runtime.builders.edges import edges_of
from hintplan.runtime.builders.stream import build_stream
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.storage.place import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = """
CREATE TABLE t (k BIGINT, n BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{}');
CREATE TABLE r (k BIGINT, n BIGINT, ts TIMESTAMP(3)) WITH ('connector' = 'print');
"""


def window(below: str, number: int) -> str:
    return (
        f"SELECT k, SUM(n) AS n, window_time AS ts FROM TABLE(TUMBLE(TABLE {below}, DESCRIPTOR(ts), "
        f"INTERVAL '{number}' MINUTE)) GROUP BY k, window_start, window_end, window_time"
    )


def windows_above_each_other(count: int) -> str:
    views = [f"CREATE VIEW w{i} AS {window('t' if i == 1 else f'w{i - 1}', i)};" for i in range(1, count + 1)]
    return "".join([*views, f"INSERT INTO r SELECT k, n, ts FROM w{count};"])


def windows_beside_each_other(count: int) -> str:
    return f"INSERT INTO r {' UNION ALL '.join(window('t', i) for i in range(1, count + 1))};"


@pytest.mark.spark
@pytest.mark.parametrize("script", [windows_above_each_other, windows_beside_each_other])
def test_each_window_adds_as_many_nodes_as_the_one_before(
    spark: SparkSession, tmp_path: Path, script: Callable[[int], str]
) -> None:
    counts = []
    for windows in (2, 3, 4):
        plan = hintplan.compile_sql(f"{TABLES.format(tmp_path)}{script(windows)}")
        places = {name: Place(root="nowhere", operator=name) for name in plan.by_id}
        edges = edges_of(plan, SparkBackend(session=spark), places=places, lookups=RequestRun(token="1"))
        rows = build_stream(edges, [sink.id for sink in plan.sinks])
        logical = rows[plan.sinks[0].id].frame._jdf.queryExecution().logical()
        counts.append(len(str(logical).splitlines()))
    assert counts[2] - counts[1] == counts[1] - counts[0] > 0

"""Aggregates of TUMBLE and HOP, and OVER, over random rows, in random batches and partitions, equal those of DuckDB.

The delay is longer than the disorder, so no row is late. The last batch ends the input.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa
import pytest

from hintplan.planner.compile import compile_sql
from tests.runtime.partitioned import Partitioned

BEGIN = datetime(1969, 12, 31, 23, 59)
KEYS = ("a", "b", "c", None)
SIZES = ((1, 1), (5, 5), (7, 7), (10, 5), (10, 2), (6, 3), (60, 20))
"""Seconds of a window, and from a window to the next."""
CALLS = "COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(v), COUNT(DISTINCT v)"
COUNT = 120
DISORDER = 20
Rows = list[tuple[str | None, int | None, datetime]]


def random_rows(dice: random.Random) -> Rows:
    """Rows whose times ascend, apart from some seconds of disorder."""
    rows, at = [], 0.0
    for _ in range(COUNT):
        at += dice.choice((0, 0, 0.001, 0.5, 1, 4))
        time = BEGIN + timedelta(milliseconds=round(1000 * (at + dice.choice((0, 0, 0.25, 3, DISORDER)))))
        rows.append((dice.choice(KEYS), dice.choice((None, -3, 0, 1, 7, 2**62 // COUNT)), time))
    return rows


def function(size: int, step: int, offset: int) -> str:
    """The window table function of a query, with its intervals in Flink's order."""
    intervals = [size, *([offset] if offset else [])] if size == step else [step, size, *([offset] if offset else [])]
    listed = ", ".join(f"INTERVAL '{seconds}' SECOND" for seconds in intervals)
    return f"TABLE({'TUMBLE' if size == step else 'HOP'}(TABLE s, DESCRIPTOR(ts), {listed}))"


def compiled_query(size: int, step: int, offset: int, keys: str) -> str:
    watermark = f"WATERMARK FOR ts AS ts - INTERVAL '{DISORDER + 1}' SECOND"
    columns = "ws TIMESTAMP(3), we TIMESTAMP(3), n BIGINT, c BIGINT, t BIGINT, low BIGINT, high BIGINT, d BIGINT"
    return f"""CREATE TABLE s (k STRING, v BIGINT, ts TIMESTAMP(3), {watermark})
 WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x');
CREATE TABLE r ({"k STRING, " if keys else ""}{columns}) WITH ('connector' = 'print');
INSERT INTO r SELECT {keys}window_start, window_end, {CALLS} FROM {function(size, step, offset)}
 GROUP BY {keys}window_start, window_end;"""


def of_duckdb(rows: Rows, size: int, step: int, offset: int, keys: str) -> Counter:
    columns = zip(*rows, strict=True)
    types = (pa.string(), pa.int64(), pa.timestamp("ms"))
    s = pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], ["k", "v", "ts"])
    database = duckdb.connect(config={"threads": 1})
    database.register("s", s)
    result = database.execute(
        f"""WITH windows AS (
          SELECT k, v, time_bucket(to_seconds({step}), ts, TIMESTAMP '1970-01-01' + to_seconds({offset}))
            - to_seconds({step} * number) AS ws
          FROM s, generate_series(0, {size // step - 1}) AS numbers(number))
        SELECT {keys}ws, ws + to_seconds({size}), {CALLS} FROM windows GROUP BY {keys}ws"""
    )
    return Counter(result.fetchall())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("size", "step"), SIZES)
def test_windows_have_the_aggregates_of_duckdb(size: int, step: int, seed: int) -> None:
    dice = random.Random(f"{size} {step} {seed}")
    keys, offset, rows = dice.choice(("k, ", "")), dice.choice((0, 1, -2)), random_rows(dice)
    offset = offset if abs(offset) < step else 0
    pipeline = Partitioned(compile_sql(compiled_query(size, step, offset, keys)), 1)
    cut = sorted(dice.sample(range(COUNT), dice.choice((0, 3, 12))))
    for start, end in zip([0, *cut], [*cut, COUNT], strict=True):
        pipeline = pipeline.rescaled(dice.choice((1, 2, 5)))
        pipeline.batch({"s": rows[start:end]})
    pipeline.drain()
    expected = of_duckdb(rows, size, step, offset, keys)
    assert sum(expected.values()) > 5
    assert pipeline.result == expected
    assert sum(pipeline.late_rows.values()) == 0


FRAMES = (
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN INTERVAL '7' SECOND PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 4 PRECEDING AND CURRENT ROW",
)


@pytest.mark.parametrize("frame", FRAMES)
def test_over_has_the_results_of_duckdb(frame: str) -> None:
    dice = random.Random(frame)
    rows = random_rows(dice)
    calls = "COUNT(*) OVER w, COUNT(v) OVER w, SUM(v) OVER w, MIN(v) OVER w, MAX(v) OVER w"
    calls += ", COUNT(DISTINCT v) OVER w" if "UNBOUNDED" not in frame else ", COUNT(v) OVER w"
    query = f"SELECT k, v, ts, {calls} FROM s WINDOW w AS (PARTITION BY k ORDER BY ts {frame})"
    columns = "k STRING, v BIGINT, ts TIMESTAMP(3)"
    results = ", ".join(f"x{number} BIGINT" for number in range(6))
    plan = compile_sql(f"""CREATE TABLE s ({columns}, WATERMARK FOR ts AS ts - INTERVAL '{DISORDER + 1}' SECOND)
 WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x');
CREATE TABLE r ({columns}, {results}) WITH ('connector' = 'print'); INSERT INTO r {query};""")
    pipeline = Partitioned(plan, 1)
    cut = sorted(dice.sample(range(COUNT), 8))
    for start, end in zip([0, *cut], [*cut, COUNT], strict=True):
        pipeline = pipeline.rescaled(dice.choice((1, 2, 5)))
        pipeline.batch({"s": rows[start:end]})
    pipeline.drain()
    # Rows with equal times are in the order in which they came.
    types = (pa.string(), pa.int64(), pa.timestamp("ms"), pa.int64())
    numbered = [(*row, number) for number, row in enumerate(rows)]
    table = pa.table(
        [pa.array(c, t) for c, t in zip(zip(*numbered, strict=True), types, strict=True)], ["k", "v", "ts", "n"]
    )
    database = duckdb.connect(config={"threads": 1})
    database.register("s", table)
    order = "ORDER BY ts, n" if frame.startswith("ROWS") else "ORDER BY ts"
    asked = query.replace("ORDER BY ts", order)
    assert pipeline.result == Counter(database.execute(asked).fetchall())
    assert sum(pipeline.late_rows.values()) == 0

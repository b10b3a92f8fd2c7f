"""Late rows in tables, through all layers: SQL, a plan, runs on Spark, and batches that run again after a crash.

The watermark is the highest time. Windows are of 10 seconds from 12:00:00; rows are written by their seconds.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from tests.connectors.lakes.lakes import IcebergLake
from tests.sample import sampled

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
AT = "2024-01-01 12:00:{:02}"
COLUMNS = "device STRING, words STRING, n INT, at TIMESTAMP(3)"
BOTH = "operator STRING, watermark TIMESTAMP_LTZ(3)"
COUNTS = """INSERT INTO counts SELECT device, window_end, COUNT(*)
FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(at), INTERVAL '10' SECOND)) GROUP BY device, window_start, window_end;"""
Rows = list[tuple[Any, ...]]


def compiled(folder: Path, late: str, inserts: str = COUNTS) -> Plan:
    """``inserts`` over the tables ``a`` and ``b``; late rows go to ``late_a`` and ``late_b``, which have options."""

    def table(name: str, format_: str) -> str:
        return (
            f"CREATE TABLE {name} ({COLUMNS}, WATERMARK FOR at AS at) WITH ('connector' = 'filesystem', "
            f"'format' = '{format_}', 'path' = '{folder}/{name}', 'late-rows.target' = 'late_{name}');"
            f"CREATE TABLE late_{name} ({BOTH}, {COLUMNS}) WITH ({late.format(folder=folder, name=f'late_{name}')});"
        )

    counts = f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{folder}/counts.db', 'table-name' = 'counts'"
    script = f"CREATE TABLE counts (device STRING, w TIMESTAMP(3), n BIGINT) WITH ({counts});"
    return hintplan.compile_sql(table("a", "json") + table("b", "json") + script + inserts, name="job")


def write(folder: Path, table: str, file: str, rows: Sequence[tuple[str, str, int, int]]) -> None:
    lines = [json.dumps({"device": d, "words": w, "n": n, "at": AT.format(second)}) for d, w, n, second in rows]
    (folder / table).mkdir(exist_ok=True)
    (folder / table / f"{file}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(plan: Plan, spark: SparkSession, folder: Path) -> None:
    with execute(plan, spark, checkpoint=folder / "checkpoint", once=True) as execution:
        execution.await_termination(timeout=DEADLINE_SECONDS)


def uncommit(folder: Path) -> None:
    """The last batch has written to its sinks, and its query has died before it could say so."""
    last = max((folder / "checkpoint").rglob("commits/[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink()


def counts(folder: Path) -> Rows:
    with sqlite3.connect(folder / "counts.db") as database:
        return sorted(database.execute("SELECT device, substr(w, 18, 2), n FROM counts"))


def from_files(folder: Path, spark: SparkSession) -> Rows:
    found = [json.loads(line) for path in (folder / "late_a").glob("*.json") for line in path.read_text().splitlines()]
    return [tuple(row[name] for name in ("operator", "device", "words", "n")) for row in found]


def from_database(folder: Path, spark: SparkSession) -> Rows:
    with sqlite3.connect(folder / "late.db") as database:
        return list(database.execute("SELECT operator, device, words, n FROM late_a"))


def from_iceberg(folder: Path, spark: SparkSession) -> Rows:
    return [(operator, *row) for operator, _, *row, _ in IcebergLake(folder).rows("late_a")]


def from_delta(folder: Path, spark: SparkSession) -> Rows:
    tables = [pq.read_table(path) for path in (folder / "late_a").glob("*.parquet")]
    return [tuple(row[name] for name in ("operator", "device", "words", "n")) for t in tables for row in t.to_pylist()]


SINKS: dict[str, tuple[str, Callable[[Path, SparkSession], Rows]]] = {
    "filesystem": ("'connector' = 'filesystem', 'format' = 'json', 'path' = '{folder}/{name}'", from_files),
    "jdbc": ("'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{folder}/late.db', 'table-name' = '{name}'", from_database),
    "delta": ("'connector' = 'delta', 'table-path' = '{folder}/{name}'", from_delta),
    "iceberg": (
        "'connector' = 'iceberg', 'catalog-name' = 'lake', 'catalog-type' = 'jdbc', "
        "'uri' = 'jdbc:sqlite:{folder}/catalog.db', 'catalog-database' = 'db', 'catalog-table' = '{name}', "
        "'warehouse' = '{folder}/tables'",
        from_iceberg,
    ),
}


@pytest.mark.parametrize("sink", sampled(SINKS, keep=1))
def test_late_rows_are_written_once_by_a_job_that_gets_the_target_while_it_runs_and_dies(
    spark: SparkSession, tmp_path: Path, sink: str
) -> None:
    options, late = SINKS[sink]
    for expected in late_rows_of_replays(spark, tmp_path, options):
        assert sorted(late(tmp_path, spark), key=str) == sorted(expected, key=str)


def late_rows_of_replays(spark: SparkSession, tmp_path: Path, options: str) -> Iterator[Rows]:
    """Run a job that gets a target with ``options`` while it runs, and twice dies before it commits a batch.

    Yields the late rows that it has come to have dropped, after each batch that has some.
    """
    plan = compiled(tmp_path, options)
    plain, _ = set_value(plan, "watermark_a.watermark.late-rows.target", "none")
    write(tmp_path, "a", "0", [("x", "one", 1, 1)])
    run(plain, spark, tmp_path)
    write(tmp_path, "a", "1", [("y", "two", 2, 12)])
    run(plain, spark, tmp_path)
    assert counts(tmp_path) == [("x", "10", 1)]
    uncommit(tmp_path)
    run(plan, spark, tmp_path)  # the batch runs again, in a query with another sink
    assert counts(tmp_path) == [("x", "10", 1)]
    write(tmp_path, "a", "2", [("x", "late one", 3, 2), ("x", "in time", 4, 13), (None, None, 5, 9)])
    run(plan, spark, tmp_path)
    expected: Rows = [("window_a", None, None, 5), ("window_a", "x", "late one", 3)]
    yield expected
    uncommit(tmp_path)
    write(tmp_path, "a", "3", [("z", "later", 6, 3), ("z", "end", 7, 30)])
    run(plan, spark, tmp_path)
    yield [*expected, ("window_a", "z", "later", 6)]
    assert counts(tmp_path) == [("x", "10", 1), ("x", "20", 1), ("y", "20", 1)]


def test_a_query_computes_the_window_of_another_one_for_its_late_rows_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two windows of one scan are two queries; the first gets the target, and with it the window of the second."""
    plan = compiled(tmp_path, SINKS["jdbc"][0], COUNTS + COUNTS.replace("'10'", "'20'"))
    plain, _ = set_value(plan, "watermark_a.watermark.late-rows.target", "none")
    write(tmp_path, "a", "0", [("x", "one", 1, 1)])
    run(plain, spark, tmp_path)
    write(tmp_path, "a", "1", [("y", "two", 2, 25)])
    run(plan, spark, tmp_path)  # needs no consent
    write(tmp_path, "a", "2", [("x", "late", 3, 2)])
    run(plan, spark, tmp_path)
    assert sorted(from_database(tmp_path, spark)) == [
        (name, "x", "late", 3) for name in next(o.inputs for o in plan.operators if o.id == "late_rows")
    ]
    write(tmp_path, "a", "3", [("x", "too late", 4, 3), ("z", "end", 5, 50)])
    run(plain, spark, tmp_path)  # nor does this
    assert len(from_database(tmp_path, spark)) == 2
    assert counts(tmp_path) == sorted([("x", "10", 1), ("y", "30", 1), ("x", "20", 1), ("y", "40", 1)])


EVERYTHING = """
CREATE VIEW words AS SELECT device, word, at FROM (
  SELECT device, words, at FROM a WHERE UPPER(device) <> 'NOBODY' UNION ALL SELECT device, words, at FROM b
) CROSS JOIN UNNEST(SPLIT(words, ' ')) AS w (word);
INSERT INTO counts SELECT word, window_end, COUNT(*)
FROM TABLE(HOP(TABLE words, DESCRIPTOR(at), INTERVAL '10' SECOND, INTERVAL '20' SECOND))
GROUP BY word, window_start, window_end;
INSERT INTO counts SELECT x.device, x.window_end, 0
FROM (SELECT * FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(at), INTERVAL '10' SECOND))) AS x
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(at), INTERVAL '10' SECOND))) AS y
ON x.device = y.device AND x.window_start = y.window_start AND x.window_end = y.window_end;
"""


def test_rows_of_two_tables_come_out_of_each_operator_that_drops_them(spark: SparkSession, tmp_path: Path) -> None:
    """Through filters and functions of Spark, a union, UNNEST and a join; the tables have targets of their own."""
    plan = compiled(tmp_path, SINKS["jdbc"][0], EVERYTHING)
    for table in "ab":
        write(tmp_path, table, "1", [("x", "one two", 1, 1), ("y", "three", 2, 35)])
    run(plan, spark, tmp_path)
    # The watermark is 12:00:35: the windows up to 12:00:30 are closed, and the one of HOP from 12:00:20 is open.
    write(tmp_path, "a", "2", [("x", "late words", 3, 2), ("x", "hop", 4, 22), ("nobody", "filtered", 5, 3)])
    write(tmp_path, "b", "2", [("z", "b", 6, 19)])
    run(plan, spark, tmp_path)
    with sqlite3.connect(tmp_path / "late.db") as database:
        found = {
            name: sorted(database.execute(f"SELECT operator, device, words, n, watermark FROM {name}"))
            for name in ("late_a", "late_b")
        }
    aggregate, join = next(o.inputs for o in plan.operators if o.id == "late_rows")
    assert {str(row[-1])[:19] for rows in found.values() for row in rows} == {"2024-01-01 12:00:35"}
    assert {name: [row[:-1] for row in rows] for name, rows in found.items()} == {
        "late_a": sorted(
            [(aggregate, "x", "late words", 3)] * 2
            + [(join, "x", "late words", 3), (join, "x", "hop", 4), (join, "nobody", "filtered", 5)]
        ),
        "late_b": sorted([(aggregate, "z", "b", 6), (join, "z", "b", 6)]),
    }


LOOKED_UP = """
CREATE TABLE a ({columns}, pt AS PROCTIME(), WATERMARK FOR at AS at)
WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{folder}/a', 'late-rows.target' = 'late_a');
CREATE TABLE late_a ({columns}, {both})
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{folder}/late.db', 'table-name' = 'late_a');
CREATE TABLE devices (device STRING, label STRING, PRIMARY KEY (device) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{folder}/devices.db', 'table-name' = 'devices');
CREATE TABLE counts (device STRING, w TIMESTAMP(3), n BIGINT) WITH ('connector' = 'blackhole');
CREATE VIEW labelled AS SELECT d.label, a.at FROM a JOIN devices FOR SYSTEM_TIME AS OF a.pt AS d ON a.device = d.device;
INSERT INTO counts SELECT label, window_end, COUNT(*)
FROM TABLE(TUMBLE(TABLE labelled, DESCRIPTOR(at), INTERVAL '10' SECOND))
GROUP BY GROUPING SETS ((label, window_start, window_end), (window_start, window_end));
INSERT INTO counts SELECT device, window_end, COUNT(*)
FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(at), INTERVAL '10' SECOND)) GROUP BY device, window_start, window_end;
"""


@pytest.mark.nightly
def test_rows_of_parquet_files_pass_lookups_and_grouping_sets(spark: SparkSession, tmp_path: Path) -> None:
    """Workers read the files, and Spark computes the lookup; the table has a computed column, which is not kept."""
    with sqlite3.connect(tmp_path / "devices.db") as database:
        database.execute("CREATE TABLE devices (device TEXT PRIMARY KEY, label TEXT)")
        database.execute("INSERT INTO devices VALUES ('x', 'a label')")
    plan = hintplan.compile_sql(LOOKED_UP.format(folder=tmp_path, columns=COLUMNS, both=BOTH), name="job")
    (tmp_path / "a").mkdir()
    for name, rows in (("1", [("x", "-", 1, 31)]), ("2", [("x", "known", 2, 2), ("y", "unknown", 3, 3)])):
        columns = list(zip(*rows, strict=True))
        times = pa.array([datetime(2024, 1, 1, 12, 0, second) for second in columns[3]], pa.timestamp("us"))
        pq.write_table(
            pa.table({"device": columns[0], "words": columns[1], "n": pa.array(columns[2], pa.int32()), "at": times}),
            tmp_path / "a" / f"{name}.parquet",
        )
        run(plan, spark, tmp_path)
    with sqlite3.connect(tmp_path / "late.db") as database:
        found = sorted(database.execute("SELECT operator, device, words, n FROM late_a"))
    sets, plain = next(o.inputs for o in plan.operators if o.id == "late_rows")
    assert found == sorted([(sets, "x", "known", 2)] * 2 + [(plain, "x", "known", 2), (plain, "y", "unknown", 3)])

"""Scalar sub-queries that may have more than one row: they are their row's value, and a run fails if there are two.

Flink fails with "SingleValueAggFunction received more than one element". The reference is SQLite where each sub-query
has at most one row; where one has two, the run must fail, and says which.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hintplan.planner.compile import compile_sql
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from tests.planner.results.plan_in_sqlite import database, run_plan

Row = tuple[object, ...]
A: list[Row] = [(1, 1, 5), (2, 2, 6), (3, 3, None), (4, None, 2), (5, 4, 7)]
ONE_EACH: list[Row] = [(1, 1, 3), (2, 2, None), (3, 3, 0)]
TWICE: list[Row] = [*ONE_EACH, (4, 2, None)]

KEYED = "SELECT v FROM b WHERE b.k = a.k"
FORMS = {
    "in SELECT": "SELECT id, ({q}) FROM a",
    "in an expression": "SELECT id, COALESCE(({q}), -1) + 1 FROM a",
    "in WHERE": "SELECT id, v FROM a WHERE v > ({q})",
    "below OR": "SELECT id, v FROM a WHERE id = 4 OR v > ({q})",
    "in CASE": "SELECT id, CASE WHEN ({q}) IS NULL THEN 1 ELSE 2 END FROM a",
    "in HAVING": "SELECT k, COUNT(*) FROM a GROUP BY k HAVING COUNT(*) > ({q})",
}
QUERIES = {
    "compared": KEYED,
    "a group": "SELECT SUM(v) FROM b WHERE b.k = a.k GROUP BY id",
    "DISTINCT": "SELECT DISTINCT id FROM b WHERE b.k = a.k",
    "WITH": "WITH w AS (SELECT * FROM b WHERE b.k = a.k) SELECT v FROM w",
    "a join": "SELECT b.v FROM b JOIN b AS o ON b.id = o.id WHERE o.k = a.k",
    "UNION ALL": "SELECT v FROM b WHERE b.k = a.k UNION ALL SELECT v FROM b WHERE b.id > 100",
}


def compiled(query: str, mode: str, directory: Path = Path("x"), changelog: bool = False) -> Plan:
    width = len(database({n: (("id", "k", "v"), []) for n in "ab"}).execute(query).description)
    given = ", 'source.changelog' = 'true'" if changelog else ""
    tables = "".join(
        f"CREATE TABLE {name} (id BIGINT, k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', "
        f"'path' = '{directory}/{name}'{given});"
        for name in "ab"
    )
    sink = ", ".join(f"c{i} BIGINT" for i in range(width))
    options = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory}/s'"
    options += ", 'sink.changelog' = 'true'" if mode == "streaming" else ""
    return compile_sql(
        f"SET 'execution.runtime-mode' = '{mode}'; {tables} CREATE TABLE s ({sink}) WITH ({options});"
        f"INSERT INTO s {query};"
    )


def with_failures(rows: list[Row]) -> sqlite3.Connection:
    def fail(message: str) -> None:
        raise ValueError(message)

    connection = database({"a": (("id", "k", "v"), A), "b": (("id", "k", "v"), rows)})
    connection.create_function("raise_error", 1, fail)
    return connection


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block", QUERIES)
def test_a_batch_job_has_the_value_or_fails(form: str, block: str) -> None:
    query = FORMS[form].format(q=QUERIES[block])
    plan = compiled(query, "batch")
    for rows in (ONE_EACH, []):
        wanted = database({"a": (("id", "k", "v"), A), "b": (("id", "k", "v"), rows)}).execute(query).fetchall()
        assert Counter(run_plan(with_failures(rows), plan)["sink_s"]) == Counter(wanted)
    with pytest.raises(sqlite3.OperationalError):
        run_plan(with_failures(TWICE), plan)


@pytest.mark.parametrize(
    "query", ["SELECT id, (SELECT v FROM b) FROM a", "SELECT id FROM a WHERE v > (SELECT v FROM b)"]
)
def test_one_value_for_all_rows(query: str) -> None:
    plan = compiled(query, "batch")
    for rows in (ONE_EACH[:1], ONE_EACH[1:2], []):
        wanted = database({"a": (("id", "k", "v"), A), "b": (("id", "k", "v"), rows)}).execute(query).fetchall()
        assert Counter(run_plan(with_failures(rows), plan)["sink_s"]) == Counter(wanted)
    with pytest.raises(sqlite3.OperationalError):
        run_plan(with_failures(ONE_EACH), plan)


def test_the_first_row_by_an_order_is_one() -> None:
    query = "SELECT id, (SELECT b.v FROM b WHERE b.k < a.k ORDER BY b.v DESC LIMIT 1) FROM a"
    wanted = database({"a": (("id", "k", "v"), A), "b": (("id", "k", "v"), TWICE)}).execute(query).fetchall()
    for mode in ("batch", "streaming"):
        assert Counter(run_plan(with_failures(TWICE), compiled(query, mode))["sink_s"]) == Counter(wanted)


def write(directory: Path, table: str, name: str, *events: tuple[object, ...]) -> None:
    path = directory / table / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = ("op", "id", "k", "v")
    path.write_text("".join(json.dumps(dict(zip(keys, event, strict=True))) + "\n" for event in events))


def left(directory: Path) -> Counter[tuple[object, ...]]:
    """The rows that the changelog of the sink has left."""
    found: Counter[tuple[object, ...]] = Counter()
    for path in (directory / "s").glob("*.json"):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            found[row.get("c0"), row.get("c1")] += 1 if row["op"] in ("+I", "+U") else -1
    return +found


@pytest.mark.spark
def test_a_stream_fails_by_name_where_a_batch_leaves_a_second_row(spark: SparkSession, tmp_path: Path) -> None:
    plan = compiled(f"SELECT id, ({KEYED}) FROM a", "streaming", tmp_path, changelog=True)

    def run() -> None:
        execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True).await_termination(180)

    write(tmp_path, "a", "1", ("+I", 1, 1, 0), ("+I", 2, 2, 0))
    write(tmp_path, "b", "1", ("+I", 1, 1, 3))
    run()
    assert left(tmp_path) == Counter([(1, 3), (2, None)])
    write(tmp_path, "b", "2", ("+I", 2, 1, 4), ("-D", 1, 1, 3), ("+I", 3, 2, 5))  # two rows within the batch only
    run()
    assert left(tmp_path) == Counter([(1, 4), (2, 5)])
    write(tmp_path, "b", "3", ("+I", 4, 2, 5))
    for _ in range(2):  # a run that is started again meets the same rows
        with pytest.raises(Exception, match=r"the scalar sub-query \(SELECT v FROM b \.\.\.\) has more than one row"):
            run()
    assert left(tmp_path) == Counter([(1, 4), (2, 5)])


@pytest.mark.spark
def test_a_batch_job_on_spark_fails_by_name(spark: SparkSession, tmp_path: Path) -> None:
    for row in A:
        write(tmp_path, "a", f"{row[0]}", ("+I", *row))
    for row in TWICE:
        write(tmp_path, "b", f"{row[0]}", ("+I", *row))
    plan = compiled(f"SELECT id, ({KEYED}) FROM a", "batch", tmp_path)
    with pytest.raises(Exception, match=r"the scalar sub-query \(SELECT v FROM b \.\.\.\) has more than one row"):
        execute(plan, spark, checkpoint=None, once=True).await_termination(180)

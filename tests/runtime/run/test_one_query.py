"""Sinks of every kind that share operators are one query: each operator runs once, and each sink has each row once."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.spark.versions import version_notes
from tests.spark.programs import add_rows

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

DEADLINE_SECONDS = 180
FORMATS = ("json", "csv", "parquet")


def plan_of(directory: Path, *without: str) -> Plan:
    """Orders joined with customers: the join as files of every format, in a database, printed, dropped; its sums as a
    table and as changes; and what is read from the orders alone."""
    for name in ("o", "c"):
        (directory / name).mkdir(exist_ok=True)

    def table(name: str, columns: str, **options: str) -> str:
        found = ", ".join(f"'{key.replace('_', '.')}' = '{value}'" for key, value in options.items())
        return f"CREATE TABLE {name} ({columns}) WITH ({found});"

    def files(name: str, columns: str, file_format: str = "json", **options: str) -> str:
        path = str(directory / name)
        return table(name, columns, connector="filesystem", format=file_format, path=path, **options)

    def rows(name: str, columns: str) -> str:
        key = "table-name"
        url = f"jdbc:sqlite:{directory / 'result.db'}"
        return table(name, columns, connector="jdbc", url=url, **{key: name})

    script = [
        files("o", "k BIGINT, v BIGINT"),
        files("c", "k BIGINT, name STRING"),
        *(files(f"joined_{each}", "name STRING, v BIGINT", each) for each in FORMATS),
        files("changes", "name STRING, n BIGINT", sink_changelog="true"),
        rows("totals", "name STRING, n BIGINT, PRIMARY KEY (name) NOT ENFORCED"),
        rows("appended", "name STRING, v BIGINT"),
        rows("counts", "k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED"),
        rows("stamped", "name STRING, v BIGINT, at TIMESTAMP_LTZ(3)"),
        table("seen", "name STRING, v BIGINT", connector="print", **{"print-identifier": "seen"}),
        table("hole", "name STRING, v BIGINT", connector="blackhole"),
        "CREATE VIEW j AS SELECT c.name, o.v FROM o JOIN c ON o.k = c.k;",
        "CREATE VIEW t AS SELECT name, SUM(v) AS n FROM j GROUP BY name;",
        *(f"INSERT INTO joined_{each} SELECT name, v FROM j;" for each in FORMATS),
        "INSERT INTO changes SELECT name, n FROM t WHERE n > 5;",
        "INSERT INTO totals SELECT name, n FROM t;",
        "INSERT INTO appended SELECT name, v FROM j;",
        "INSERT INTO counts SELECT k, COUNT(v) FROM o GROUP BY k;",
        "INSERT INTO stamped SELECT name, v, CURRENT_TIMESTAMP FROM j;",
        "INSERT INTO seen SELECT name, v FROM j;",
        "INSERT INTO hole SELECT name, v FROM j;",
    ]
    kept = [line for line in script if not line.startswith(tuple(f"INSERT INTO {name} " for name in without))]
    return hintplan.compile_sql("\n".join(kept if without else script), name="one")


def run(plan: Plan, spark: SparkSession, directory: Path, *, drops: bool = False) -> Execution:
    checkpoint = str(directory / "checkpoint")
    execution = execute(plan, spark, checkpoint=checkpoint, once=True, allow_state_drop=drops)
    assert execution.await_termination(DEADLINE_SECONDS)
    return execution


def stored(directory: Path, table: str) -> list[tuple]:
    connection = sqlite3.connect(directory / "result.db")
    try:
        return sorted(connection.execute(f"SELECT * FROM {table}").fetchall())
    finally:
        connection.close()


def written(spark: SparkSession, directory: Path, name: str, file_format: str = "json") -> list[tuple]:
    """What a reader of the table's files finds, as the list of batches beside them names them."""
    reader = spark.read.schema("name string, v bigint" if name != "changes" else "name string, n bigint, op string")
    return sorted(tuple(row) for row in reader.format(file_format).load(str(directory / name)).collect())


def test_sinks_of_every_kind_are_one_query_with_each_row_once(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of(tmp_path)
    add_rows(tmp_path, "o", [{"k": 1, "v": 5}, {"k": 2, "v": 1}, {"k": 3, "v": 9}])
    add_rows(tmp_path, "c", [{"k": 1, "name": "a"}, {"k": 2, "name": "b"}])
    execution = run(plan, spark, tmp_path)
    assert list(execution.queries) == ["join_o_c", "sink_counts"], "they share a scan and no state"
    assert execution.notes == tuple(version_notes(spark.version))
    states = [path.name.rpartition(".")[0] for path in tmp_path.glob("checkpoint/*/state/*")]
    assert sorted(states) == ["aggregate_j", "aggregate_o", "join_o_c"]
    progress = execution.progress
    out = {name.removeprefix("sink_"): batch.rows_out for name, batch in progress.items()}
    assert out == {
        "joined_json": 2, "joined_csv": 2, "joined_parquet": 2, "changes": 0, "totals": 2, "appended": 2, "counts": 3,
        "stamped": 2, "seen": 2, "hole": 2,
    }  # fmt: skip
    rows_in = {
        sink: {name: operator.rows_in for name, operator in progress[f"sink_{sink}"].operators.items()}
        for sink in ("joined_json", "changes", "counts")
    }
    assert rows_in == {
        "joined_json": {"join_o_c": 5, "aggregate_j": 2}, "changes": {}, "counts": {"aggregate_o": 3},
    }, "a query is reported with its first sink"  # fmt: skip

    add_rows(tmp_path, "o", [{"k": 1, "v": 2}, {"k": 2, "v": -1}])
    run(plan, spark, tmp_path)
    rows = [("a", 2), ("a", 5), ("b", -1), ("b", 1)]
    assert [written(spark, tmp_path, f"joined_{each}", each) for each in FORMATS] == [rows] * 3
    assert written(spark, tmp_path, "changes") == [("a", 7, "+U")], "5 is not above 5"
    assert stored(tmp_path, "totals") == [("a", 7), ("b", 0)]
    assert stored(tmp_path, "appended") == rows
    assert stored(tmp_path, "counts") == [(1, 2), (2, 2), (3, 1)]
    said = capsys.readouterr().out.splitlines()
    assert sorted(said) == ["seen> +I[a, 2]", "seen> +I[a, 5]", "seen> +I[b, -1]", "seen> +I[b, 1]"]
    stamps = {v: at for _, v, at in stored(tmp_path, "stamped")}
    assert sorted(stamps) == [-1, 1, 2, 5]
    assert (stamps[5], stamps[2]) == (stamps[1], stamps[-1]), "the current time is that of the batch"
    assert stamps[5] < stamps[2]


def test_the_current_time_is_that_of_the_batch_in_spark_s_log(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    add_rows(tmp_path, "o", [{"k": 1, "v": 5}])
    add_rows(tmp_path, "c", [{"k": 1, "name": "a"}])
    run(plan, spark, tmp_path)
    log = (tmp_path / "checkpoint" / "join_o_c" / "offsets" / "0").read_text().split("\n")
    milliseconds = json.loads(log[1])["batchTimestampMs"]
    ((_, _, at),) = stored(tmp_path, "stamped")
    (said,) = spark.sql(f"SELECT date_format(timestamp_millis({milliseconds}), 'yyyy-MM-dd HH:mm:ss.SSS')").first()
    assert at.startswith(said.rstrip("0").rstrip("."))


def test_an_insert_goes_and_comes_back_and_the_others_go_on(spark: SparkSession, tmp_path: Path) -> None:
    whole, rest = plan_of(tmp_path), plan_of(tmp_path, "stamped", "totals", "changes", "joined_csv")
    add_rows(tmp_path, "o", [{"k": 1, "v": 5}, {"k": 2, "v": 1}])
    add_rows(tmp_path, "c", [{"k": 1, "name": "a"}, {"k": 2, "name": "b"}])
    run(whole, spark, tmp_path)
    add_rows(tmp_path, "o", [{"k": 1, "v": 2}])
    with pytest.raises(RunError, match="sink_totals is left behind, because the plan no longer writes it"):
        run(rest, spark, tmp_path)
    execution = run(rest, spark, tmp_path, drops=True)
    assert list(execution.queries) == ["join_o_c", "sink_counts"]
    rows = [("a", 2), ("a", 5), ("b", 1)]
    assert [written(spark, tmp_path, f"joined_{each}", each) for each in FORMATS] == [rows, [("a", 5), ("b", 1)], rows]
    assert (stored(tmp_path, "appended"), stored(tmp_path, "totals")) == (rows, [("a", 5), ("b", 1)])

    back = plan_of(tmp_path, "stamped", "changes", "joined_csv")
    add_rows(tmp_path, "o", [{"k": 2, "v": 7}])
    execution = run(back, spark, tmp_path)
    assert list(execution.queries) == ["join_o_c", "sink_counts", "sink_totals"], "the new one by itself"
    rows = sorted([*rows, ("b", 7)])
    assert [written(spark, tmp_path, f"joined_{each}", each) for each in ("json", "parquet")] == [rows] * 2
    assert stored(tmp_path, "appended") == rows
    assert stored(tmp_path, "totals") == [("a", 7), ("b", 8)], "from the beginning"
    assert stored(tmp_path, "counts") == [(1, 2), (2, 2)]
    with pytest.raises(RunError, match=r"sink_joined_csv: it is new and would write files to .*, where join_o_c has"):
        run(plan_of(tmp_path, "stamped", "changes"), spark, tmp_path)


@pytest.mark.parametrize("failing", ["totals", "appended"])
def test_a_batch_that_failed_at_one_sink_ends_right_in_all(failing: str, spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    add_rows(tmp_path, "o", [{"k": 1, "v": 5}])
    add_rows(tmp_path, "c", [{"k": 1, "name": "a"}, {"k": 2, "name": "b"}])
    run(plan, spark, tmp_path)
    change(tmp_path, f"CREATE TRIGGER full BEFORE INSERT ON {failing} BEGIN SELECT RAISE(ABORT, 'no room'); END")
    add_rows(tmp_path, "o", [{"k": 2, "v": 8}, {"k": 1, "v": 4}])
    execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True)
    with pytest.raises(RunError, match=r"no room"):
        execution.await_termination(DEADLINE_SECONDS)
    change(tmp_path, "DROP TRIGGER full")
    run(plan, spark, tmp_path)
    rows = [("a", 4), ("a", 5), ("b", 8)]
    assert [written(spark, tmp_path, f"joined_{each}", each) for each in FORMATS] == [rows] * 3
    assert Counter(written(spark, tmp_path, "changes")) == Counter([("a", 9, "+U"), ("b", 8, "+I")])
    assert stored(tmp_path, "totals") == [("a", 9), ("b", 8)]
    assert stored(tmp_path, "appended") == rows
    assert stored(tmp_path, "counts") == [(1, 2), (2, 1)]
    assert sorted(v for _, v, _ in stored(tmp_path, "stamped")) == [4, 5, 8]


def change(directory: Path, statement: str) -> None:
    connection = sqlite3.connect(directory / "result.db")
    connection.execute(statement)
    connection.commit()
    connection.close()

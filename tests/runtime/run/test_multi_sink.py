"""Sinks below one operator run as one query: it computes and keeps what they share once, and survives restarts."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

import hintplan
from hintplan.plans.analysis.changelog import with_changelogs
from hintplan.plans.analysis.streaming_queries import single_queries
from hintplan.plans.checkpoint import continuation as continuation_module
from hintplan.plans.checkpoint.continuation import continuation, record_after
from hintplan.plans.checkpoint.record import local_record
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.checkpoint.record import read_record, write_record
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.spark.programs import add_rows

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

DEADLINE_SECONDS = 180


def plan_of(directory: Path) -> Plan:
    """Orders per customer: all into one table, the large ones into another, and each change into a list."""
    (directory / "o").mkdir(exist_ok=True)

    def jdbc(name: str, key: str = "") -> str:
        return (
            f"CREATE TABLE {name} (k BIGINT, n BIGINT{key}) WITH ('connector' = 'jdbc', "
            f"'url' = 'jdbc:sqlite:{directory / 'result.db'}', 'table-name' = '{name}');"
        )

    return hintplan.compile_sql(
        f"CREATE TABLE o (k BIGINT, v BIGINT) "
        f"WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{directory / 'o'}');"
        + jdbc("totals", ", PRIMARY KEY (k) NOT ENFORCED")
        + jdbc("large", ", PRIMARY KEY (k) NOT ENFORCED")
        + "CREATE TABLE seen (k BIGINT, n BIGINT) WITH ('connector' = 'print', 'print-identifier' = 'seen');"
        + "CREATE VIEW t AS SELECT k, SUM(v) AS n FROM o GROUP BY k;"
        + "INSERT INTO totals SELECT k, n FROM t;"
        + "INSERT INTO large SELECT k, n FROM t WHERE n > 10;"
        + "INSERT INTO seen SELECT k, n FROM t;",
        name="several",
    )


def stored(directory: Path, table: str) -> list[tuple]:
    connection = sqlite3.connect(directory / "result.db")
    try:
        return connection.execute(f"SELECT k, n FROM {table} ORDER BY k").fetchall()
    finally:
        connection.close()


def run(plan: Plan, spark: SparkSession, directory: Path) -> Execution:
    execution = execute(plan, spark, checkpoint=str(directory / "checkpoint"), once=True)
    assert execution.await_termination(DEADLINE_SECONDS)
    return execution


def test_sinks_below_one_operator_are_one_query_and_a_restart_continues_it(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of(tmp_path)
    add_rows(tmp_path, "o", [{"k": 1, "v": 4}, {"k": 2, "v": 11}, {"k": 1, "v": 5}])
    execution = run(plan, spark, tmp_path)
    assert list(execution.queries) == ["aggregate_o"]
    assert not any("runs once in the query of each" in note for note in execution.notes)
    batch = execution.progress["sink_totals"]
    assert batch.operators["aggregate_o"].state_rows == 2
    assert [execution.progress[f"sink_{name}"].rows_out for name in ("totals", "large", "seen")] == [2, 1, 2]
    assert (stored(tmp_path, "totals"), stored(tmp_path, "large")) == ([(1, 9), (2, 11)], [(2, 11)])

    add_rows(tmp_path, "o", [{"k": 1, "v": 2}, {"k": 2, "v": -5}])
    run(plan, spark, tmp_path)
    assert (stored(tmp_path, "totals"), stored(tmp_path, "large")) == ([(1, 11), (2, 6)], [(1, 11)])
    assert sorted(capsys.readouterr().out.split("\n")) == sorted(
        [
            *("", "seen> +I[1, 9]", "seen> +I[2, 11]"),
            *("seen> -U[1, 9]", "seen> +U[1, 11]", "seen> -U[2, 11]", "seen> +U[2, 6]"),
        ]
    )


def test_a_checkpoint_of_a_query_per_sink_is_continued_as_it_was_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path)
    add_rows(tmp_path, "o", [{"k": 1, "v": 4}])
    with monkeypatch.context() as before:
        before.setattr(continuation_module, "queries", single_queries)
        assert list(run(plan, spark, tmp_path).queries) == ["sink_totals", "sink_large", "sink_seen"]
    add_rows(tmp_path, "o", [{"k": 1, "v": 8}])
    execution = run(plan, spark, tmp_path)
    assert list(execution.queries) == ["sink_totals", "sink_large", "sink_seen"]
    assert any("aggregate_o runs once in the query of each of 3 sinks" in note for note in execution.notes)
    assert (stored(tmp_path, "totals"), stored(tmp_path, "large")) == ([(1, 12)], [(1, 12)])


def test_a_batch_that_failed_at_the_second_sink_ends_right_in_all_of_them(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    add_rows(tmp_path, "o", [{"k": 1, "v": 4}])
    run(plan, spark, tmp_path)
    connection = sqlite3.connect(tmp_path / "result.db")
    connection.execute("CREATE TRIGGER full BEFORE INSERT ON large BEGIN SELECT RAISE(ABORT, 'no room'); END")
    connection.commit()
    connection.close()
    add_rows(tmp_path, "o", [{"k": 1, "v": 20}, {"k": 3, "v": 1}])
    execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True)
    with pytest.raises(RunError, match=r"the query of sink_totals and sink_large and sink_seen failed: .*no room"):
        execution.await_termination(DEADLINE_SECONDS)
    assert stored(tmp_path, "totals") == [(1, 24), (3, 1)], "written before the second sink failed"
    connection = sqlite3.connect(tmp_path / "result.db")
    connection.execute("DROP TRIGGER full")
    connection.commit()
    connection.close()
    run(plan, spark, tmp_path)
    assert (stored(tmp_path, "totals"), stored(tmp_path, "large")) == ([(1, 24), (3, 1)], [(1, 24)])


def test_the_sinks_of_each_query_are_recorded(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    record = record_after(continuation(None, plan), None, plan, partitions=2, spark=spark.version)
    assert record is not None
    assert [(query.id, query.sinks) for query in record.queries] == [
        ("aggregate_o", ("sink_totals", "sink_large", "sink_seen"))
    ]
    write_record(spark, str(tmp_path / "checkpoint"), record)
    assert read_record(spark, str(tmp_path / "checkpoint")) == record
    assert local_record(str(tmp_path / "checkpoint")) == record


def test_a_query_that_has_lost_its_other_sinks_still_counts_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    add_rows(tmp_path, "o", [{"k": 1, "v": 5}])
    run(plan, spark, tmp_path)
    kept = plan.upstream("sink_totals")
    alone = with_changelogs(replace(plan, operators=tuple(each for each in plan.operators if each.id in kept)))
    add_rows(tmp_path, "o", [{"k": 1, "v": 6}, {"k": 2, "v": 1}])
    execution = execute(alone, spark, checkpoint=str(tmp_path / "checkpoint"), once=True, allow_state_drop=True)
    assert isinstance(execution, Execution)
    assert execution.await_termination(DEADLINE_SECONDS)
    assert execution.progress["sink_totals"].rows_out == 2, "+U of 1, +I of 2"
    assert stored(tmp_path, "totals") == [(1, 11), (2, 1)]


def test_rows_that_sinks_drop_are_counted_where_they_are_made_and_kept_nowhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "o").mkdir()

    def hole(name: str, rows: str) -> str:
        table = f"CREATE TABLE {name} (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole');"
        return f"{table} INSERT INTO {name} {rows};"

    script = (
        f"CREATE TABLE o (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', "
        f"'path' = '{tmp_path / 'o'}'); CREATE VIEW t AS SELECT k, SUM(v) AS n FROM o GROUP BY k;"
        + hole("everything", "SELECT k, n FROM t")
        + hole("large", "SELECT k, n + 1 FROM t WHERE n > 10")
        + hole("none", "SELECT k, n FROM t WHERE n > 1000")
        + hole("upper", "SELECT k, CHAR_LENGTH(CAST(n AS STRING)) FROM t")
    )

    def counted(text: str, where: str) -> dict[str, int | None]:
        return {
            name: batch.rows_out
            for name, batch in run(hintplan.compile_sql(text), spark, tmp_path / where).progress.items()
        }

    kept: list[object] = []
    persist = DataFrame.persist
    monkeypatch.setattr(DataFrame, "persist", lambda frame, level: (kept.append(frame), persist(frame, level))[1])
    add_rows(tmp_path, "o", [{"k": 1, "v": 5}, {"k": 2, "v": 20}])
    assert counted(script, "all") == {"sink_everything": 2, "sink_large": 1, "sink_none": 0, "sink_upper": 2}
    assert len(kept) == 1, "the length of a text is Spark's to say"
    without = script[: script.index("CREATE TABLE upper")]
    assert counted(without, "arrow") == {"sink_everything": 2, "sink_large": 1, "sink_none": 0}
    add_rows(tmp_path, "o", [{"k": 1, "v": 6}, {"k": 2, "v": 1}, {"k": 3, "v": 1}])
    # Two keys are updated, with a -U and a +U each: 5 to 11 and 20 to 21, of which one is not above 10; one is new.
    assert counted(without, "arrow") == {"sink_everything": 5, "sink_large": 3, "sink_none": 0}
    assert len(kept) == 1

"""What jobs of batch plans leave in their sinks: once, again, and when they fail."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.connectors.policy import Policy
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Operator, Scan, SelectItem, Sink, Sort, SortKey
from hintplan.runtime.lookup.metrics import LOOKUP_METRICS
from hintplan.runtime.run.execute import execute
from tests.runtime.batch.programs import batch_plan, cached, read_rows, write_rows
from tests.runtime.functions import test_functions_on_spark as calls

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

DEADLINE_SECONDS = 180
FILES = "'connector' = 'filesystem', 'format' = 'json'"


def run(plan: Plan, spark: SparkSession) -> Any:
    execution = execute(plan, spark)
    assert execution.await_termination(DEADLINE_SECONDS)
    return execution


def copy_plan(directory: Path, *between: Operator, sink: dict[str, str] | None = None) -> Plan:
    """Rows (a INT, b STRING) of files through ``between`` to ``sink``, files if it is not given."""
    columns = (TableColumn(name="a", type="INT"), TableColumn(name="b", type="STRING"))
    files = {"connector": "filesystem", "format": "json"}
    (directory / "in").mkdir(exist_ok=True)
    return Plan(
        name="copy",
        mode="batch",
        config={"parallelism.default": "2"},
        tables={
            "t": Table(columns=columns, options={**files, "path": str(directory / "in")}),
            "r": Table(columns=columns, options=sink or {**files, "path": str(directory / "out")}),
        },
        operators=(
            Scan(id="scan_t", table="t", columns=("a", "b")),
            *between,
            Sink(id="sink_r", inputs=(between[-1].id if between else "scan_t",), table="r"),
        ),
    )


def test_files_are_added_by_each_run(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "in", [{"a": 1, "b": None}, {"a": 2, "b": "x"}])
    execution = run(copy_plan(tmp_path), spark)
    assert execution.progress["sink_r"].rows_out == 2
    assert sorted(read_rows(tmp_path / "out"), key=str) == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    run(copy_plan(tmp_path), spark)
    assert len(read_rows(tmp_path / "out")) == 4


def test_a_failed_job_leaves_no_files_and_the_error_says_what_there_is(spark: SparkSession, tmp_path: Path) -> None:
    plan = copy_plan(tmp_path)
    other = replace(plan.tables["t"], options={**plan.tables["t"].options, "path": str(tmp_path / "bad")})
    good = replace(plan.tables["r"], options={**plan.tables["r"].options, "path": str(tmp_path / "good")})
    plan = replace(
        plan,
        tables={**plan.tables, "other": other, "good": good},
        operators=(
            *plan.operators[:1],
            Scan(id="scan_other", table="other", columns=("a", "b")),
            Sink(id="sink_good", inputs=("scan_t",), table="good"),
            Sink(id="sink_r", inputs=("scan_other",), table="r"),
            Sink(id="sink_last", inputs=("scan_t",), table="good"),
        ),
    )
    write_rows(tmp_path / "in", [{"a": 1, "b": "x"}])
    # Large enough for a task of its own, so that rows are written before the broken line is read.
    write_rows(tmp_path / "bad", ({"a": i, "b": "x" * 100} for i in range(60_000)), "0.json")
    (tmp_path / "bad" / "1.json").write_text('{"a": 1}\n' * 1000 + "{broken\n", encoding="utf-8")
    execution = execute(plan, spark)
    with pytest.raises(
        RunError,
        match=r"the job of sink_r failed: .*; nothing of it was written; "
        r"written before, and left as it is: sink_good; not started: sink_last",
    ):
        execution.await_termination(DEADLINE_SECONDS)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []
    assert read_rows(tmp_path / "good") == [{"a": 1, "b": "x"}]
    assert list(execution.progress) == ["sink_good"]


def test_files_of_a_streaming_job_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "in", [{"a": 1, "b": "x"}])
    plan = copy_plan(tmp_path)
    streaming = execute(replace(plan, mode="streaming"), spark, once=True)
    assert streaming.await_termination(DEADLINE_SECONDS)
    with pytest.raises(RunError, match="a streaming job has written to"):
        execute(plan, spark)


def test_a_keyed_table_is_upserted_and_one_without_key_is_appended_to(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "in", [{"a": 1, "b": "x"}, {"a": 2, "b": None}])
    url = f"jdbc:sqlite:{tmp_path}/r.db"
    for table, key in (("keyed", ("a",)), ("plain", ())):
        plan = copy_plan(tmp_path, sink={"connector": "jdbc", "url": url, "table-name": table})
        plan = replace(plan, tables={**plan.tables, "r": replace(plan.tables["r"], primary_key=key)})
        run(plan, spark)
        run(plan, spark)
    connection = sqlite3.connect(tmp_path / "r.db")
    assert connection.execute("SELECT a, b FROM keyed ORDER BY a").fetchall() == [(1, "x"), (2, None)]
    assert connection.execute("SELECT a, b FROM plain ORDER BY a").fetchall() == [(1, "x")] * 2 + [(2, None)] * 2
    connection.close()


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ((SortKey(column="b", direction="asc", nulls="first"),), [None, "a", "b", "c"]),
        ((SortKey(column="b", direction="asc", nulls="last"),), ["a", "b", "c", None]),
        ((SortKey(column="b", direction="desc", nulls="last"),), ["c", "b", "a", None]),
        ((SortKey(column="b", direction="desc", nulls="first"),), [None, "c", "b", "a"]),
    ],
)
def test_sorted_rows_are_printed_in_order(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    order: tuple[SortKey, ...],
    expected: list[str | None],
) -> None:
    for number, value in enumerate(("c", None, "a", "b")):
        write_rows(tmp_path / "in", [{"a": 1, "b": value}], f"{number}.json")
    plan = copy_plan(
        tmp_path, Sort(id="sort_t", inputs=("scan_t",), order=order, offset=0, limit=None), sink={"connector": "print"}
    )
    run(plan, spark)
    assert capsys.readouterr().out.split() == [word for v in expected for word in ("+I[1,", f"{v or 'null'}]")]


def test_an_offset_and_a_limit_cut_sorted_rows(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "in", [{"a": a, "b": "x"} for a in (5, 3, 9, 1, 7, 1)])
    order = (SortKey(column="a", direction="desc", nulls="last"),)
    sort = Sort(id="sort_t", inputs=("scan_t",), order=order, offset=1, limit=3)
    calc = Calc(id="calc_t", inputs=("sort_t",), select=(SelectItem(name="a"), SelectItem(name="b")))
    run(copy_plan(tmp_path, sort, calc), spark)
    assert [row["a"] for row in read_rows(tmp_path / "out")] == [7, 5, 3]
    limited = copy_plan(tmp_path / "in", sink={"connector": "blackhole"})
    some = Sort(id="sort_t", inputs=("scan_t",), order=(), offset=2, limit=None)
    plan = replace(
        limited, tables=copy_plan(tmp_path).tables, operators=copy_plan(tmp_path, some).operators, name="some"
    )
    assert run(plan, spark).progress["sink_r"].rows_out == 4


def test_a_bounded_generator_is_read_whole_and_an_unbounded_one_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    text = """
        CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence',
          'fields.n.start' = '1', 'fields.n.end' = '100000');
        CREATE TABLE r (n BIGINT, total BIGINT) WITH ('connector' = 'print');
        INSERT INTO r SELECT COUNT(*), SUM(n) FROM g;
    """
    plan = batch_plan(text)
    assert run(plan, spark).progress["sink_r"].rows_out == 1
    endless = Table(columns=plan.tables["g"].columns, options={"connector": "datagen"})
    with pytest.raises(PlanError, match="never ends"):
        execute(replace(plan, tables={**plan.tables, "g": endless}), spark)


def test_a_global_aggregate_of_nothing_is_one_row(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = batch_plan(f"""
        CREATE TABLE t (a INT) WITH ({FILES}, 'path' = '{tmp_path}');
        CREATE TABLE r (n BIGINT, total INT) WITH ('connector' = 'print');
        INSERT INTO r SELECT COUNT(*), SUM(a) FROM t;
    """)
    run(plan, spark)
    assert capsys.readouterr().out == "+I[0, null]\n"


def test_a_lookup_join_looks_up_and_counts(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = sqlite3.connect(tmp_path / "dim.db")
    connection.execute("CREATE TABLE names (k INTEGER PRIMARY KEY, name TEXT)")
    connection.executemany("INSERT INTO names VALUES (?, ?)", [(1, "one"), (2, "two")])
    connection.commit()
    connection.close()
    write_rows(tmp_path / "t", [{"k": k} for k in (1, 2, 2, 3, None)])
    plan = batch_plan(f"""
        CREATE TABLE t (k INT, at AS PROCTIME()) WITH ({FILES}, 'path' = '{tmp_path / "t"}');
        CREATE TABLE names (k INT, name STRING)
          WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path}/dim.db', 'table-name' = 'names');
        CREATE TABLE r (k INT, name STRING) WITH ('connector' = 'print');
        INSERT INTO r SELECT t.k, n.name FROM t LEFT JOIN names FOR SYSTEM_TIME AS OF t.at AS n ON t.k = n.k;
    """)
    execution = run(plan, spark)
    lines = sorted(capsys.readouterr().out.splitlines())
    assert lines == ["+I[1, one]", "+I[2, two]", "+I[2, two]", "+I[3, null]", "+I[null, null]"]
    (found,) = execution.progress["sink_r"].lookups.values()
    assert found["lookups"] == 4, "NULL is not looked up"


def test_an_operator_that_got_no_rows_is_in_the_progress_with_zeros(spark: SparkSession, tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "dim.db").execute("CREATE TABLE names (k INTEGER PRIMARY KEY, name TEXT)")
    write_rows(tmp_path / "t", [{"k": 1}])
    write_rows(tmp_path / "u", [{"k": 1}])
    plan = batch_plan(f"""
        CREATE TABLE t (k INT, at AS PROCTIME()) WITH ({FILES}, 'path' = '{tmp_path / "t"}');
        CREATE TABLE u (k INT) WITH ({FILES}, 'path' = '{tmp_path / "u"}');
        CREATE TABLE names (k INT, name STRING)
          WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path}/dim.db', 'table-name' = 'names');
        CREATE TABLE r (k INT, name STRING) WITH ('connector' = 'blackhole');
        INSERT INTO r SELECT x.k, x.name
        FROM (SELECT t.k, n.name FROM t LEFT JOIN names FOR SYSTEM_TIME AS OF t.at AS n ON t.k = n.k) AS x
        JOIN (SELECT k, COUNT(*) AS c FROM u WHERE k > 5 GROUP BY k) AS y ON x.k = y.k;
    """)
    progress = run(plan, spark).progress["sink_r"]
    assert progress.rows_out == 0
    ((name, found),) = progress.lookups.items()
    assert name == "lookup_n"
    assert {metric for metric, _ in LOOKUP_METRICS} == set(found)


def test_a_function_is_called_once_per_row_even_for_two_sinks_if_its_result_is_cached(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan = calls.job(tmp_path, "AsyncWords")
    write_rows(tmp_path / "texts", [{"text": text} for text in calls.TEXTS])
    tables = {**plan.tables, "dropped": replace(plan.tables["result"], options={"connector": "blackhole"})}
    operators = (*plan.operators, Sink(id="sink_dropped", inputs=("correlate_w",), table="dropped"))
    plan = cached(replace(plan, mode="batch", tables=tables, operators=operators), "correlate_w")
    execution = execute(plan, spark, policy=Policy(modules=calls.MODULES))
    assert execution.await_termination(DEADLINE_SECONDS)
    found = sorted(tuple(row.values()) for row in read_rows(tmp_path / "result"))
    assert found == sorted(calls.FOUND)
    first, second = execution.progress["sink_result"], execution.progress["sink_dropped"]
    assert first.functions["correlate_w"]["calls"] >= len(calls.TEXTS)
    assert second.functions == {}
    assert (second.rows_out, second.cached["correlate_w"].hit) == (len(calls.FOUND), True)


def test_what_only_streams_have_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    plan = copy_plan(tmp_path)
    with pytest.raises(RunError, match="keeps no state, so it has no checkpoint"):
        execute(plan, spark, checkpoint=str(tmp_path / "state"))
    with pytest.raises(RunError, match="runs once, so it has no trigger"):
        execute(plan, spark, trigger="5 s")

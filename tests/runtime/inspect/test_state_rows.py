"""The rows of a state as Arrow, as DuckDB and pandas read them: those that a run would see, by hand."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import hintplan
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.inspect import counts
from tests.runtime.stored import run_on

HOUR, MINUTE = 3_600_000, 60_000
START = 100 * HOUR

SCRIPT = """
SET 'table.exec.state.ttl' = '1 h';
CREATE TABLE l (k BIGINT, a STRING, v BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE r (k BIGINT, b STRING) WITH ('connector' = 'datagen');
CREATE TABLE joined (a STRING, b STRING) WITH ('connector' = 'blackhole');
CREATE TABLE sums (k BIGINT, s BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO joined SELECT a, b FROM l LEFT JOIN r ON l.k = r.k;
INSERT INTO sums SELECT k, SUM(v), COUNT(DISTINCT a) FROM l GROUP BY k;
"""


@pytest.fixture
def kept(tmp_path: Path) -> Plan:
    """Three batches, half an hour apart."""
    plan = hintplan.compile_sql(SCRIPT, name="kept")
    for query in run_on(plan, tmp_path / "checkpoint").values():
        query.batch({"l": [(1, "old", 5), (2, "b", 7)], "r": [(2, "y")]}, START)
        query.batch({"l": [(2, "b", 1), (3, "c", 4)], "r": [(2, "z")]}, START + 30 * MINUTE)
        query.batch({"l": [(3, "d", 6)]}, START + HOUR)
    return plan


def test_duckdb_reads_the_rows_of_a_join_that_have_not_expired(kept: Plan, tmp_path: Path) -> None:
    rows = hintplan.state_rows(kept, str(tmp_path / "checkpoint"), "join_l_r.leftState", at=START + HOUR)
    assert rows.schema.names == ["k", "a", "__partners", "__count", "__write"]
    found = duckdb.sql("SELECT k, a, __count, __partners, epoch_ms(__write) - epoch_ms(0) FROM rows ORDER BY k, a")
    # (1, old) expired in this moment; (2, b) came a second time after half an hour, and has two partners, y and z.
    half, hour = START + 30 * MINUTE, START + HOUR
    assert [(*row[:4], int(row[4].total_seconds() * 1000)) for row in found.fetchall()] == [
        (2, "b", 2, 2, half),
        (3, "c", 1, 0, half),
        (3, "d", 1, 0, hour),
    ]


def test_another_ttl_is_that_of_an_edited_plan(kept: Plan, tmp_path: Path) -> None:
    edited = hintplan.set(kept, "join_l_r.leftState.ttl", "2 h")
    rows = hintplan.state_rows(edited, str(tmp_path / "checkpoint"), "join_l_r.leftState", at=START + HOUR)
    assert sorted(rows.read_all()["a"].to_pylist()) == ["b", "c", "d", "old"]


def test_the_groups_of_an_aggregate_and_the_values_it_remembers(
    kept: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "_RANGE_ROWS", 1)  # as of more rows than are made at a time
    checkpoint = str(tmp_path / "checkpoint")
    groups = hintplan.state_rows(kept, checkpoint, "aggregate_l", at=START + HOUR)
    names = groups.schema.names
    assert names[0] == "k"
    assert names[-2:] == ["__count", "__write"]
    found = duckdb.sql('SELECT k, "__sum(v)", __count FROM groups ORDER BY k').fetchall()
    # Group 1 has expired; rows 7 and 1 are in group 2, rows 4 and 6 in group 3.
    assert found == [(2, 8, 2), (3, 10, 2)]
    values = hintplan.state_rows(kept, checkpoint, "aggregate_l", table="values(a)", at=START + HOUR)
    frame = values.read_pandas()
    assert sorted(zip(frame["k"], frame["__value"], frame["__count"], strict=True)) == [
        (2, "b", 2),
        (3, "c", 1),
        (3, "d", 1),
    ]


def test_state_that_is_not_stored_yet_has_no_rows(tmp_path: Path) -> None:
    plan = hintplan.compile_sql(SCRIPT, name="kept")
    run_on(plan, tmp_path / "checkpoint")
    rows = hintplan.state_rows(plan, str(tmp_path / "checkpoint"), "join_l_r.rightState")
    assert rows.schema.names == ["k", "b", "__count", "__write"]
    assert rows.read_all().num_rows == 0


def test_rows_are_there_though_the_run_has_swept_the_files_since(kept: Plan, tmp_path: Path) -> None:
    rows = hintplan.state_rows(kept, str(tmp_path / "checkpoint"), "join_l_r.leftState", at=START + HOUR)
    query = run_on(kept, tmp_path / "checkpoint")["sink_joined"]
    before = set(query.folder.glob("state/*/*/*/*.manifest"))
    for number in range(40):
        query.batch({"l": [(9, "later", number)]}, START + HOUR + number)
    assert any(not path.exists() for path in before)
    assert rows.read_all().num_rows == 3


def test_of_an_operator_in_several_queries_one_is_chosen(tmp_path: Path) -> None:
    script = (
        SCRIPT.partition("INSERT")[0]
        + """
        CREATE TABLE times (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
        CREATE TABLE others (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
        CREATE VIEW counts AS SELECT k, COUNT(*) AS n FROM l GROUP BY k;
        INSERT INTO times SELECT k, n FROM counts;"""
    )
    plan = hintplan.compile_sql(script)
    run_on(plan, tmp_path / "checkpoint")
    plan = hintplan.compile_sql(f"{script} INSERT INTO others SELECT n, COUNT(*) FROM counts GROUP BY n;")
    run_on(plan, tmp_path / "checkpoint")  # a query of its own, for it begins later
    with pytest.raises(RunError, match="choose one with query=: 'sink_times', 'sink_others'"):
        hintplan.state_rows(plan, str(tmp_path / "checkpoint"), "aggregate_l")
    rows = hintplan.state_rows(plan, str(tmp_path / "checkpoint"), "aggregate_l", query="sink_times")
    assert rows.read_all().num_rows == 0


def test_what_is_no_single_table_is_refused_with_what_there_is(kept: Plan, tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    with pytest.raises(PlanError, match=r"write 'join_l_r\.leftState' or 'join_l_r\.rightState'"):
        hintplan.state_rows(kept, checkpoint, "join_l_r")
    with pytest.raises(PlanError, match=r"did you mean 'join_l_r\.leftState'"):
        hintplan.state_rows(kept, checkpoint, "join_l_r.leftStat")
    with pytest.raises(PlanError, match=r"it has groups, values\(a\)"):
        hintplan.state_rows(kept, checkpoint, "aggregate_l", table="rows")
    with pytest.raises(RunError, match="did you mean 'sink_joined'"):
        hintplan.state_rows(kept, checkpoint, "join_l_r.leftState", query="joined")
    inner = hintplan.compile_sql(SCRIPT.replace("LEFT JOIN", "JOIN"), name="kept")
    with pytest.raises(RunError, match="is another one in the plan: a run would start it empty"):
        hintplan.state_rows(inner, checkpoint, "join_l_r.leftState")

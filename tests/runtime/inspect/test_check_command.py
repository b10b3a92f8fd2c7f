"""`hintplan check`: what it prints and its exit codes, on the record of a checkpoint, and that `run` says the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hintplan as api
import hintplan.plans.checkpoint.record
from hintplan.plans.checkpoint.continuation import continuation, record_after
from hintplan.plans.checkpoint.record import local_record, record_line
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from tests.plans.in_process import hintplan

TABLES = """
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE o (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE c (k BIGINT, name STRING) WITH ('connector' = 'filesystem', 'path' = 'c', 'format' = 'json');
CREATE TABLE r (name STRING, t BIGINT, PRIMARY KEY (name) NOT ENFORCED)
  WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:r.db', 'table-name' = 'r');
"""
TOTALS = "INSERT INTO r SELECT c.name, SUM(o.v) FROM o JOIN c ON o.k = c.k GROUP BY c.name;"


def compiled(insert: str) -> Plan:
    return api.compile_sql(TABLES + insert, name="totals")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint on which the plan of ``TOTALS`` has run."""
    write_record(tmp_path, compiled(TOTALS))
    return tmp_path


def write_record(folder: Path, plan: Plan) -> None:
    """The record of a checkpoint on which ``plan`` has run, as Spark writes it."""
    record = record_after(continuation(None, plan), None, plan, partitions=4, spark="4.2.9")
    assert record is not None
    kept = folder / "checkpoint" / "hintplan"
    kept.mkdir(parents=True)
    (kept / "part-00000-x.txt").write_text(record_line(record) + "\n", encoding="utf-8")
    (kept / ".part-00000-x.txt.crc").write_bytes(b"crc\x00\xff")
    (kept / "_SUCCESS").write_bytes(b"")


def check(folder: Path, plan: Plan, *options: str) -> tuple[int, str]:
    api.dump(plan, folder / "plan.json")
    done = hintplan("check", "plan.json", "--checkpoint", "checkpoint", *options, folder=folder)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_an_edited_ttl_goes_on_with_all_state(folder: Path) -> None:
    edited, _ = set_value(compiled(TOTALS), "join_o_c.leftState.ttl", "3 d")
    code, said = check(folder, edited, "--exit-code")
    assert code == 0
    assert said.splitlines()[:5] == [
        "totals · checkpoint of totals · 4 partitions · Spark 4.2.9",
        "",
        "sink_r                           continues",
        "  aggregate_r                    carries over",
        "  join_o_c                       carries over   leftState.ttl 1 d → 3 d, "
        "from the next start, for existing rows too",
    ]
    assert "Spark 4.2.9 wrote the checkpoint, Spark " in said
    assert said.splitlines()[-2:] == [
        "2 operators with state · 2 carry over",
        "a run continues with all state",
    ]


def test_state_that_starts_empty_is_named_with_its_cause_and_run_says_so_before_it_starts(folder: Path) -> None:
    changed = compiled(TOTALS.replace("SUM(o.v)", "MAX(o.v)"))
    code, said = check(folder, changed)
    assert code == 0
    assert check(folder, changed, "--exit-code")[0] == 2
    assert said.splitlines()[2:5] == [
        "sink_r                           continues",
        "  aggregate_r                    starts empty   aggregate_r.aggregates expr0: SUM → MAX",
        "  join_o_c                       carries over",
    ]
    assert said.splitlines()[-2] == "2 operators with state · 1 carries over · 1 starts empty"
    # Without a Java, it cannot be Spark that has said it.
    nothing = {"JAVA_HOME": str(folder / "nowhere"), "PATH": ""}
    run = hintplan("run", "plan.json", "--once", "--checkpoint", "checkpoint", folder=folder, environment=nothing)
    assert run.returncode == 1
    assert "aggregate_r starts empty (aggregate_r.aggregates expr0: SUM → MAX" in run.stderr
    assert "--allow-state-drop" in run.stderr
    for name in ("o", "c"):
        (folder / name).mkdir()
    # In a process: this one may have a session of Spark, which a run would use.
    command = [sys.executable, "-m", "hintplan", "run", "plan.json", "--checkpoint", "checkpoint", "--allow-state-drop"]
    told = subprocess.run(
        command, cwd=folder, env={**os.environ, **nothing}, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Java" in told.stderr


def test_what_was_added_is_described_where_state_is_lost_and_where_a_run_is_refused(folder: Path) -> None:
    _, said = check(folder, compiled(TOTALS.replace("GROUP BY", "WHERE o.v > 3 GROUP BY")))
    assert "aggregate_r                    starts empty   calc_o is new (calc: WHERE v > 3)" in said
    assert "join_o_c                       starts empty   for the same change as aggregate_r" in said
    more = TOTALS.replace("GROUP BY", "JOIN c AS d ON d.name = c.name GROUP BY")
    code, said = check(folder, compiled(more))
    assert code == 0
    lines = said.splitlines()
    join, scan = "join: JOIN ON join_o_c.name = d.name", "scan: c · filesystem · 1 of 2 columns"
    more_is_new = f"join_o_c_d is new ({join}), scan_c_in_r is new ({scan})"
    assert lines[3] == f"  aggregate_r                    starts empty   {more_is_new}"
    assert lines[4].startswith("  join_o_c_d                     starts empty   ")
    assert lines[5:7] == [
        "  join_o_c                       carries over",
        "  scan_c_in_r                    new            c (filesystem) is read from the beginning",
    ]
    run = hintplan("run", "plan.json", "--once", "--checkpoint", "checkpoint", folder=folder)
    assert run.returncode == 1
    assert "aggregate_r and join_o_c_d start empty (join_o_c_d is new (join: " in run.stderr


def test_a_source_that_is_left_is_named(folder: Path) -> None:
    alone = compiled("INSERT INTO r SELECT name, SUM(k) FROM c GROUP BY name;")
    _, said = check(folder, alone)
    because = "o (filesystem) is no longer read, and would be read from the beginning"
    assert f"  scan_o                         left behind    {because}" in said.splitlines()
    found = json.loads(check(folder, alone, "--json")[1])
    (query,) = found["queries"]
    assert query["sources"] == [{"operator": "scan_o", "table": "o (filesystem)", "outcome": "left behind"}]
    run = hintplan("run", "plan.json", "--once", "--checkpoint", "checkpoint", folder=folder)
    assert run.returncode == 1
    assert "scan_o is left behind, because sink_r no longer reads o (filesystem)" in run.stderr


def test_what_is_refused_exits_with_1_and_json_says_why(tmp_path: Path) -> None:
    def into(table: str, query: str) -> Plan:
        options = "'connector' = 'filesystem', 'path' = 'out', 'format' = 'json'"
        files = f"CREATE TABLE {table} (k BIGINT) WITH ({options});"
        return compiled(f"{files} INSERT INTO {table} {query};")

    write_record(tmp_path, into("x", "SELECT k FROM o"))
    code, said = check(tmp_path, into("y", "SELECT o.k FROM o JOIN c ON o.k = c.k"), "--json")
    assert code == 1
    found = json.loads(said)
    assert found["verdict"] == "refused"
    query, left = found["queries"]
    assert (query["outcome"], left["outcome"]) == ("refused", "left behind")
    because = (
        "it is new and would write files to out, where sink_x has written: Spark takes batches with the same numbers "
        "for written; give its table another path"
    )
    assert query["because"] == because
    assert [state["outcome"] for state in query["states"]] == ["cannot be read"]
    assert found["recorded"] == {"plan": "totals", "layout": 5, "run": 1, "partitions": 4, "spark": "4.2.9"}
    assert {change["effect"] for change in found["changes"]} >= {"incompatible"}
    run = hintplan("run", "plan.json", "--once", "--checkpoint", "checkpoint", "--allow-state-drop", folder=tmp_path)
    assert run.returncode == 1
    assert f"sink_y: {because}" in run.stderr


def test_a_renamed_operator_is_called_by_both_names(folder: Path) -> None:
    code, said = check(folder, compiled(TOTALS.replace("FROM o JOIN c", "FROM o JOIN c AS d").replace("c.", "d.")))
    assert code == 0
    assert said.splitlines()[3:5] == [
        "  aggregate_r                    carries over",
        "  join_o_d                       carries over   was join_o_c",
    ]


def test_a_new_checkpoint_has_nothing_to_lose(folder: Path) -> None:
    api.dump(compiled(TOTALS), folder / "plan.json")
    done = hintplan("check", "plan.json", "--checkpoint", "elsewhere", "--exit-code", folder=folder)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "totals · new checkpoint")
    assert done.stdout.splitlines()[-1] == "there is no directory elsewhere yet: a run would make it"


def test_a_mistyped_checkpoint_is_not_taken_for_new_without_a_word(folder: Path) -> None:
    api.dump(compiled(TOTALS), folder / "plan.json")
    said = "there is no directory chekpoint yet: a run would make it; did you mean checkpoint?"
    done = hintplan("check", "plan.json", "--checkpoint", "chekpoint", folder=folder)
    assert done.stdout.splitlines()[-1] == said
    done = hintplan("check", "plan.json", "--checkpoint", "chekpoint", "--json", folder=folder)
    assert json.loads(done.stdout)["notes"] == [said]
    (folder / "empty").mkdir()
    done = hintplan("check", "plan.json", "--checkpoint", "empty", folder=folder)
    assert "no directory" not in done.stdout


def test_the_line_of_the_last_run_counts(folder: Path) -> None:
    before = local_record(str(folder / "checkpoint"))
    changed = compiled(TOTALS.replace("SUM(o.v)", "MAX(o.v)"))
    later = record_after(continuation(before, changed), before, changed, partitions=4, spark="4.3.0")
    assert later is not None
    # Spark names its files as it likes.
    (folder / "checkpoint" / "hintplan" / "part-00000-a.txt").write_text(record_line(later) + "\n", encoding="utf-8")
    assert check(folder, changed, "--exit-code")[0] == 0
    assert check(folder, compiled(TOTALS), "--exit-code")[0] == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"layout": 9}', "has layout 9, this version of hintplan reads layout 5"),
        ('{"layout": 4, "plan', "was not written by hintplan"),
        ('{"layout": 4, "plan": "x", "queries": 3, "document": null}', "was not written by hintplan"),
        ("[]", "was not written by hintplan"),
    ],
)
def test_a_record_that_cannot_be_read_is_an_error(folder: Path, text: str, said: str) -> None:
    (folder / "checkpoint" / "hintplan" / "part-00000-x.txt").write_text(text, encoding="utf-8")
    api.dump(compiled(TOTALS), folder / "plan.json")
    done = hintplan("check", "plan.json", "--checkpoint", "checkpoint", folder=folder)
    assert done.returncode == 1
    assert said in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        '{"layout": 1, "plan": "totals", "partitions": 4, "tables": {}, "operators": {"scan_o": "0123456789abcdef"}}',
        '{"layout": 2, "plan": "totals", "partitions": 4, "queries": {}, "tables": {}, "operators": {}}',
        '{"layout": 3, "run": 1, "plan": "totals", "partitions": 4, "spark": "4.3.0", "queries": [], "document": {}}',
    ],
    ids=["1", "2", "3"],
)
def test_a_checkpoint_of_an_older_layout_is_refused_with_what_to_do(folder: Path, line: str) -> None:
    (folder / "checkpoint" / "hintplan" / "part-00000-x.txt").write_text(line + "\n", encoding="utf-8")
    api.dump(compiled(TOTALS), folder / "plan.json")
    layout = json.loads(line)["layout"]
    for command in ("check", "run"):
        done = hintplan(command, "plan.json", "--checkpoint", "checkpoint", folder=folder)
        assert done.returncode == 1
        assert f"checkpoint has layout {layout}, this version of hintplan reads layout 5" in done.stderr
        assert (
            "run the plan with the version of hintplan that wrote it, or use a new checkpoint directory" in done.stderr
        )


def test_states_that_come_and_go_in_a_query_are_named(folder: Path) -> None:
    joined = "INSERT INTO r SELECT c.name, o.v FROM o JOIN c ON o.k = c.k;"
    code, said = check(folder, compiled(joined), "--exit-code")
    assert code == 2
    assert said.splitlines()[2:5] == [
        "sink_r                           continues",
        "  join_o_c                       carries over",
        "  aggregate_r                    left behind    aggregate_r is gone (aggregate: GROUP BY name: SUM(v))",
    ]
    run = hintplan("run", "plan.json", "--once", "--checkpoint", "checkpoint", folder=folder)
    assert run.returncode == 1
    assert "aggregate_r is left behind (aggregate_r is gone (aggregate: GROUP BY name" in run.stderr
    kept = folder / "checkpoint" / "hintplan" / "part-00000-x.txt"
    record = record_after(continuation(None, compiled(joined)), None, compiled(joined), partitions=4, spark="4.2.9")
    assert record is not None
    kept.write_text(record_line(record) + "\n", encoding="utf-8")
    code, said = check(folder, compiled(TOTALS), "--exit-code")
    assert code == 2
    begun, kept = said.splitlines()[3:5]
    assert begun.startswith("  aggregate_r                    starts empty   aggregate_r is new (aggregate: GROUP BY")
    assert kept == "  join_o_c                       carries over"


def test_a_batch_plan_has_no_checkpoint(folder: Path) -> None:
    batch = api.compile_sql("SET 'execution.runtime-mode' = 'batch';" + TABLES + TOTALS, name="totals")
    api.dump(batch, folder / "plan.json")
    done = hintplan("check", "plan.json", "--checkpoint", "checkpoint", folder=folder)
    assert done.returncode == 64
    assert "totals is a batch plan: it keeps no state, so it has no checkpoint" in done.stderr

"""Runs on a Spark Connect server whose Python has nothing of hintplan."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

import hintplan
from tests.cluster.conftest import DEADLINE_SECONDS, Run
from tests.cluster.installed import NEEDED_BY_SERVERS, environment, installed, python_with
from tests.cluster.jobs import check_run_and_restart, prepare_rates, prepare_words
from tests.cluster.standalone import running_connect_server
from tests.connectors.lakes.lakes import LAKES, in_with
from tests.connectors.lookup.test_lookups_on_spark import DEFERRED, results
from tests.runtime.batch.programs import batch_plan, read_rows, write_rows
from tests.runtime.functions.test_functions_on_spark import FOUND, tuples
from tests.runtime.metrics.receiver import receiver
from tests.sample import sampled

pytestmark = pytest.mark.part(of=3)

FILES = "'connector' = 'filesystem', 'format' = 'json'"
CHECKPOINT = ("--once", "--checkpoint", "state")


def test_joins_and_aggregates_keep_their_state_across_a_restart(connect_server: str, run: Run, tmp_path: Path) -> None:
    check_run_and_restart(run, tmp_path, "--remote", connect_server)


def test_the_module_of_a_function_goes_along_and_its_calls_are_counted(
    connect_server: str, run: Run, tmp_path: Path
) -> None:
    module = prepare_words(tmp_path)
    own = {"PYTHONPATH": str(tmp_path / "own")}
    with receiver() as received:
        where = ("--remote", connect_server, "--metrics", f"otlp={received.url}")
        done = run("plan.json", "--json", *CHECKPOINT, "--allow-module", module, *where, **own)
    assert done.returncode == 0, done.stderr
    assert tuples(tmp_path) == FOUND
    *events, end = map(json.loads, done.stdout.splitlines())
    batches = [event for event in events if event["event"] == "batch"]
    assert batches[0]["functions"]["correlate_w"]["calls"] == 10
    assert end["functions"]["sink_result"]["correlate_w"]["rowsOut"] == 5
    sent = received.series()
    assert list(sent["hintplan.function.calls"].values()) == [10]
    assert list(sent["hintplan.sink.rows"].values()) == [5]
    ((labels, rows),) = sent["hintplan.source.rows"].items()
    assert dict(labels)["operator"] == batches[0]["sources"][0]["operator"] is not None
    assert rows == sum(batch["rows_in"] for batch in batches)


@pytest.mark.parametrize("hint", sampled(["", DEFERRED.replace("1 s", "10 ms").replace("'100'", "'2'")], keep=1))
def test_lookups_come_through_with_their_metrics(connect_server: str, run: Run, tmp_path: Path, hint: str) -> None:
    module = prepare_rates(tmp_path, hint=hint)
    own = {"PYTHONPATH": str(tmp_path / "own")}
    done = run("plan.json", "--json", *CHECKPOINT, "--allow-module", module, "--remote", connect_server, **own)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path) == [(1, 1.1), (2, None), (3, 1.1)]
    *events, end = map(json.loads, done.stdout.splitlines())
    batches = [event for event in events if event["event"] == "batch"]
    found = batches[0]["lookups"]["lookup_r"]
    assert (found["lookups"], found["hitCount"] + found["missCount"], found["retries"]) == (3, 3, 2 if hint else 0)
    assert end["lookups"]["sink_result"]["lookup_r"]["lookups"] == 3


@pytest.mark.usefixtures("connect_port")
def test_a_batch_plan_shares_its_cached_results_on_a_server_of_its_own(run: Run, tmp_path: Path) -> None:
    write_rows(tmp_path / "t", [{"k": 1, "v": 2}, {"k": 1, "v": 5}, {"k": None, "v": 1}])
    plan = batch_plan(f"""
        CREATE TABLE t (k INT, v INT) WITH ({FILES}, 'path' = '{tmp_path / "t"}');
        CREATE TABLE sums (k INT, total INT) WITH ('connector' = 'print');
        CREATE TABLE counts (k INT, n BIGINT) WITH ({FILES}, 'path' = '{tmp_path / "counts"}');
        CACHE LAZY TABLE x AS SELECT k, v FROM t WHERE v > 1;
        INSERT INTO sums SELECT k, SUM(v) FROM x GROUP BY k;
        INSERT INTO counts SELECT k, COUNT(v) FROM x GROUP BY k;
    """)
    hintplan.dump(plan, tmp_path / "plan.json")
    done = run("plan.json", "--remote", "local[2]", "--json", "--once")
    assert done.returncode == 0, done.stderr
    sums, counts, end = (json.loads(line) for line in done.stdout.splitlines())
    assert (sums["event"], sums["sink"], sums["rows_out"]) == ("job", "sink_sums", 1)
    (name,) = sums["cached"]
    assert sums["cached"][name] | {"storage_level": ""} == {
        "hit": False, "rows": 2, "bytes": None, "storage_level": "", "hits": 0
    }  # fmt: skip
    assert (counts["cached"][name]["hit"], counts["cached"][name]["hits"]) == (True, 1)
    assert (end["event"], end["status"], end["jobs"], end["rows_out"]) == ("end", "finished", 2, 2)
    assert "+I[1, 7]" in done.stderr
    assert "job is a batch plan: it reads the existing rows and stops, with or without --once" in done.stderr
    assert read_rows(tmp_path / "counts") == [{"k": 1, "n": 2}]


def test_an_older_copy_of_a_checkpoint_is_refused_where_files_have_gone_on(
    connect_server: str, run: Run, tmp_path: Path
) -> None:
    script = f"""
        CREATE TABLE t (k INT) WITH ({FILES}, 'path' = '{tmp_path / "t"}');
        CREATE TABLE r (k INT) WITH ({FILES}, 'path' = '{tmp_path / "r"}');
        INSERT INTO r SELECT k FROM t;
    """
    hintplan.dump(hintplan.compile_sql(script), tmp_path / "plan.json")
    (tmp_path / "t").mkdir()
    for number in range(2):
        (tmp_path / "t" / f"{number}.json").write_text(f'{{"k": {number}}}\n')
        done = run("plan.json", "--once", "--checkpoint", str(tmp_path / "state"), "--remote", connect_server)
        assert done.returncode == 0, done.stderr
        if number == 0:
            shutil.copytree(tmp_path / "state", tmp_path / "older")
    done = run("plan.json", "--once", "--checkpoint", str(tmp_path / "older"), "--remote", connect_server)
    assert done.returncode == 1
    assert "written batches up to 1" in done.stderr
    assert "ends with batch 0" in done.stderr


@pytest.mark.usefixtures("connect_port")
def test_queries_with_state_write_what_functions_are_called_with(run: Run, tmp_path: Path) -> None:
    """Sinks whose batches a function gets: its tasks learn the batch of their own query, and state is kept by it."""
    script = f"""
        CREATE TABLE t (k INT, v INT) WITH ({FILES}, 'path' = '{tmp_path / "t"}', 'source.max-files-per-trigger' = '1');
        CREATE TABLE totals (k INT, total INT, PRIMARY KEY (k) NOT ENFORCED)
        WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path / "out.db"}', 'table-name' = 'totals');
        CREATE TABLE counts (k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
        WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path / "out.db"}', 'table-name' = 'counts');
        INSERT INTO totals SELECT k, SUM(v) FROM t GROUP BY k;
        INSERT INTO counts SELECT k, COUNT(*) FROM t WHERE v > 1 GROUP BY k;
    """
    hintplan.dump(hintplan.compile_sql(script), tmp_path / "plan.json")
    for number, rows in enumerate(([{"k": 1, "v": 2}], [{"k": 1, "v": 5}, {"k": 2, "v": 1}], [{"k": 1, "v": -3}])):
        (tmp_path / "t").mkdir(exist_ok=True)
        (tmp_path / "t" / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        if number != 1:  # two files and so two batches in the second run
            done = run("plan.json", *CHECKPOINT, "--remote", "local[2]")
            assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(tmp_path / "out.db")) as database:
        assert database.execute("SELECT k, total FROM totals ORDER BY k").fetchall() == [(1, 4), (2, 1)]
        assert database.execute("SELECT k, n FROM counts").fetchall() == [(1, 2)]


LAKE = """
CREATE TABLE o (id BIGINT, v BIGINT) WITH ({files}, 'path' = '{at}/in');
CREATE TABLE copies (id BIGINT, v BIGINT) WITH ({copies});
CREATE TABLE keyed (id BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ({keyed});
INSERT INTO copies SELECT id, v FROM o;
INSERT INTO keyed SELECT id - id % 2, v FROM o WHERE id % 2 = 0;
"""
OVERWRITTEN = """
SET 'execution.runtime-mode' = 'batch';
CREATE TABLE o (id BIGINT, v BIGINT) WITH ({files}, 'path' = '{at}/in');
CREATE TABLE r (id BIGINT, v BIGINT) WITH ({options});
INSERT OVERWRITE r SELECT id, 7 FROM o WHERE id < 3;
"""


@pytest.mark.usefixtures("connect_port")
@pytest.mark.parametrize("kind", sampled(LAKES, keep=1))
def test_tables_of_lakes_are_committed_to_by_the_server(run: Run, tmp_path: Path, kind: str) -> None:
    lake = LAKES[kind](tmp_path / "lake")
    (tmp_path / "in").mkdir()
    places = {name: in_with(lake.options(name)) for name in ("copies", "keyed")}
    script = LAKE.format(files=FILES, at=tmp_path, **places)
    hintplan.dump(hintplan.compile_sql(script, name="lake"), tmp_path / "plan.json")
    (tmp_path / "server").mkdir()  # whose own Python imports modules from where the server starts
    with running_connect_server(tmp_path / "server", python=python_with(NEEDED_BY_SERVERS, kind)) as url:
        for number in range(2):
            rows = [{"id": i, "v": i % 3} for i in range(9 * number, 9 * number + 9)]
            (tmp_path / "in" / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
            done = run("plan.json", *CHECKPOINT, "--remote", url)
            assert done.returncode == 0, done.stderr
        script = OVERWRITTEN.format(files=FILES, at=tmp_path, options=places["copies"])
        hintplan.dump(hintplan.compile_sql(script, name="over"), tmp_path / "over.json")
        refused = run("over.json", "--remote", url)
        assert refused.returncode == 1
        assert f"pip install 'hintplan[{kind}]', where the run was started" in refused.stderr
        done = run("over.json", "--remote", url, hintplan=installed("delta", "iceberg").hintplan)
        assert done.returncode == 0, done.stderr
    assert sorted(lake.rows("copies")) == [(i, 7) for i in range(3)]
    assert sorted(lake.rows("copies", 2)) == [(i, i % 3) for i in range(18)]
    assert sorted(lake.rows("keyed")) == [(i, i % 3) for i in range(0, 18, 2)]
    assert sorted(lake.rows("keyed", 1)) == [(i, i % 3) for i in range(0, 9, 2)]


LATE = """#!/bin/sh
# Python that is late the first time that a server needs it for a streaming query.
case "$*" in *foreach_batch_worker*) mkdir '{once}' && sleep 12 ;; esac
exec '{python}' "$@"
"""


@pytest.mark.nightly
def test_a_query_whose_python_starts_too_late_is_started_again(run: Run, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    python, once = tmp_path / "server/python", tmp_path / "server/once"
    python.write_text(LATE.format(once=once, python=installed().server))
    python.chmod(0o755)
    write_rows(tmp_path / "t", [{"k": 1, "v": 2}, {"k": 1, "v": 3}])
    script = f"""
    CREATE TABLE t (k INT, v INT) WITH ({FILES}, 'path' = '{tmp_path}/t');
    CREATE TABLE totals (k INT, total INT, PRIMARY KEY (k) NOT ENFORCED)
    WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{tmp_path}/out.db', 'table-name' = 'totals');
    INSERT INTO totals SELECT k, SUM(v) FROM t GROUP BY k;
    """
    hintplan.dump(hintplan.compile_sql(script), tmp_path / "plan.json")
    with running_connect_server(tmp_path / "server", python=python) as url:
        done = run("plan.json", *CHECKPOINT, "--remote", url)
    assert done.returncode == 0, done.stderr
    assert once.is_dir()
    with closing(sqlite3.connect(tmp_path / "out.db")) as database:
        assert database.execute("SELECT k, total FROM totals").fetchall() == [(1, 5)]


def test_a_directory_is_not_overwritten_by_a_client(connect_server: str, run: Run, tmp_path: Path) -> None:
    write_rows(tmp_path / "in", [{"id": 1, "v": 2}])
    write_rows(tmp_path / "r", [{"id": 5, "v": 5}])
    script = OVERWRITTEN.format(files=FILES, at=tmp_path, options=f"{FILES}, 'path' = '{tmp_path}/r'")
    hintplan.dump(hintplan.compile_sql(script, name="over"), tmp_path / "over.json")
    done = run("over.json", "--remote", connect_server)
    assert done.returncode == 1
    assert "table r cannot be overwritten by a client of Spark Connect" in done.stderr
    assert read_rows(tmp_path / "r") == [{"id": 5, "v": 5}]


def test_dataframes_come_in_and_functions_get_rows_on_a_server_that_has_no_hintplan(
    connect_server: str, tmp_path: Path
) -> None:
    program = tmp_path / "connect_frames.py"
    program.write_text((Path(__file__).parent / "connect_frames.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "in").mkdir()
    for number, rows in enumerate(([(1, 2), (2, 1)], [(1, 5)])):
        (tmp_path / "in" / f"{number}.json").write_text("".join(f'{{"id": {i}, "v": {v}}}\n' for i, v in rows))
        os.utime(tmp_path / "in" / f"{number}.json", (number, number))
    done = subprocess.run(
        [installed().python, program, connect_server, tmp_path],
        env=environment(), capture_output=True, text=True, timeout=DEADLINE_SECONDS, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {
        name: json.loads((tmp_path / f"{name}.json").read_text()) for name in ("batch-0", "batch-1", "large", "left")
    }
    assert found["batch-0"] == [[1, 2, "+U"], [2, 1, "+U"]]
    assert found["batch-1"] == [[1, 7, "+U"]]
    assert found["large"] == [[0, 9999900000, "+U"], [1, 10000000000, "+U"]]
    assert found["left"] == []


def test_generated_rows_reach_sqlite_once_each_if_the_server_has_hintplan(tmp_path: Path) -> None:
    program = tmp_path / "connect_job.py"
    program.write_text((Path(__file__).parent / "connect_job.py").read_text(encoding="utf-8"), encoding="utf-8")
    # Spark sends no code to where a streaming source runs.
    with running_connect_server(tmp_path, python=installed().python) as url:
        done = subprocess.run(
            [installed().python, program, url, tmp_path],
            env=environment(), capture_output=True, text=True, timeout=DEADLINE_SECONDS, cwd=tmp_path, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(tmp_path / "out.db")) as database:
        for name in ("log", "latest"):
            ids = [row[0] for row in database.execute(f"SELECT id FROM {name} ORDER BY id")]
            assert ids == list(range(1, 11))

"""``hintplan run`` on batch plans: what it prints, signals and exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import hintplan as api
from tests.plans.in_process import hintplan
from tests.runtime.batch.programs import batch_plan, write_rows

pytestmark = pytest.mark.spark  # one of its own

ROOT = Path(__file__).parents[3]
DEADLINE_SECONDS = 240
FILES = "'connector' = 'filesystem', 'format' = 'json'"
RUN = (sys.executable, "-m", "hintplan", "run", "plan.json")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "NO_COLOR": "1"}


@pytest.mark.parametrize(("option", "value"), [("--trigger", "5 s"), ("--checkpoint", "state")])
def test_options_of_streams_are_wrong_usage(tmp_path: Path, option: str, value: str) -> None:
    plan = batch_plan(f"""
        CREATE TABLE t (k INT) WITH ({FILES}, 'path' = '{tmp_path / "t"}');
        CREATE TABLE r (k INT) WITH ('connector' = 'print');
        INSERT INTO r SELECT k FROM t;
    """)
    api.dump(plan, tmp_path / "plan.json")
    done = hintplan("run", "plan.json", option, value, folder=tmp_path)
    assert done.returncode == 64
    assert f"job is a batch plan: it {'runs once' if option == '--trigger' else 'keeps no state'}" in done.stderr


@pytest.mark.integration
def test_a_signal_stops_the_job_at_work_and_keeps_what_was_written(tmp_path: Path) -> None:
    write_rows(tmp_path / "t", [{"k": 1}])
    plan = batch_plan(f"""
        CREATE TABLE t (k INT) WITH ({FILES}, 'path' = '{tmp_path / "t"}');
        CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1000000000000');
        CREATE TABLE quick (k INT) WITH ({FILES}, 'path' = '{tmp_path / "quick"}');
        CREATE TABLE slow (n BIGINT) WITH ({FILES}, 'path' = '{tmp_path / "slow"}');
        INSERT INTO quick SELECT k FROM t;
        INSERT INTO slow SELECT COUNT(n) FROM g;
    """)
    api.dump(plan, tmp_path / "plan.json")
    process = subprocess.Popen([*RUN, "--master", "local[2]"], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE)
    said: list[str] = []

    def listen() -> None:
        assert process.stderr is not None
        for line in iter(process.stderr.readline, b""):
            said.append(line.decode())

    reader = threading.Thread(target=listen)
    reader.start()
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not any(line.startswith("sink_quick: 1 row out") for line in said):
            assert time.monotonic() < deadline, said
            assert process.poll() is None, said
            threading.Event().wait(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_SECONDS) == 130
    finally:
        process.kill()
        reader.join()
    text = "".join(said)
    assert "stopping now" in text
    assert "stopped after 1 job: 1 row out" in text
    assert len(list((tmp_path / "quick").glob("*.json"))) == 1
    assert list((tmp_path / "slow").glob("*.json")) == []

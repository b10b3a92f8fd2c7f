"""The example for Airflow: Airflow reads it, and its command says how the run ended, also when Airflow stops it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import hintplan
from tests.cluster.installed import environment, installed, python_of
from tests.faults.job import Feed, compiled

# Airflow takes minutes to install.
pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.nightly]

EXAMPLE = Path(__file__).parents[2] / "examples" / "airflow"
DEADLINE_SECONDS = 240
READ = """
import json
import sys
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(dag_folder=sys.argv[1])
found = {
    name: {"runs": dag.max_active_runs, "tasks": {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks}}
    for name, dag in bag.dags.items()
}
command = bag.dags["hintplan_revenue"].get_task("run").bash_command
print(json.dumps({"errors": bag.import_errors, "dags": found, "command": command}))
"""


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Airflow, in an environment of its own, makes of the example."""
    home = tmp_path_factory.mktemp("airflow")
    done = subprocess.run(
        [python_of("airflow", "apache-airflow>=3.1,<4"), "-c", READ, EXAMPLE],
        env=environment(AIRFLOW_HOME=str(home), AIRFLOW__CORE__LOAD_EXAMPLES="False"),
        capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_airflow_reads_the_example(read: dict[str, Any]) -> None:
    assert read["errors"] == {}
    assert read["dags"] == {"hintplan_revenue": {"runs": 1, "tasks": {"run": [], "report": ["run"]}}}


def start(directory: Path, command: str) -> subprocess.Popen[str]:
    """What Airflow does with the command: in a process group of its own, and reads all that is printed."""
    path = f"{installed().hintplan.parent}{os.pathsep}{os.environ['PATH']}"
    given = environment(PATH=path, PLAN="plan.json", CHECKPOINT="checkpoint")
    with open(directory / "err", "wb") as err:
        return subprocess.Popen(
            ["bash", "-c", command], cwd=directory, env=given, stdout=subprocess.PIPE, stderr=err, text=True,
            start_new_session=True,
        )  # fmt: skip


def prepared(directory: Path, files: int) -> None:
    feed = Feed(directory, seed=3)
    for _ in range(files):
        feed.add()
    hintplan.dump(compiled(directory, files_per_batch=1), directory / "plan.json")


def test_the_last_line_says_how_the_run_ended(read: dict[str, Any], tmp_path: Path) -> None:
    prepared(tmp_path, 60)
    process = start(tmp_path, read["command"])
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while '"event": "batch"' not in events(tmp_path):
            assert time.monotonic() < deadline
            assert process.poll() is None, (tmp_path / "err").read_text()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.1)
        os.killpg(process.pid, signal.SIGTERM)
        out, _ = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 143
        ended = json.loads(events(tmp_path).splitlines()[-1])
        assert (out, ended["status"], ended["batches"] >= 1) == ("", "stopped", True)
        process = start(tmp_path, read["command"])
        out, _ = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 0, (tmp_path / "err").read_text()
        end = json.loads(out.splitlines()[-1])
        assert (end["event"], end["status"], end["plan"]) == ("end", "finished", "faults")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def events(directory: Path) -> str:
    file = directory / "events"
    return file.read_text(encoding="utf-8") if file.exists() else ""

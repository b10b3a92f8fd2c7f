"""Runs on a standalone cluster whose workers lack hintplan, and through Spark Connect."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest

import plans
from tests.functions.test_functions_on_spark import FOUND, TEXTS, job, texts, tuples
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = pytest.mark.cluster

DEADLINE_SECONDS = 240
ROOT = Path(__file__).parents[2]
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def bare_python(directory: Path) -> Path:
    """A Python that has what is installed beside pyspark, but neither this checkout nor an editable install of it."""
    script = directory / "bare-python"
    packages = sysconfig.get_paths()["purelib"]
    script.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{packages}"\nexec {sys.executable} -S "$@"\n', encoding="utf-8"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    probe = "import importlib.util as u, pyspark; print([u.find_spec(m) for m in ('plans', 'runtime')])"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    found = subprocess.run([script, "-c", probe], cwd=directory, env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == "[None, None]", f"hintplan must not be installed for these tests: {found}"
    return script


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The URL of a master with two workers of one core each on loopback, and the Python of their workers."""
    directory = tmp_path_factory.mktemp("cluster")
    port, ui = free_port(), free_port()
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(directory / "work")}
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        with open(directory / f"{name}.log", "wb") as log:
            # A group of its own, so that stopping it stops the executors it has started.
            processes.append(
                subprocess.Popen(
                    [SPARK_CLASS, *arguments],
                    cwd=directory,
                    env=environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    try:
        master = "org.apache.spark.deploy.master.Master"
        start("master", master, "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui))
        worker = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
        for name in ("worker1", "worker2"):
            start(name, *worker, "--webui-port", str(free_port()), f"spark://127.0.0.1:{port}")
        wait_for_workers(ui, 2, processes[0])
        yield f"spark://127.0.0.1:{port}", bare_python(directory)
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for_workers(ui: int, count: int, master: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{ui}/json/", timeout=5) as answer:
                if json.load(answer)["aliveworkers"] >= count:
                    return
        except OSError:
            pass
        try:
            pytest.fail(f"the master has ended with {master.wait(0.3)}")
        except subprocess.TimeoutExpired:
            continue
    pytest.fail("the cluster did not start")


def run(directory: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "plans.cli", "run", "plan.json", "--once", "--checkpoint", "state", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def check_run_and_restart(directory: Path, *arguments: str, **environment: str) -> None:
    orders = sample(0, 40)
    add_rows(directory, "customers", CUSTOMER_ROWS)
    add_rows(directory, "orders", orders[:20])
    plans.dump(revenue_plan(directory), directory / "plan.json")
    first = run(directory, *arguments, **environment)
    assert first.returncode == 0, first.stderr
    assert fold(changes(directory)) == expected(orders[:20])
    assert "aggregate_t 3 rows" in first.stderr
    add_rows(directory, "late", orders[20:])
    again = run(directory, *arguments, **environment)
    assert again.returncode == 0, again.stderr
    assert fold(changes(directory)) == expected(orders)


def on_cluster(master: str, python: Path, **conf: str) -> list[str]:
    """The options of a run on the cluster, with more settings of Spark."""
    conf = {
        "spark.pyspark.python": str(python),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "700m",
        **conf,
    }
    return ["--master", master, *(word for key, value in conf.items() for word in ("--conf", f"{key}={value}"))]


def test_a_cluster_whose_workers_lack_hintplan_runs_a_plan(cluster: tuple[str, Path], tmp_path: Path) -> None:
    check_run_and_restart(tmp_path, *on_cluster(*cluster))


def test_a_cluster_takes_the_module_of_a_function_along(cluster: tuple[str, Path], tmp_path: Path) -> None:
    texts(tmp_path, *TEXTS)
    module = tmp_path / "words_of_text.py"
    module.write_text((ROOT / "tests" / "functions" / "samples.py").read_text(encoding="utf-8"), encoding="utf-8")
    plan = job(tmp_path, "AsyncWords")
    moved = replace(plan.functions["words"], class_name="words_of_text.AsyncWords")
    plans.dump(replace(plan, functions={"words": moved}), tmp_path / "plan.json")
    options = on_cluster(*cluster, **{"spark.submit.pyFiles": str(module)})
    done = run(tmp_path, "--allow-module", "words_of_text", *options)
    assert done.returncode == 0, done.stderr
    assert tuples(tmp_path) == FOUND
    assert "correlate_w: 10 calls · 5 rows out · 5 failures · 5 retries" in done.stderr


def test_spark_connect_runs_a_plan(tmp_path: Path) -> None:
    check_run_and_restart(tmp_path, "--remote", "local[2]")


def test_a_cluster_needs_a_checkpoint_that_all_workers_reach(cluster: tuple[str, Path], tmp_path: Path) -> None:
    master, _ = cluster
    plans.dump(revenue_plan(tmp_path), tmp_path / "plan.json")
    done = subprocess.run(
        [sys.executable, "-m", "plans.cli", "run", "plan.json", "--once", "--master", master],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert "keeps its state in a checkpoint that all workers can reach" in done.stderr

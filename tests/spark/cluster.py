"""A standalone cluster on this machine, whose workers lack hintplan; for tests, and programs of tests."""

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
from contextlib import contextmanager
from pathlib import Path

import pyspark

__all__ = ["on_cluster", "running_cluster"]

DEADLINE_SECONDS = 240
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


@contextmanager
def running_cluster(directory: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a master with two workers of one core each on loopback, and the Python of their workers."""
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
            raise RuntimeError(f"the master has ended with {master.wait(0.3)}")
        except subprocess.TimeoutExpired:
            continue
    raise RuntimeError("the cluster did not start")


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

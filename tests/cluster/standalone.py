"""Standalone clusters and Spark Connect servers on this machine, whose Python has nothing of hintplan."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.installed import environment, installed
from tests.spark.quick import quick_executors

__all__ = ["Cluster", "free_port", "kill", "poll", "running_cluster", "running_connect_server"]

DEADLINE_SECONDS = 240
POLL_SECONDS = 0.3


@dataclass(slots=True, kw_only=True)
class Cluster:
    """A master and its workers of one core each; ``workers`` are their processes, which lead groups of their own."""

    directory: Path
    port: int
    ui: int
    python: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def options(self, **conf: str) -> list[str]:
        """The options of a run on the cluster, with more settings of Spark."""
        conf = {
            "spark.pyspark.python": str(self.python),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "700m",
            **quick_executors(),
            **conf,
        }
        return [
            "--master",
            self.master,
            *(word for key, value in conf.items() for word in ("--conf", f"{key}={value}")),
        ]

    def add_worker(self) -> None:
        """One more worker, once the master knows it."""
        worker = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
        options = ("--webui-port", str(free_port()), "--work-dir", str(self.directory / "work"), self.master)
        self.workers.append(_started(self.directory, f"worker{len(self.workers)}", *worker, *options))
        living = sum(process.poll() is None for process in self.workers)
        poll("a worker", lambda: self.alive() >= living, self.workers[-1])

    def alive(self) -> int:
        """How many workers the master knows to live; -1 if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ui}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (OSError, ValueError):  # its page is not there yet, or is no JSON yet
            return -1

    def kill_worker(self) -> None:
        """SIGKILL a worker and the executors that it has started."""
        victim = next(process for process in self.workers if process.poll() is None)
        kill(victim)

    def restore(self) -> None:
        """Start a worker for each that was killed."""
        for _ in [process for process in self.workers if process.poll() is not None]:
            self.add_worker()
        self.workers = [process for process in self.workers if process.poll() is None]


@contextmanager
def running_cluster(directory: Path, *, python: Path | None = None) -> Iterator[Cluster]:
    """A cluster with two workers on loopback, for the time of the block; ``python`` is that of bare workers if None."""
    cluster = Cluster(directory=directory, port=free_port(), ui=free_port(), python=python or installed().worker)
    name = "org.apache.spark.deploy.master.Master"
    options = ("--host", "127.0.0.1", "--port", str(cluster.port), "--webui-port", str(cluster.ui))
    master = _started(directory, "master", name, *options)
    try:
        poll("the master", lambda: cluster.alive() >= 0, master)
        cluster.add_worker()
        cluster.add_worker()
        yield cluster
    finally:
        for process in (master, *cluster.workers):
            kill(process)


@contextmanager
def running_connect_server(directory: Path, *, python: Path | None = None) -> Iterator[str]:
    """The URL of a server with two cores, for the time of the block; its Python is that of bare servers if None."""
    port = free_port()
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.restrictedMode.enabled": "true",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    settings = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]")
    submit = "org.apache.spark.deploy.SparkSubmit"
    # What the server unpickles in Python runs in that of its environment, whatever its settings say.
    own = {"PYSPARK_PYTHON": str(python or installed().server)}
    process = _started(directory, "connect", submit, *server, *settings, "spark-internal", **own)
    try:
        poll("the server", lambda: _listens(port), process)
        yield f"sc://127.0.0.1:{port}"
    finally:
        kill(process)


def poll(what: str, holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait until ``holds``; RuntimeError if ``process`` ends or time runs out before."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited in vain for {what}")
        try:
            raise RuntimeError(f"waiting for {what}, a process has ended with {process.wait(POLL_SECONDS)}")
        except subprocess.TimeoutExpired:
            continue


def _started(directory: Path, name: str, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
    """A process of Spark's, which leads a group of its own, so that killing it kills what it has started."""
    home = installed().spark_home
    with open(directory / f"{name}.log", "wb") as log:
        return subprocess.Popen(
            [home / "bin" / "spark-class", *arguments],
            cwd=directory,
            env=environment(SPARK_HOME=str(home), SPARK_LOCAL_DIRS=str(directory / "local"), **more),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL what :func:`_started` has started, and what that has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

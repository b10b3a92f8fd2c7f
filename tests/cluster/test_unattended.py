"""Runs that nobody looks after, as they are installed: killed, paused and told to stop, on a checkpoint that is shared.

A file system that machines share is what this machine has, taken for one; a run that says it is on another machine
stands for one there. The job is that of the kills (:mod:`tests.faults.job`), whose results SQLite makes, too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hintplan
from tests.cluster.installed import environment, installed
from tests.connectors.lookup_sources.servers import free_port
from tests.faults.job import Feed, compiled, expected, rows_of
from tests.sample import in_turn, sampled

pytestmark = pytest.mark.part(of=2)

DEADLINE_SECONDS = 240
LEASE_SECONDS = 8.0
AS_A_POD = """
import socket
import sys
import hintplan.runtime.storage.mounts
name = sys.argv.pop(1)
socket.gethostname = lambda: name
hintplan.runtime.storage.mounts._OF_ONE_MACHINE = frozenset()
from hintplan.plans.cli import main
main()
"""


@dataclass(frozen=True, slots=True)
class Pod:
    """A run that takes itself for one on a machine of its own; its JVM and workers are in its process group."""

    name: str
    directory: Path
    process: subprocess.Popen[bytes]

    def events(self, kind: str) -> list[dict[str, Any]]:
        text = (self.directory / f"{self.name}.out").read_text(encoding="utf-8")
        found = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [event for event in found if event["event"] == kind]

    def said(self) -> str:
        return (self.directory / f"{self.name}.err").read_text(encoding="utf-8")

    def send(self, number: int, *, all_of_it: bool = False) -> None:
        if all_of_it:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def wait_for(self, what: str, holds: Callable[[], Any]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"waited in vain for {what}:\n{self.said()}"
            try:
                self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            assert holds(), f"{self.name} has ended with {self.process.returncode}:\n{self.said()}"


@contextmanager
def pod(directory: Path, name: str, *options: str) -> Iterator[Pod]:
    command = [installed().python, "-c", AS_A_POD, name, "run", "plan.json", "--checkpoint", "checkpoint", "--json"]
    more = ["--master", "local[2]", "--trigger", "50 ms", "--lease", f"{LEASE_SECONDS:g} s", *options]
    with open(directory / f"{name}.out", "wb") as out, open(directory / f"{name}.err", "wb") as err:
        process = subprocess.Popen(
            [*command, *more], cwd=directory, env=environment(), stdout=out, stderr=err, start_new_session=True
        )
    found = Pod(name, directory, process)
    try:
        yield found
    finally:
        for number in (signal.SIGCONT, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                break
        process.wait(30)


def prepared(directory: Path) -> Feed:
    feed = Feed(directory, seed=3)
    for _ in range(6):
        feed.add()
    hintplan.dump(compiled(directory), directory / "plan.json")
    return feed


def is_right(directory: Path) -> bool:
    return rows_of(directory) == expected(directory)


def test_the_successor_of_a_crashed_pod_goes_on_by_itself(tmp_path: Path) -> None:
    feed = prepared(tmp_path)
    with pod(tmp_path, "pod-1") as first:
        first.wait_for("a batch", lambda: first.events("batch"))
        first.send(signal.SIGKILL, all_of_it=True)
        first.process.wait(DEADLINE_SECONDS)
        feed.add()
        with pod(tmp_path, "pod-2") as second:
            second.wait_for("its waiting", lambda: second.events("waiting"))
            began = time.monotonic()
            (event,) = second.events("waiting")
            assert (event["owner"]["host"], event["lease_ms"], event["epoch"]) == ("pod-1", 8000, 1)
            second.wait_for("all rows", lambda: is_right(tmp_path))
            assert time.monotonic() - began > LEASE_SECONDS - 1
            with pod(tmp_path, "pod-3") as third:
                third.wait_for("its end", lambda: third.process.poll() is not None)
                assert third.process.returncode == 1
                assert "has just renewed its lease" in third.said()
            feed.add()
            with pod(tmp_path, "pod-4", "--wait", "3 min") as fourth:
                fourth.wait_for("its waiting", lambda: fourth.events("waiting"))
                second.send(signal.SIGTERM)
                assert second.process.wait(DEADLINE_SECONDS) == 143
                fourth.wait_for("all rows", lambda: is_right(tmp_path))
                fourth.send(signal.SIGTERM)
                assert fourth.process.wait(DEADLINE_SECONDS) == 143
    assert [path.name for path in (tmp_path / "checkpoint" / "hintplan.lease").iterdir()] == ["3"]


@in_turn(0, of=2)
@pytest.mark.parametrize("all_of_it", sampled([False, True], keep=1))
def test_a_pod_that_was_paused_stops_and_spoils_nothing(tmp_path: Path, all_of_it: bool) -> None:
    feed = prepared(tmp_path)
    with pod(tmp_path, "pod-1") as first:
        first.wait_for("a batch", lambda: first.events("batch"))
        first.send(signal.SIGSTOP, all_of_it=all_of_it)
        feed.add()
        with pod(tmp_path, "pod-2") as second:
            second.wait_for("its first batch", lambda: second.events("batch"))
            feed.add()
            first.send(signal.SIGCONT, all_of_it=all_of_it)
            first.wait_for("its end", lambda: first.process.poll() is not None)
            assert first.process.returncode == 1, first.said()
            # The JVM notices the first, and Python the second, which may come before.
            reasons = ("the lease on the checkpoint could not be renewed within 6 s", "the checkpoint was taken over")
            assert any(reason in first.said() for reason in reasons), first.said()
            feed.add()
            second.wait_for("all rows", lambda: is_right(tmp_path))
            second.send(signal.SIGTERM)
            assert second.process.wait(DEADLINE_SECONDS) == 143


@in_turn(1, of=2)
def test_a_run_that_may_start_again_takes_its_checkpoint_back_after_a_pause(tmp_path: Path) -> None:
    feed = prepared(tmp_path)
    with pod(tmp_path, "pod-1", "--max-restarts", "2", "--restart-delay", "100 ms") as first:
        first.wait_for("a batch", lambda: first.events("batch"))
        first.send(signal.SIGSTOP, all_of_it=True)
        with pytest.raises(subprocess.TimeoutExpired):
            first.process.wait(LEASE_SECONDS)
        feed.add()
        first.send(signal.SIGCONT, all_of_it=True)
        first.wait_for("a restart", lambda: first.events("restart"))
        assert "could not be renewed" in first.events("restart")[0]["error"]
        first.wait_for("all rows", lambda: is_right(tmp_path))
        first.send(signal.SIGTERM)
        assert first.process.wait(DEADLINE_SECONDS) == 143


def test_a_probe_sees_a_run_begin_and_work(tmp_path: Path) -> None:
    prepared(tmp_path)
    port = free_port()
    with pod(tmp_path, "pod-1", "--health", str(port)) as first:
        first.wait_for("an answer", lambda: asked(port, "healthz")[0] == 200)
        seen = set()

        def is_ready() -> bool:
            status, body = asked(port, "readyz")
            seen.add((status, body["status"]))
            return status == 200

        first.wait_for("a run that is ready", is_ready)
        assert (503, "starting") in seen
        first.wait_for("a batch", lambda: first.events("batch") and asked(port, "readyz")[1]["batches"])
        _, body = asked(port, "readyz")
        assert (body["plan"], body["lease"]["epoch"], body["lease"]["in_force"]) == ("faults", 1, True)
        assert asked(port, "healthz")[0] == 200
        first.send(signal.SIGTERM)
        assert first.process.wait(DEADLINE_SECONDS) == 143
    assert first.events("end")[-1]["status"] == "stopped"


def asked(port: int, page: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except OSError:
        return 0, {}

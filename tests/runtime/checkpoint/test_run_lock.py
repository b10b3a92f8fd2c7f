"""One run per checkpoint: who is refused, who takes over from whom."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint import living_run, local_lock, run_lock
from hintplan.runtime.checkpoint.lease import Waiting
from hintplan.runtime.checkpoint.local_lock import LOCK, lock_local
from hintplan.runtime.checkpoint.lock_owner import birth_of, lock_owner_of
from hintplan.runtime.checkpoint.run_lock import refuse_held
from hintplan.runtime.run.command import run_command

DEADLINE_SECONDS = 180
ROOT = Path(__file__).parents[3]
HOLD = """
import sys
from pathlib import Path
from hintplan.runtime.checkpoint.local_lock import lock_local
lock_local(sys.argv[1], Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_run(checkpoint: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds ``checkpoint`` until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(checkpoint)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def leave(checkpoint: Path, **changes: Any) -> None:
    """What a run that ended badly leaves behind."""
    checkpoint.mkdir(exist_ok=True)
    record = {"host": socket.gethostname(), "pid": dead(), "since": "2026-01-02 03:04:05 UTC", **changes}
    (checkpoint / LOCK).write_text(json.dumps(record), encoding="utf-8")


def dead() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def take(checkpoint: Path, **options: Any) -> None:
    lock_local(str(checkpoint), checkpoint, **options).release()


def test_the_second_run_of_a_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    first = lock_local("state", tmp_path)
    with pytest.raises(RunError, match=r"checkpoint state is in use by this process, since \d{4}-\d\d-\d\d .* UTC"):
        lock_local("state", tmp_path)
    first.release()
    first.release()
    take(tmp_path)


def test_a_run_that_ended_unwatched_gives_way_in_its_process(tmp_path: Path) -> None:
    first = lock_local("state", tmp_path)
    first.in_use = lambda: False
    second = lock_local("state", tmp_path)
    first.release()
    with pytest.raises(RunError, match="in use by this process"):
        lock_local("state", tmp_path)
    second.release()


def test_a_run_of_another_process_is_named_with_what_to_do(tmp_path: Path) -> None:
    with another_run(tmp_path) as process:
        for refuse in (take, lambda path: refuse_held(str(path)), lambda path: refuse_held(str(path), take_over=True)):
            with pytest.raises(RunError) as caught:
                refuse(tmp_path)
            (found,) = caught.value.diagnostics
            assert f"in use by process {process.pid} on {socket.gethostname()}, since 20" in found.message
            assert f"kill {process.pid} ends it after its batch" in (found.hint or "")


def test_a_run_of_another_process_may_be_waited_for(tmp_path: Path) -> None:
    with another_run(tmp_path) as process:
        now = 0.0

        def sleep(seconds: float) -> None:
            nonlocal now
            now += 100.0
            if now > 250.0:
                process.kill()
                process.wait(DEADLINE_SECONDS)

        waiting = Waiting(longest=200.0, clock=lambda: now, sleep=sleep)
        for wait in (lambda: take(tmp_path, waiting=waiting), lambda: refuse_held(str(tmp_path), waiting=waiting)):
            now = 0.0
            with pytest.raises(RunError, match=f"in use by process {process.pid}"):
                wait()
        said: list[str] = []
        waiting = replace(waiting, longest=1000.0, tell=lambda waited: said.append(waited.text))
        now = 0.0
        refuse_held(str(tmp_path), waiting=waiting)
        take(tmp_path, waiting=waiting)
    assert [text.endswith(": waiting until it ends") for text in said] == [True]


def test_the_command_refuses_before_spark_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no java here"))
    plan = ROOT / "tests" / "plans" / "revenue_by_country.json"
    with another_run(tmp_path / "state"):
        done = CliRunner().invoke(run_command, [str(plan), "--checkpoint", "state", "--once"])
    assert isinstance(done.exception, RunError)
    assert "checkpoint state is in use by process" in str(done.exception)


def test_a_killed_run_is_followed_without_a_word(tmp_path: Path) -> None:
    with another_run(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_SECONDS)
        named = lock_owner_of((tmp_path / LOCK).read_text(encoding="utf-8"))
        assert named is not None
        assert named.pid == process.pid
        refuse_held(str(tmp_path))
        take(tmp_path)
    assert (tmp_path / LOCK).read_text(encoding="utf-8") == ""


@pytest.mark.parametrize("text", ["", '{"host": "a", "pi', '{"pid": 1}', "\0\0\0"])
def test_a_damaged_record_of_a_dead_run_does_no_harm(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK).write_text(text, encoding="utf-8")
    refuse_held(str(tmp_path))
    take(tmp_path)


class TestWithoutFlock:
    """On file systems that have none, the record decides."""

    @pytest.fixture(autouse=True)
    def no_flock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(local_lock, "_flock", lambda file: None)

    def test_a_living_process_is_refused(self, tmp_path: Path) -> None:
        leave(tmp_path, pid=os.getppid(), birth=birth_of(os.getppid()))
        with pytest.raises(RunError, match=f"in use by process {os.getppid()} on"):
            take(tmp_path)

    def test_a_dead_process_is_followed(self, tmp_path: Path) -> None:
        leave(tmp_path)
        take(tmp_path)

    def test_a_process_that_got_the_number_of_a_dead_one_is_not_it(self, tmp_path: Path) -> None:
        leave(tmp_path, pid=os.getppid(), birth="long ago")
        refuse_held(str(tmp_path))
        take(tmp_path)


def test_a_process_that_nobody_has_waited_for_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert birth_of(process.pid) is None


def test_on_a_disk_of_one_machine_a_free_lock_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave(tmp_path, host="the-container-before", pid=1)
    monkeypatch.setattr(run_lock, "is_shared", lambda path: False)
    take(tmp_path)


def test_the_jvm_of_a_killed_run_is_waited_for(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as jvm:
        leave(tmp_path, jvm=jvm.pid, jvm_birth=birth_of(jvm.pid))
        with ThreadPoolExecutor() as pool:
            taken = pool.submit(take, tmp_path)
            jvm.kill()
            taken.result(DEADLINE_SECONDS)


def test_a_jvm_that_does_not_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(living_run, "_JVM_SECONDS", 0.0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as jvm:
        leave(tmp_path, jvm=jvm.pid, jvm_birth=birth_of(jvm.pid))
        with pytest.raises(RunError, match=f"still in use by process {jvm.pid}, the JVM of a run that was killed"):
            take(tmp_path)
        take(tmp_path, jvm=jvm.pid)
        jvm.kill()


def test_an_unwritable_checkpoint_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RunError, match=r"the checkpoint .*state cannot be written: Not a directory"):
        take(tmp_path / "file" / "state")

"""Command lines of hintplan one after the other in one process of their own, so that only the first starts a JVM.

    with running_commands(directory, os.environ) as commands:
        done = commands.run("run", "plan.json", "--once", folder=tmp_path)
        done.returncode, done.said

A session of Spark starts and ends with each run, as it does in a process of its own.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkConf

__all__ = ["Commands", "Done", "running_commands"]

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a command has ended with and printed."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        return self.stdout + self.stderr


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """The process; ``log`` is what its JVM and that one's Python workers print."""

    process: subprocess.Popen[str]
    answers: int
    log: Path

    def run(self, *words: str, folder: Path) -> Done:
        """Run ``hintplan`` with ``words`` in ``folder``."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([str(folder), *words]) + "\n")
        self.process.stdin.flush()
        answer = b""
        while not answer.endswith(b"\n"):
            if not select.select([self.answers], [], [], DEADLINE_SECONDS)[0]:
                self.process.kill()  # else the next would be told what this one comes to
                raise TimeoutError(f"no answer to {words}:\n{self.logged()}")
            part = os.read(self.answers, 65536)
            assert part, f"the process has ended with {self.process.wait()}:\n{self.logged()}"
            answer += part
        return Done(**json.loads(answer))

    def logged(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def running_commands(directory: Path, environment: Mapping[str, str]) -> Iterator[Commands]:
    """A process for command lines, for the time of the block; what is in its PYTHONPATH, workers find too."""
    answers, written = os.pipe()
    found = os.pathsep.join(filter(None, (str(ROOT), environment.get("PYTHONPATH"))))
    with (directory / "commands.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.spark.commands", str(written)],
            cwd=directory, env={"SPARK_LOCAL_IP": "127.0.0.1", **environment, "PYTHONPATH": found}, pass_fds=(written,),
            stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
        )  # fmt: skip
    os.close(written)
    try:
        yield Commands(process=process, answers=answers, log=directory / "commands.log")
        assert process.stdin is not None
        process.stdin.close()
        process.wait(DEADLINE_SECONDS)
    finally:
        process.kill()
        process.wait()
        os.close(answers)


def _serve(answers: int) -> None:
    from pyspark import SparkContext

    from tests.plans.in_process import hintplan

    for line in sys.stdin:
        folder, *words = json.loads(line)
        if SparkContext._gateway is None:
            # Now, for a run lets the JVM that it starts print into its own log.
            SparkContext._ensure_initialized(conf=_conf(words))
        done = hintplan(*words, folder=Path(folder))
        answer = {"returncode": done.returncode, "stdout": done.stdout, "stderr": done.stderr}
        os.write(answers, json.dumps(answer).encode() + b"\n")


def _conf(words: list[str]) -> SparkConf:
    from pyspark import SparkConf

    conf = SparkConf(loadDefaults=False)
    for before, word in pairwise(words):
        if before == "--conf":
            conf.set(*word.split("=", 1))
    return conf


if __name__ == "__main__":
    _serve(int(sys.argv[1]))

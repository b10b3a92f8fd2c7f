"""A command line in this process, whose Spark is a stand-in that shows what it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hintplan.plans import cli, lazy
from hintplan.plans.commands import sql as command
from hintplan.plans.model.plan import Plan

TABLES = """\
CREATE TABLE orders (id BIGINT, customer STRING, total DOUBLE)
  WITH ('connector' = 'filesystem', 'path' = 'data/orders', 'format' = 'json');
CREATE TABLE sums (customer STRING, total DOUBLE) WITH ('connector' = 'print');
"""
SUMS = "INSERT INTO sums SELECT customer, SUM(total) FROM orders GROUP BY customer"


@dataclass
class Engine:
    """Runs nothing: notes what is asked for, and shows ``rows`` for every query."""

    rows: list[Any] = field(default_factory=list)
    code: int = 0
    ran: list[tuple[str, Plan]] = field(default_factory=list)
    jobs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    waited: int = 0
    closed: int = 0

    def insert(self, plan: Plan) -> int:
        self.ran.append(("insert", plan))
        return self.code

    def start(self, plan: Plan) -> str:
        self.ran.append(("start", plan))
        self.jobs[plan.name] = None
        return plan.name

    def select(self, plan: Plan, show: Callable[[list[Any]], None]) -> int:
        self.ran.append(("select", plan))
        for row in self.rows:
            show([row])
        return self.code

    def stop(self, name: str) -> None:
        self.ran.append(("stop", self.jobs.pop(name)))

    def wait(self) -> int:
        self.waited += 1
        self.jobs.clear()
        return self.code

    def close(self) -> None:
        self.closed += 1


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    stand_in = Engine()

    def opened(**options: Any) -> Engine:
        stand_in.options = options
        return stand_in

    def load(target: str) -> Any:
        return opened if target == "hintplan.runtime.run.sql_client:open_engine" else lazy.load(target)

    monkeypatch.setattr(command, "load", load)
    return stand_in


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sql(engine: Engine, folder: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Writes a script and runs it: ``sql(text, *options)``."""

    def run(text: str, *options: str) -> Done:
        (folder / "job.sql").write_text(text, encoding="utf-8")
        with pytest.raises(SystemExit) as exited:
            cli.main(["sql", "job.sql", *options])
        out, err = capfd.readouterr()
        assert isinstance(exited.value.code, int)
        return Done(exited.value.code, out, err)

    return run

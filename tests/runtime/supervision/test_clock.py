"""A clock that is put back while a run continues: Spark starts no batch, and whoever asks the run is told."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import hintplan
from hintplan.runtime.run import supervised
from hintplan.runtime.run.supervised import Supervision, run_plan
from hintplan.runtime.supervision.clock import TOLERANCE_SECONDS, WallClock
from hintplan.runtime.supervision.health import RUNNING, Health
from hintplan.runtime.supervision.stop import Stop

DAY = 24 * 3600.0
PLAN = """CREATE TABLE o (id BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE r (id BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO r SELECT id FROM o;"""


class Times:
    wall, steady = 1e9, 0.0

    def clock(self) -> WallClock:
        return WallClock(wall=lambda: self.wall, steady=lambda: self.steady)

    def go_on(self, seconds: float, *, put: float = 0.0) -> None:
        self.wall += seconds + put
        self.steady += seconds


@pytest.mark.parametrize("put", [-DAY, -3600.0, -TOLERANCE_SECONDS - 1])
def test_a_clock_that_is_put_back_is_behind_until_it_is_where_it_was(put: float) -> None:
    times = Times()
    clock = times.clock()
    times.go_on(100)
    assert clock.behind() == 0
    times.go_on(1, put=put)
    assert clock.behind() == -put
    times.go_on(5)
    assert clock.behind() == -put
    times.go_on(1, put=-put)
    assert clock.behind() == 0


@pytest.mark.parametrize("puts", [[-TOLERANCE_SECONDS], [DAY], [-3.0, -3.0], [3.0, -3.0]])
def test_small_steps_and_steps_forward_are_no_matter(puts: list[float]) -> None:
    times = Times()
    clock = times.clock()
    for put in puts:
        times.go_on(1, put=put)
        assert clock.behind() == 0


def test_a_step_back_after_one_forward_is_one() -> None:
    times = Times()
    clock = times.clock()
    times.go_on(1, put=DAY)
    assert clock.behind() == 0
    times.go_on(1, put=-DAY)
    assert clock.behind() == DAY
    clock.forget()
    assert clock.behind() == 0


@pytest.mark.parametrize("once", [False, True])
def test_a_run_says_once_that_the_clock_was_put_back_and_is_stuck_until_a_batch_has_ended(
    once: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times, health = Times(), Health(plan="p", digest="d")
    monkeypatch.setattr(supervised, "WallClock", times.clock)
    seen: list[tuple[int, int]] = []
    steps: list[Any] = [
        lambda: times.go_on(1),
        lambda: times.go_on(1, put=-3600.0),
        lambda: times.go_on(1),
        "batch",
        None,
    ]
    batches: list[Any] = []

    def wait(seconds: float) -> None:
        status, body = health.healthz()
        seen.append((status, body["clock_behind_ms"]))
        step = steps.pop(0)
        if step == "batch":
            batches.append(
                SimpleNamespace(
                    sink="sink_r", batch=7, rows_in=1, rows_out=1, lookups={}, functions={}, duration_ms=5,
                    operators={}, sources=(), timestamp="", unread={}, notes=(),
                )
            )  # fmt: skip
        elif step is None:
            execution.active = False
        else:
            step()

    def new_batches() -> Iterator[Any]:
        while batches:
            yield batches.pop()

    execution = SimpleNamespace(
        edits=None, temporary=False, notes=(), lease=lambda: None, queries={}, sinks={}, has_planned=True, active=True,
        new_batches=new_batches, wait=wait, raise_failure=lambda: None, await_termination=lambda: None,
    )  # fmt: skip
    monkeypatch.setattr(supervised, "open_report", lambda **given: SimpleReport())
    supervision = Supervision(stop=Stop(grace=1.0), health=health, once=once)
    assert run_plan(hintplan.compile_sql(PLAN), lambda waiting: execution, supervision, as_json=False) == 0
    stuck = (503, 3_600_000)
    well = (200, 0)
    assert seen == ([well] * 5 if once else [well, well, stuck, stuck, well])
    said = capsys.readouterr().err
    assert said.count("the clock of this machine was set back by 60 min") == (0 if once else 1)
    assert health.phase == RUNNING


class SimpleReport:
    """A report that nobody reads."""

    pace = 10.0

    def __enter__(self) -> SimpleReport:
        return self

    def __exit__(self, *given: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *given: None

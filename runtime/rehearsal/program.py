"""Tests with a clock for Python programs: the steps of a file of tests as calls, with values of Python.

test = hintplan.test("paid.json")
test.at("2026-03-01 10:00").rows("orders", [{"id": 1, "total": "20.50"}])
test.after("2 h 59 min").rows("payments", [{"order_id": 1, "method": "card"}])
test.expect("paid", [{"id": 1, "total": "20.50", "method": "card"}])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.declarations.durations import DurationError
from hintplan.plans.errors import PlanError
from hintplan.plans.rehearsal.reading import milliseconds
from hintplan.plans.rehearsal.suite import (
    Expected,
    ExpectedPart,
    ExpectedState,
    GivenCell,
    GivenRow,
    GivenRows,
    ScenarioStep,
)
from hintplan.runtime.rehearsal.rehearsal import Rehearsal
from hintplan.runtime.rehearsal.report import failure_text
from hintplan.runtime.rehearsal.scenarios import ScenarioRun, StepFailure
from hintplan.runtime.rehearsal.spark import SharedSpark

_spark = SharedSpark()


class PlanTest:
    """A test of a plan: its methods give a time and rows, and compare. Each returns the test itself.

    Rows that are given since the last time or expectation arrive together, as one micro-batch.
    """

    def __init__(self, run: ScenarioRun) -> None:
        self._run = run
        self._step: dict[str, Any] | None = None

    def at(self, time: str | datetime) -> PlanTest:
        """Begin a step at ``time``, such as ``2026-03-01 10:00``, or ``10:00`` on the day of the step before."""
        self._finish()
        self._step = {"at": GivenCell(value=time)}
        return self

    def after(self, duration: str) -> PlanTest:
        """Begin a step at ``duration`` after the step before, such as ``3 h 1 min``."""
        self._finish()
        try:
            self._step = {"after": milliseconds(duration)}
        except DurationError as error:
            raise PlanError(f"'{duration}' is no duration", hint="write after('3 h 1 min')") from error
        return self

    def rows(self, source: str, rows: Iterable[Mapping[str, object]]) -> PlanTest:
        """Give rows of ``source`` in this step; ``op`` is the row kind of a change."""
        return self._given("rows", source, rows)

    def lookups(self, table: str, rows: Iterable[Mapping[str, object]]) -> PlanTest:
        """Answer lookups in ``table`` from ``rows``, from this step on."""
        return self._given("lookups", table, rows)

    def functions(self, name: str, rows: Iterable[Mapping[str, object]]) -> PlanTest:
        """Answer calls of the function ``name`` from ``rows``, from this step on.

        A row has the arguments ``arg1``, ``arg2`` and so on, and the columns that the function returns; a scalar
        function returns the column ``result``.
        """
        return self._given("functions", name, rows)

    def expect(self, sink: str, rows: Iterable[Mapping[str, object]], *, part: ExpectedPart = "table") -> PlanTest:
        """Compare the ``part`` of ``sink`` with ``rows``; AssertionError with a table of what differs.

        ``part`` is its whole table so far, the rows ``added`` in the last step, or the ``changelog`` of the last step.
        """
        self._finish()
        return self._assert(list(self._run.compared(Expected(part=part, rows=_given_rows(sink, rows)))))

    def expect_state(self, state: str, rows: int) -> PlanTest:
        """Compare the number of visible rows of ``state``, such as ``join_o_p.leftState``; AssertionError as above."""
        self._finish()
        return self._assert(list(self._run.counted(ExpectedState(state=state, rows=rows))))

    def end(self) -> PlanTest:
        """End event time, which closes all windows."""
        self._finish()
        self._step = {"ends": True}
        self._finish()
        return self

    def _given(self, what: str, table: str, rows: Iterable[Mapping[str, object]]) -> PlanTest:
        step = self._step if self._step is not None else {}
        step[what] = (*step.get(what, ()), _given_rows(table, rows))
        self._step = step
        return self

    def _finish(self) -> None:
        """Run the step that has been described."""
        step, self._step = self._step, None
        if step is not None:
            self._run.advance(ScenarioStep(**step))

    def _assert(self, failures: Sequence[StepFailure]) -> PlanTest:
        if failures:
            raise AssertionError("\n".join(map(failure_text, failures)))
        return self


def test(
    plan: PlanLike,
    *,
    spark: SparkSession | None = None,  # noqa: PT028 -- no test of pytest
    allow_modules: Sequence[str] = (),  # noqa: PT028
) -> PlanTest:
    """Return a test of ``plan`` with a clock, which starts without state.

    ``spark`` computes what Arrow cannot. Without it, Spark starts at the first need and serves all tests of the
    process. Functions and lookup classes of the plan are loaded from ``allow_modules``.
    """
    resolved = plan_of(plan)
    start: Callable[[], SparkSession] | None = None if spark is None else (lambda: spark)
    sparks = _spark if start is None else SharedSpark(start)
    zone = Rehearsal.zone_of(resolved)
    return PlanTest(ScenarioRun(Rehearsal(resolved, session=sparks.session(zone), modules=tuple(allow_modules)), 1))


test.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


def _given_rows(table: str, rows: Iterable[Mapping[str, object]]) -> GivenRows:
    given = (GivenRow(cells={name: GivenCell(value=value) for name, value in row.items()}) for row in rows)
    return GivenRows(table=table, rows=tuple(given))

"""The parts of the planner's session and of Spark that the SQL client uses; this package imports neither of them.

``open_session`` in :mod:`hintplan.planner.execute_statement` and ``open_engine`` in
:mod:`hintplan.runtime.run.sql_client` return them, so the type checker compares both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from hintplan.plans.model.plan import Plan
from hintplan.plans.text.findings import CompilerFinding

ResultRows = list[tuple[str | None, tuple[Any, ...]]]
"""The row kind of each row, None in batch mode, and its values, as text or as JSON values."""


class ScriptUnit(Protocol):
    """A statement in the text of a session."""

    @property
    def start(self) -> int:
        """The offset of its first character."""


class ScriptText(Protocol):
    """The text of a session, and the positions in it."""

    def text_of(self, file: str | None) -> str:
        """Return the text of one file, from whose start its lines count."""

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and column of ``offset`` in its file."""

    def raise_problems(self) -> None:
        """Raise SqlError with all recorded errors."""


class PlannerSession(Protocol):
    """A catalog and a configuration that grow with each statement."""

    @property
    def source(self) -> ScriptText:
        """The text of all statements."""

    @property
    def findings(self) -> Sequence[CompilerFinding]:
        """The warnings and notes of the current statement, or of the init files."""

    def feed(self, text: str) -> Iterator[ScriptUnit]:
        """Add ``text``, and yield its statements."""

    def skip(self) -> None:
        """Skip the text that was added and not read."""


class BackgroundJob(Protocol):
    """A plan that runs in the background."""

    @property
    def name(self) -> str:
        """The name for STOP JOB."""

    @property
    def status(self) -> str:
        """``RUNNING``, ``FINISHED`` or ``FAILED``."""


class SparkEngine(Protocol):
    """Spark, which runs plans. The methods that wait for a run return 0, or the exit code of a signal."""

    @property
    def jobs(self) -> Mapping[str, BackgroundJob]:
        """The jobs in the background, by name."""

    def insert(self, plan: Plan) -> int:
        """Run ``plan`` on the available input."""

    def start(self, plan: Plan) -> str:
        """Run ``plan`` in the background, and return the name of its job."""

    def select(self, plan: Plan, show: Callable[[ResultRows], None]) -> int:
        """Run a query on the available input, and ``show`` its rows as they arrive."""

    def fill(self, plan: Plan) -> int:
        """Compute the cached results that ``plan`` reads."""

    def drop_cached(self, plan: Plan) -> None:
        """Drop the cached results that ``plan`` would read."""

    def stop(self, name: str) -> None:
        """Stop the job ``name``."""

    def wait(self) -> int:
        """Wait for all jobs."""

    def close(self) -> None:
        """Stop all jobs and Spark."""

"""The SQL client: a session of the planner, Spark behind an engine, and the output.

It takes statements one by one and performs the action that the planner returns for each, with data on stdout and
messages on stderr. :mod:`hintplan.plans.commands.sql` and :mod:`hintplan.plans.client.shell` provide the statements and
handle errors.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.client import actions
from hintplan.plans.client.actions import Action, Performed
from hintplan.plans.client.interfaces import PlannerSession, ResultRows, ScriptUnit, SparkEngine
from hintplan.plans.client.plan_files import plan_to_run, read_plan_file, write_plan_file
from hintplan.plans.client.table import TableWriter, is_number
from hintplan.plans.connectors.policy import OPEN, Policy
from hintplan.plans.errors import Diagnostic, HintplanError, NotInstalled, SqlError
from hintplan.plans.files.codec import dumps
from hintplan.plans.lazy import load as load_by_name
from hintplan.plans.model.plan import Plan
from hintplan.plans.show.explain import explain_json
from hintplan.plans.show.tree import show_tree
from hintplan.plans.text.findings import diagnostic_text, errors_text
from hintplan.plans.text.terminal import print_data, print_message


@dataclass(slots=True, kw_only=True)
class Client:
    """A session; ``open_engine`` connects it to Spark. ``statement`` is the number of the current statement, from 1."""

    session: PlannerSession
    open_engine: Callable[[], SparkEngine]
    as_json: bool
    allow_fact_edits: bool
    typed: bool
    policy: Policy = OPEN
    statement: int = 0
    _engine: SparkEngine | None = None
    _perform: Callable[[PlannerSession, ScriptUnit], Performed] = field(
        default_factory=lambda: load_by_name("hintplan.planner.execute_statement:execute_statement")
    )

    @property
    def engine(self) -> SparkEngine:
        """The engine for Spark, opened at its first use."""
        if self._engine is None:
            self._engine = self.open_engine()
        return self._engine

    def units(self, text: str) -> Iterator[ScriptUnit]:
        """Yield the statements of ``text``, added to the session; run each before the next."""
        yield from self.session.feed(text)

    def run(self, unit: ScriptUnit) -> int:
        """Perform the action of a statement; return 0, or the exit code of the signal that stopped it.

        Raise SqlError, with the position, for any failure, and NotInstalled if the statement needs Spark and it is
        missing.
        """
        self.statement += 1
        performed = self._perform(self.session, unit)
        for finding in performed.findings:
            self.say_problem(finding.diagnostic, finding.severity)
        try:
            return self._do(performed.action)
        except (SqlError, NotInstalled):
            raise
        except HintplanError as error:
            raise SqlError(diagnostics=tuple(_placed(d, performed.place) for d in error.diagnostics)) from error

    def say_problem(self, problem: Diagnostic, severity: str) -> None:
        """Print an error or a warning with its source line; typed lines have no numbers."""
        source = self.session.source
        placed = not self.typed or problem.file is not None
        print_message(diagnostic_text(problem, source.text_of(problem.file), severity, placed=placed))

    def say_errors(self, error: SqlError) -> None:
        """Print all errors of a statement, and their number."""
        print_message(errors_text(error.diagnostics, self.session.source.text_of, placed=not self.typed))

    def running(self) -> tuple[str, ...]:
        """Return the names of the jobs in the background."""
        return () if self._engine is None else tuple(self._engine.jobs)

    def close(self) -> None:
        """End the session, and stop its background jobs."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def wait(self) -> int:
        """Wait for the background jobs; return 0, or the exit code of the signal that stopped them."""
        if not self.running():
            return 0
        print_message(f"waiting for {', '.join(self.running())}; Ctrl-C stops")
        return self.engine.wait()

    def _do(self, action: Action) -> int:
        match action:
            case actions.Told():
                print_message(action.text)
            case actions.ShowRows():
                self._show_rows(action.columns, action.rows)
            case actions.ShowText():
                self._show_text("text", action.text)
            case actions.ShowPlan(as_json=True):
                self._show_text("plan", dumps(action.plan).decode().rstrip("\n"))
            case actions.ShowPlan():
                self._explain(action.plan)
            case actions.ShowFile():
                allowed = self.allow_fact_edits
                self._explain(read_plan_file(action.path, self.policy, allow_fact_edits=allowed, check_meaning=False))
            case actions.RunSelect():
                return self._select(action.plan)
            case actions.RunInsert():
                return self._insert(action.plan, background=action.background)
            case actions.WritePlan(execute=False):
                print_message(write_plan_file(action, self.policy))
            case actions.WritePlan():
                plan, message = plan_to_run(action, self.policy, allow_fact_edits=self.allow_fact_edits)
                print_message(message)
                return self._insert(plan, background=action.background)
            case actions.RunPlan():
                plan = read_plan_file(action.path, self.policy, allow_fact_edits=self.allow_fact_edits)
                return self._insert(plan, background=action.background)
            case actions.FillCached():
                if code := self.engine.fill(action.plan):
                    return code
                print_message(action.text)
            case actions.DropCached():
                if self._engine is not None:
                    self._engine.drop_cached(action.plan)
                print_message(action.text)
            case actions.ListJobs():
                jobs = self._engine.jobs.values() if self._engine is not None else ()
                self._show_rows(("job name", "status"), tuple((job.name, job.status) for job in jobs))
            case actions.StopJob():
                self.engine.stop(action.name)
                print_message(f"job {action.name} stopped")
            case _:
                assert_never(action)
        return 0

    def _insert(self, plan: Plan, *, background: bool) -> int:
        if background and plan.mode == "streaming":
            name = self.engine.start(plan)
            print_message(f"job {name} started; SHOW JOBS lists jobs, STOP JOB '{name}' stops this one")
            return 0
        return self.engine.insert(plan)

    def _select(self, plan: Plan) -> int:
        (sink,) = plan.sinks
        columns = output_columns(plan)[sink.inputs[0]]
        streams = plan.mode == "streaming"
        if self.as_json:
            names = [column.name for column in columns]

            def print_rows(rows: ResultRows) -> None:
                for op, values in rows:
                    kind = {"op": op} if streams else {}
                    self._print_json({**kind, "row": dict(zip(names, values, strict=True))})

            return self.engine.select(plan, print_rows)
        table = _table(
            ("op",) * streams + tuple(column.name for column in columns),
            (False,) * streams + tuple(is_number(column.type) for column in columns),
        )
        code = self.engine.select(plan, lambda rows: table.add([(op,) * streams + values for op, values in rows]))
        _say_count(table.end(), "stopped after " if code else "")
        return code

    def _show_rows(self, columns: tuple[str, ...], rows: tuple[tuple[str | None, ...], ...]) -> None:
        if self.as_json:
            for row in rows:
                self._print_json({"row": dict(zip(columns, row, strict=True))})
            return
        table = _table(columns, (False,) * len(columns))
        table.add(rows)
        _say_count(table.end())

    def _explain(self, plan: Plan) -> None:
        if self.as_json:
            self._print_json({"explain": explain_json(plan)})
        else:
            show_tree(plan)

    def _show_text(self, key: str, text: str) -> None:
        if self.as_json:
            self._print_json({key: text})
        else:
            print_data(text)

    def _print_json(self, value: Mapping[str, Any]) -> None:
        # json.dumps writes ASCII only, so no control character reaches a terminal.
        sys.stdout.write(json.dumps({"statement": self.statement, **value}) + "\n")


def _table(headings: tuple[str, ...], numbers: tuple[bool, ...]) -> TableWriter:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return TableWriter(headings=headings, numbers=numbers, out=sys.stdout, width=width)


def _say_count(rows: int, before: str = "") -> None:
    print_message(f"{before}{rows:,} {'row' if rows == 1 else 'rows'}")


def _placed(problem: Diagnostic, place: Diagnostic) -> Diagnostic:
    """Move a diagnostic of an action to the position of its statement."""
    position = str(Diagnostic(message="", file=problem.file, line=problem.line, column=problem.column)).strip()
    path = f"{problem.path}: " if problem.path else ""
    message = f"{position} {path}{problem.message}".strip()
    return Diagnostic(message=message, hint=problem.hint, file=place.file, line=place.line, column=place.column)

"""Runs the scenarios of a suite on its plan, and compares what came with what was expected.

    outcome = run_scenario(Rehearsal(plan, session=session), scenario, suite)
    outcome.failures

Names of sources, sinks, states and columns are checked here, because the plan knows them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa

from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY
from hintplan.plans.declarations.tables import Column, physical_columns, read_columns, required_columns
from hintplan.plans.errors import Diagnostic, HintplanError, PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Correlate, LookupJoin, Scan
from hintplan.plans.rehearsal.function_rows import function_columns
from hintplan.plans.rehearsal.suite import (
    OP,
    STEP_KEYS,
    Expected,
    ExpectedState,
    GivenCell,
    GivenRows,
    Scenario,
    ScenarioStep,
    Suite,
)
from hintplan.plans.rehearsal.yaml_nodes import Place
from hintplan.plans.text.names import did_you_mean, nearest
from hintplan.runtime.rehearsal.given_functions import given_function
from hintplan.runtime.rehearsal.given_lookups import given_lookup
from hintplan.runtime.rehearsal.given_tables import given_table
from hintplan.runtime.rehearsal.rehearsal import Rehearsal
from hintplan.runtime.rehearsal.sink_tables import (
    PlainRow,
    RowsDifference,
    SinkTable,
    difference_of,
    plain_changes,
    plain_rows,
)
from hintplan.runtime.rehearsal.values import time_of

_FIRST = datetime(2000, 1, 1)
"""The time of a first step without a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailure:
    """A difference from an expectation, or an error. ``columns`` are the columns of the rows in ``difference``.

    ``update`` is the text that the file would need, in place of the text at ``owner``.
    """

    finding: Diagnostic
    columns: tuple[Column, ...] = ()
    difference: RowsDifference | None = None
    owner: Place | None = None
    came: tuple[PlainRow, ...] | int | None = None


@dataclass(slots=True, kw_only=True)
class ScenarioOutcome:
    """The outcome of a scenario, and the seconds that it took."""

    scenario: Scenario
    failures: list[StepFailure] = field(default_factory=list)
    seconds: float = 0.0


def run_scenario(
    rehearsal: Rehearsal, scenario: Scenario, suite: Suite | None = None, *, slices: int = 1
) -> ScenarioOutcome:
    """Run ``scenario`` from the start, once in whole steps and once with each step's rows in ``slices`` parts.

    Lookups and functions of its ``suite`` are for all steps.
    """
    started = time.perf_counter()
    outcome = ScenarioOutcome(scenario=scenario)
    tables: dict[str, list[PlainRow]] | None = None
    for cut in dict.fromkeys((1, max(slices, 1))):
        rehearsal.reset()
        run = ScenarioRun(rehearsal, cut)
        step: ScenarioStep | None = None
        try:
            if suite is not None:
                run.give_lookups(suite.lookups)
                run.give_functions(suite.functions)
            for step in scenario.steps:
                outcome.failures += run.step(step)
        except HintplanError as error:
            outcome.failures += (StepFailure(finding=_placed(finding, step)) for finding in error.diagnostics)
            break
        if outcome.failures:
            break
        if tables is None:
            tables = run.rows()
        else:
            outcome.failures += _sliced_otherwise(run, tables, scenario, cut)
    outcome.seconds = time.perf_counter() - started
    return outcome


def sources_of(plan: Plan) -> tuple[str, ...]:
    """Return the tables that scans of ``plan`` read, in the order of the plan."""
    return tuple(dict.fromkeys(operator.table for operator in plan.operators if isinstance(operator, Scan)))


def lookup_tables_of(plan: Plan) -> tuple[str, ...]:
    """Return the tables that ``plan`` looks rows up in."""
    return tuple(dict.fromkeys(operator.table for operator in plan.operators if isinstance(operator, LookupJoin)))


def called_functions_of(plan: Plan) -> tuple[str, ...]:
    """Return the functions that ``plan`` calls for rows."""
    return tuple(dict.fromkeys(operator.function for operator in plan.operators if isinstance(operator, Correlate)))


class ScenarioRun:
    """A run of a scenario: the rehearsal, the tables of the sinks, and the time."""

    def __init__(self, rehearsal: Rehearsal, cut: int) -> None:
        self._plan = plan = rehearsal.plan
        self._cut = cut
        self._zone = rehearsal.time_zone
        self._rehearsal = rehearsal
        self._sinks = {sink.table: SinkTable(name=sink.table, table=plan.tables[sink.table]) for sink in plan.sinks}
        self._now: datetime | None = None
        self._before: dict[str, list[PlainRow]] = {}
        self._changes: dict[str, list[tuple[str, PlainRow]]] = {name: [] for name in self._sinks}

    def give_lookups(self, given: Sequence[GivenRows]) -> None:
        """Let the test answer lookups in the tables ``given``."""
        for rows in given:
            table = self._plan.tables.get(rows.table)
            names = lookup_tables_of(self._plan)
            if table is None or rows.table not in names:
                raise _error(
                    rows.place,
                    f"the plan looks nothing up in '{rows.table}'",
                    did_you_mean(rows.table, names, what="lookup tables"),
                )
            columns = physical_columns(table)
            self._rehearsal.lookups[rows.table] = given_lookup(given_table(rows, columns, zone=self._zone))

    def give_functions(self, given: Sequence[GivenRows]) -> None:
        """Let the test answer calls of the functions ``given``."""
        for rows in given:
            names = called_functions_of(self._plan)
            if rows.table not in names:
                if rows.table in self._plan.functions:
                    message = f"'{rows.table}' is an aggregate function, whose results cannot be given as rows"
                    raise _error(rows.place, message, "allow its module: --allow-module")
                message = f"the plan calls no function '{rows.table}'"
                raise _error(rows.place, message, did_you_mean(rows.table, names, what="functions"))
            function = self._plan.functions[rows.table]
            columns = function_columns(function)
            if len({column.name for column in columns}) < len(columns):
                message = f"'{rows.table}' returns a column with the name of an argument here, such as arg1"
                raise _error(rows.place, message, "allow its module instead: --allow-module")
            table = given_table(rows, columns, zone=self._zone)
            self._rehearsal.functions[rows.table] = given_function(rows.table, function, table)

    def step(self, step: ScenarioStep) -> Iterator[StepFailure]:
        """Run a step, and yield its failures."""
        self.advance(step)
        for expected in step.expected:
            yield from self.compared(expected)
        for state in step.states:
            yield from self.counted(state)

    def advance(self, step: ScenarioStep) -> None:
        """Run a step without its expectations."""
        self._now = self._time(step)
        self.give_lookups(step.lookups)
        self.give_functions(step.functions)
        rows = self._tables(step)
        self._before = self.rows()
        self._changes = {name: [] for name in self._sinks}
        millis = int(self._now.timestamp() * 1000)
        for number in range(self._cut):
            part = {name: _part(table, number, self._cut) for name, table in rows.items()}
            ends = step.ends and number == self._cut - 1
            for name, made in self._rehearsal.step(millis, part, ends=ends).items():
                plain = plain_changes(made, self._sinks[name].columns)
                self._sinks[name].fold(plain)
                self._changes[name] += zip(plain.kinds, plain.rows, strict=True)

    def rows(self) -> dict[str, list[PlainRow]]:
        """Return the rows of all sinks."""
        return {name: table.rows() for name, table in self._sinks.items()}

    def columns(self, sink: str) -> tuple[Column, ...]:
        """Return the columns of a sink."""
        return self._sinks[sink].columns

    def _time(self, step: ScenarioStep) -> datetime:
        zone = ZoneInfo(self._zone)
        if step.after is not None:
            return (self._now or _FIRST.replace(tzinfo=zone)) + timedelta(milliseconds=step.after)
        if step.at is None:
            return self._now or _FIRST.replace(tzinfo=zone)
        moment = _moment(step.at, self._now or _FIRST, zone)
        if self._now is not None and moment < self._now:
            shown = self._now.strftime("%Y-%m-%d %H:%M:%S")
            raise step.at.error(
                f"time goes backwards: the step before is at {shown}", "sort the steps by time, or write after: 1 h"
            )
        return moment

    def _tables(self, step: ScenarioStep) -> dict[str, pa.Table]:
        tables: dict[str, pa.Table] = {}
        for given in step.rows:
            table = self._plan.tables.get(given.table)
            if table is None or given.table not in sources_of(self._plan):
                raise _unknown_source(given, self._plan)
            if given.table in tables:
                raise _error(given.place, f"rows of '{given.table}' are here twice", "put them into one list")
            kinds = source_kinds(table)
            columns = read_columns(table)
            tables[given.table] = given_table(
                given,
                columns,
                zone=self._zone,
                kinds=() if kinds == INSERT_ONLY else kinds,
                required=required_columns(columns, table.primary_key),
            )
        return tables

    def compared(self, expected: Expected) -> Iterator[StepFailure]:
        """Yield a failure if a sink has other rows than expected after the last step."""
        given = expected.rows
        if given.table not in self._sinks:
            hint = did_you_mean(given.table, self._sinks, what="sinks")
            raise _error(given.place, f"the plan has no sink '{given.table}'", hint)
        if expected.part == "changelog" and self._cut > 1:
            return
        named = {name for row in given.rows for name in row.cells}
        columns = self._sinks[given.table].columns
        is_changelog = expected.part == "changelog"
        wanted_table = given_table(given, columns, zone=self._zone, kinds=ALL_KINDS if is_changelog else ())
        # Columns that no expected row names are not compared.
        compared = tuple(column for column in columns if column.name in named) or columns
        wanted = plain_rows(wanted_table, compared)
        places = [columns.index(column) for column in compared]
        now = self._sinks[given.table].rows()
        if is_changelog:
            kinds = plain_changes(wanted_table, columns).kinds
            wanted = [(kind, *row) for kind, row in zip(kinds, wanted, strict=True)]
            came = [(kind, *(row[place] for place in places)) for kind, row in self._changes[given.table]]
            compared = (Column(name=OP, type="STRING"), *compared)
        else:
            rows = difference_of(self._before[given.table], now).extra if expected.part == "added" else now
            came = [tuple(row[place] for place in places) for row in rows]
        difference = difference_of(wanted, came)
        if difference:
            what = {"table": "has other rows", "added": "got other rows", "changelog": "has other changes"}
            message = f"'{given.table}' {what[expected.part]} than expected{self._in_parts}"
            place = given.place
            yield StepFailure(
                finding=Diagnostic(message=message) if place is None else place.finding(message),
                columns=compared,
                difference=difference,
                owner=given.owner if self._cut == 1 else None,
                came=tuple(came),
            )

    def counted(self, expected: ExpectedState) -> Iterator[StepFailure]:
        """Yield a failure if a state has another number of rows than expected after the last step."""
        counts = self._rehearsal.state_rows()
        name = expected.state.removeprefix("operators.").replace(".state.", ".")
        if name not in counts:
            raise _error(
                expected.place, f"there is no state '{expected.state}'", did_you_mean(name, counts, what="states")
            )
        if counts[name] != expected.rows:
            came, wanted = counts[name], expected.rows
            message = f"state {name} has {came} {_rows(came)}, expected {wanted}{self._in_parts}"
            place = expected.place
            yield StepFailure(
                finding=Diagnostic(message=message) if place is None else place.finding(message),
                owner=place if self._cut == 1 else None,
                came=came,
            )

    @property
    def _in_parts(self) -> str:
        return "" if self._cut == 1 else f", if the rows of each step are cut into {self._cut} parts"


def _sliced_otherwise(
    run: ScenarioRun, whole: Mapping[str, list[PlainRow]], scenario: Scenario, cut: int
) -> Iterator[StepFailure]:
    for name, came in run.rows().items():
        if difference := difference_of(whole[name], came):
            message = f"'{name}' has other rows in the end if the rows of each step are cut into {cut} parts"
            place = scenario.place
            finding = Diagnostic(message=message) if place is None else place.finding(message)
            yield StepFailure(finding=finding, columns=run.columns(name), difference=difference)


def _part(table: pa.Table, number: int, cut: int) -> pa.Table:
    """Return one of ``cut`` parts of a table."""
    if cut == 1:
        return table
    size = table.num_rows
    # Not a slice: Arrow cannot cast all nested columns with an offset.
    return table.take(pa.array(range(number * size // cut, (number + 1) * size // cut), pa.int64()))


def _moment(at: GivenCell, last: datetime, zone: ZoneInfo) -> datetime:
    """Return the time of a step; a time of day is on the day of the step before."""
    if isinstance(at.value, datetime):
        return at.value if at.value.tzinfo else at.value.replace(tzinfo=zone)
    text = str(at.value).strip()
    day = last.strftime("%Y-%m-%d")
    whole = f"{day} {text}" if text[:3].replace(":", "").isdigit() and ":" in text[:3] else text
    try:
        moment = time_of(whole, "time")
    except ValueError as error:
        raise at.error(f"'{text}' is no time", "write at: 2026-03-01 10:00, or at: 10:00") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def _unknown_source(given: GivenRows, plan: Plan) -> PlanError:
    sources = sources_of(plan)
    if given.table in {sink.table for sink in plan.sinks}:
        message, hint = f"'{given.table}' is a sink, not a source", f"write expect: {{{given.table}: [...]}}"
    elif given.table in lookup_tables_of(plan):
        message, hint = f"'{given.table}' is a lookup table, not a source", f"write lookups: {{{given.table}: [...]}}"
    else:
        message = f"the plan has no source '{given.table}'"
        hint = did_you_mean(given.table, sources, what="sources")
        if nearest(given.table, sources) is None and (key := nearest(given.table, STEP_KEYS)) is not None:
            hint = f"did you mean '{key}:'?"
    return _error(given.place, message, hint)


def _placed(finding: Diagnostic, step: ScenarioStep | None) -> Diagnostic:
    """Return a finding with the position of its step, unless it has one."""
    if finding.line is not None or step is None or step.place is None:
        return finding
    path = f"{finding.path}: " if finding.path else ""
    hint = finding.hint
    if function := re.fullmatch(r"functions\.(.+)\.class", finding.path or ""):
        hint = f"{hint}; or write its results: functions: {{{function[1]}: [...]}}"
    return step.place.finding(path + finding.message, hint)


def _error(place: Place | None, message: str, hint: str | None) -> PlanError:
    if place is not None:
        return place.error(message, hint)
    return PlanError(diagnostics=(Diagnostic(message=message, hint=hint),))


def _rows(number: int) -> str:
    return "row" if number == 1 else "rows"

"""A job: the INSERTs that become one plan. Each is compiled with the state of the session at its statement.

This module owns the plan's operators, the outcomes of hints, and the findings. :mod:`hintplan.planner.session` owns the
effects of statements on the session.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace

from hintplan.planner.context import Catalog, Context, FunctionEntry, TableEntry
from hintplan.planner.hints.grammar import STATE_TTL
from hintplan.planner.hints.ledger import Ledger, Outcome
from hintplan.planner.late_rows import late_tables, only_counted, refuse_late_targets
from hintplan.planner.lowering.lower import new_builder
from hintplan.planner.lowering.sources_and_sinks import lower_sink
from hintplan.planner.properties.repeated_reads import note_costly_views, warn_of_repeated_reads
from hintplan.planner.query.cached_results import by_config, shares_views
from hintplan.planner.query.sources.scans import final_names
from hintplan.planner.setting_positions import Positions, positions_of
from hintplan.planner.settings import PlanSettings
from hintplan.planner.sinks.insert import build_insert, result_table
from hintplan.planner.statements.model import Insert, Select
from hintplan.planner.syntax.source import Source
from hintplan.plans.analysis.changelog import with_changelogs
from hintplan.plans.analysis.watermarks import check_waiting_lookups
from hintplan.plans.declarations.tables import FunctionKind
from hintplan.plans.errors import SqlError
from hintplan.plans.format.compiled import with_record
from hintplan.plans.model.config import SHARED_VIEWS
from hintplan.plans.model.layered_groups import with_config_layers
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator
from hintplan.plans.operators.sink import overwritten_of
from hintplan.plans.text.findings import CompilerFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """A plan, the outcome of each hint key, the findings for the user, and the position of each setting.

    ``source`` maps offsets to files, lines and columns.
    """

    plan: Plan
    hints: tuple[Outcome, ...]
    findings: tuple[CompilerFinding, ...]
    positions: Positions
    source: Source


class JobCompiler:
    """Collects INSERTs. ``context`` is the session's, and ``settings`` is its current configuration."""

    def __init__(self, context: Context, settings: PlanSettings) -> None:
        self._context = context
        self._settings = settings
        self._inserts: list[tuple[Insert, Catalog]] = []
        self._shows_rows = False
        context.shared_views, context.view_reads = {}, {}
        self._start()

    def _start(self) -> None:
        context, settings = self._context, self._settings
        context.ledger = Ledger(context.ledger.hints, at_tables=context.ledger.at_tables)
        context.dynamic = {}
        self._builder = new_builder(context.ledger, settings.config, batch=settings.mode == "batch")
        self._tables: dict[str, TableEntry] = {}
        self._functions: dict[str, FunctionEntry] = {}
        self._sinks: list[str] = []

    @property
    def operators(self) -> tuple[Operator, ...]:
        return tuple(self._builder.operators)

    def kind_of(self, function: str) -> FunctionKind:
        """Return the kind of a function that the job calls."""
        return self._functions[function].function.kind

    def insert(self, statement: Insert) -> None:
        """Compile an INSERT into the job. Raise SqlError for any error or unsupported construct."""
        self._inserts.append((statement, self._context.catalog.copy()))
        problems = self._context.source.problems
        with problems.whole():
            self._compile(statement)
        if by_config(self._context) and not problems.found:
            self._share_views()

    def _share_views(self) -> None:
        """Compile all INSERTs again if several places read a view, so that they share its result."""
        context = self._context
        reads = Counter(name for name, _ in context.ledger.view_sites)
        shared = {name for name, number in reads.items() if number > 1} | context.shared_views.keys()
        if shared == context.shared_views.keys():
            return
        context.shared_views = dict.fromkeys(shared)
        self._compile_again()

    def _narrow_views(self) -> None:
        """Compile all INSERTs again until each shared view has only the columns that are read.

        The columns read from a nested view depend on the columns of the view around it, hence the repetition.
        """
        context = self._context
        for _ in range(len(context.shared_views) + 1):
            columns = {name: frozenset(context.view_reads.get(name, ())) for name in context.shared_views}
            if columns == context.shared_views:
                return
            context.shared_views = columns
            self._compile_again()

    def _compile_again(self) -> None:
        """Compile all INSERTs with the current context, each with its original catalog."""
        context = self._context
        context.view_reads = {}
        self._start()
        now = context.catalog
        try:
            for statement, context.catalog in self._inserts:
                with context.source.problems.whole():
                    self._compile(statement)
        finally:
            context.catalog = now

    def _compile(self, statement: Insert) -> None:
        context = self._context
        context.place = statement.offset
        sink_input = build_insert(context, statement)
        overwrite = None if statement.overwrites is None else overwritten_of(context.table(statement.table).table)
        lower_sink(self._builder, statement.table, *sink_input, overwrite=overwrite)
        self._sinks.append(statement.table)
        for operator in self._feeding(self._builder.operators[-1]):
            self._check_declared_once(operator, statement)

    def _check_declared_once(self, operator: Operator, statement: Insert) -> None:
        """Raise SqlError if another INSERT used a different table or function under a name that ``operator`` uses."""
        table = operator.table
        if table is not None:
            entry = self._context.table(table)
            if self._tables.setdefault(table, entry) is not entry:
                raise self._declared_anew("table", table, statement)
        for function in operator.functions:
            called = self._context.catalog.function(function)
            if self._functions.setdefault(function, called) is not called:
                raise self._declared_anew("function", function, statement)

    def _declared_anew(self, what: str, name: str, statement: Insert) -> SqlError:
        return self._context.source.error(
            f"{what} '{name}' was declared again after another INSERT of this plan used it",
            statement.offset,
            f"give the two {what}s different names",
        )

    def select(self, statement: Select) -> None:
        """Compile a query without INSERT. Its sink has the columns of the query and accepts all changes."""
        context = self._context
        name, entry = result_table(context, statement)
        context.catalog.tables[name] = entry
        self._shows_rows = True
        try:
            self.insert(
                Insert(
                    table=name,
                    offset=statement.offset,
                    table_offset=statement.offset,
                    columns=(),
                    columns_offset=statement.offset,
                    query=statement.query,
                )
            )
        finally:
            del context.catalog.tables[name]

    def _feeding(self, sink: Operator) -> tuple[Operator, ...]:
        """Return ``sink`` and the operators upstream of it."""
        operators, places = self._builder.operators, self._builder.places
        reached, waiting = {sink.id}, [sink]
        while waiting:
            fresh = set(waiting.pop().inputs) - reached
            reached |= fresh
            waiting += [operators[places[name]] for name in fresh]
        return tuple(operators[place] for place in sorted(places[name] for name in reached))

    def finish(self, name: str | None, *, within: tuple[int, int], file: str | None = None) -> Compilation:
        """Return the plan of all INSERTs. Its name comes from the configuration, ``name``, or its sinks, in this order.

        ``file`` is the name of the script if the plan contains all of it. Report unused hints whose offsets are
        ``within`` this range, or that affected the job.
        """
        if shares_views(self._context) and not self._context.source.problems.found:
            self._share_views()
            self._narrow_views()
        operators, tables = self._with_final_names()
        outcomes = tuple(o for o in self._context.ledger.outcomes() if self._concerns(o, within))
        self._warn_of_unused(outcomes)
        plan = Plan(
            name=self._settings.name or name or "_".join(dict.fromkeys(self._sinks)),
            source=file,
            init=tuple(os.path.basename(name) for _, name in self._context.source.included),
            mode=self._settings.mode,
            config=self._settings.config,
            tables={name: tables[name].table for name in sorted(tables)},
            functions={name: self._functions[name].function for name in sorted(self._functions)},
            operators=operators,
        )
        if self._shows_rows:
            plan = only_counted(plan)
        sharable = () if self._context.compiler.get(SHARED_VIEWS) == "true" else self._context.catalog.views
        warn_of_repeated_reads(self._context.report, self._builder.occurrences, with_config_layers(plan), sharable)
        places = {name: view.offset for name, view in self._context.catalog.views.items()}
        note_costly_views(self._context.report, self._builder.views, places, plan)
        self._context.report.finish(None)
        plan = with_config_layers(with_changelogs(plan))
        context = self._context
        late = dict(late_tables(context.catalog, plan))
        if late:
            tables |= late
            plan = replace(plan, tables={name: tables[name].table for name in sorted(tables)})
        positions = positions_of(context.source, context.ledger, self._settings.offsets, tables, plan)
        refuse_late_targets(context.source, context.catalog, plan, positions)
        _refuse_waiting_lookups(context, plan, positions)
        return Compilation(
            plan=with_record(plan),
            hints=outcomes,
            findings=tuple(context.report.findings),
            positions=positions,
            source=context.source,
        )

    def _with_final_names(self) -> tuple[tuple[Operator, ...], dict[str, TableEntry]]:
        """Return the operators and their tables under the tables' final names. Record the targets of OPTIONS hints."""
        context, operators = self._context, self.operators
        used = {table for o in operators if (table := o.table) is not None}
        names = final_names(context, used)
        for called, final in names.items():
            for key, offset in sorted(context.dynamic[called].places):
                context.ledger.applied(offset, f"tables.{final}.options.{key}")
        renamed = tuple(
            o.with_table(names[table]) if (table := o.table) is not None and table in names else o for o in operators
        )
        return renamed, {names.get(table, table): self._tables[table] for table in used}

    def _concerns(self, outcome: Outcome, within: tuple[int, int]) -> bool:
        start, end = within
        ledger = self._context.ledger
        return start <= outcome.offset < end or outcome.offset in ledger.targets or outcome.offset in ledger.losers

    def _warn_of_unused(self, outcomes: tuple[Outcome, ...]) -> None:
        context = self._context
        reported: set[tuple[str, str]] = set()
        for outcome in outcomes:
            if outcome.status == "refused" and outcome.offset not in context.ledger.losers:
                subject = f"STATE_TTL key '{outcome.key}'" if outcome.hint == STATE_TTL else outcome.hint
                if outcome.hint == STATE_TTL or (subject, outcome.detail) not in reported:
                    reported.add((subject, outcome.detail))
                    context.report.warn_of_hint(
                        f"{subject} has no effect: {outcome.detail}", outcome.offset, "read the view, or remove it"
                    )


def _refuse_waiting_lookups(context: Context, plan: Plan, positions: Positions) -> None:
    """Refuse retries in state below an operator that goes by time, at a hint of the lookup."""
    for problem in check_waiting_lookups(plan):
        name = (problem.path or "").split(".")[1]
        offset = next(
            p.offset for (operator, path, _), p in positions.items() if (operator, path[:6]) == (name, "retry.")
        )
        raise context.source.error(problem.message, offset, problem.hint or "")

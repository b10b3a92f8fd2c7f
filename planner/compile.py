"""From a script to a plan: reads statements, compiles each INSERT, lowers all of them into one plan.

>>> script = '''
... CREATE TABLE t (a INT) WITH ('connector' = 'datagen');
... CREATE TABLE s (a INT) WITH ('connector' = 'print');
... INSERT INTO s SELECT a FROM t;
... '''
>>> [o.id for o in compile_sql(script).operators]
['scan_t', 'sink_s']
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.catalog import declare_table, declare_view
from planner.context import Context
from planner.dialect import tokenize
from planner.hints import STATE_TTL, read_hints
from planner.insert import build_insert
from planner.ledger import Ledger, Outcome
from planner.lexer import scan
from planner.lowering import Lowering
from planner.places import Places, places_of
from planner.script import read_script
from planner.settings import read_settings
from planner.source import Finding, Report, Source
from planner.statements import CreateTable, CreateView, Insert, SetOption, Statement
from plans.changelog import with_changelogs
from plans.compiled import with_record
from plans.errors import Diagnostic, SqlError
from plans.lookup_document import settings_of
from plans.lookup_settings import CONFIG_KEYS
from plans.model import LookupJoin, Plan, Scan, Sink

__all__ = ["Compilation", "compile_script", "compile_sql"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """A plan, what became of each hint key, what the user should know, and where each setting was asked for."""

    plan: Plan
    hints: tuple[Outcome, ...]
    findings: tuple[Finding, ...]
    places: Places


def compile_sql(
    text: str,
    config: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    file: str | None = None,
    strict_hints: bool = False,
    on_warning: Callable[[Diagnostic], None] | None = None,
) -> Plan:
    """Compile a SQL script to a plan; SqlError, with file, line and column, for everything wrong or unsupported.

    ``config`` overrides the script's SET. ``name`` is used if the script does not set ``pipeline.name``; else the
    stem of ``file``, else the names of the sinks. ``on_warning`` gets every warning and note; with ``strict_hints``
    a hint that does not do what it says is an error.
    """
    done = compile_script(text, config, name=name, file=file, strict_hints=strict_hints)
    if on_warning is not None:
        for finding in done.findings:
            on_warning(finding.diagnostic)
    return done.plan


def compile_script(
    text: str,
    config: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    file: str | None = None,
    strict_hints: bool = False,
) -> Compilation:
    """Like :func:`compile_sql`, with the account of all hints and the severity of each finding."""
    source = Source(text=text, file=file)
    try:
        return _compile(source, config or {}, name, strict_hints)
    except RecursionError:
        raise SqlError(
            "the script is nested too deeply", file=file, hint="split its longest expression or query into views"
        ) from None


def _compile(source: Source, config: Mapping[str, str], name: str | None, strict_hints: bool) -> Compilation:
    scanned = scan(source)
    statements = read_script(source, scanned.text)
    settings = read_settings(source, _settings(source, statements), config)
    report = Report(source=source, strict_hints=strict_hints)
    hints = read_hints(source, scanned, tokenize(scanned.text), report)
    context = Context(source=source, text=scanned.text, report=report, ledger=Ledger(hints), config=settings.config)
    lowering = Lowering(context.ledger, settings.config)
    inserts = tuple(s for s in statements if isinstance(s, Insert))
    if not inserts:
        message = "the script has no INSERT INTO" if statements else "the script is empty"
        raise source.error(
            message, len(source.text.rstrip()), "write INSERT INTO <sink table> SELECT ...: a plan needs a sink"
        )
    for statement in statements:
        context.scans = 0
        if isinstance(statement, CreateTable):
            declare_table(context, statement)
        elif isinstance(statement, CreateView):
            declare_view(context, statement)
        elif isinstance(statement, Insert):
            lowering.sink(statement.table, build_insert(context, statement))
    _check_options(context)
    _warn_of_idle_settings(context, statements, lowering)
    outcomes = context.ledger.outcomes()
    _warn_of_unused(context, outcomes)
    report.finish(None)
    operators = tuple(lowering.operators)
    used = sorted({o.table for o in operators if isinstance(o, Scan | LookupJoin | Sink)})
    plan = Plan(
        name=settings.name or name or _default_name(source, inserts),
        source=_script_name(source),
        mode=settings.mode,
        config=settings.config,
        tables={t: context.catalog.tables[t].table for t in used},
        operators=operators,
    )
    return Compilation(
        plan=with_record(with_changelogs(plan)),
        hints=outcomes,
        findings=tuple(report.findings),
        places=places_of(context, statements, config, plan),
    )


def _settings(source: Source, statements: tuple[Statement, ...]) -> tuple[SetOption, ...]:
    for i, statement in enumerate(statements):
        if isinstance(statement, SetOption) and any(isinstance(s, Insert) for s in statements[:i]):
            raise source.error(
                "SET after an INSERT: one plan has one configuration",
                statement.offset,
                "move it before the first INSERT",
            )
    return tuple(s for s in statements if isinstance(s, SetOption))


def _warn_of_unused(context: Context, outcomes: tuple[Outcome, ...]) -> None:
    told: set[tuple[str, str]] = set()
    for outcome in outcomes:
        if outcome.status == "refused" and outcome.offset not in context.ledger.losers:
            what = f"STATE_TTL key '{outcome.key}'" if outcome.hint == STATE_TTL else outcome.hint
            if outcome.hint == STATE_TTL or (what, outcome.detail) not in told:
                told.add((what, outcome.detail))
                context.report.warn_of_hint(
                    f"{what} has no effect: {outcome.detail}", outcome.offset, "read the view, or remove it"
                )


def _warn_of_idle_settings(context: Context, statements: tuple[Statement, ...], lowering: Lowering) -> None:
    """Settings of lookups that no lookup of the job heeds: there is none, or each says otherwise."""
    lookups = [settings_of(o) for o in lowering.operators if isinstance(o, LookupJoin)]
    for statement in statements:
        if isinstance(statement, SetOption) and statement.key in CONFIG_KEYS:
            group, spec = CONFIG_KEYS[statement.key]
            if not any(spec.name in found[group].origin.get("config", {}) for found in lookups):
                context.report.warn(
                    f"'{statement.key}' has no effect: no lookup join of this job takes it",
                    statement.offset,
                    "remove it, or set what it goes with",
                )


def _check_options(context: Context) -> None:
    """Every OPTIONS hint must follow the name of a table that is read."""
    for place, hint in context.ledger.hints.after_name.items():
        if place not in context.ledger.at_tables:
            raise context.source.error(
                "OPTIONS must follow the name of a table in FROM or JOIN",
                hint.offset,
                "write JOIN <table> /*+ OPTIONS(...) */ FOR SYSTEM_TIME AS OF ...; elsewhere, use WITH (...)",
            )


def _script_name(source: Source) -> str | None:
    """The base name of the script's file; None if it has none."""
    return os.path.basename(source.file) if source.file and not source.file.startswith("<") else None


def _default_name(source: Source, inserts: tuple[Insert, ...]) -> str:
    if (file := _script_name(source)) is not None:
        return os.path.splitext(file)[0]
    return "_".join(dict.fromkeys(i.table for i in inserts))

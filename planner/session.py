"""A session: a catalog and a configuration that grow with each statement, and the text of these statements.

The compiler feeds a whole script to a session (:mod:`hintplan.planner.compile`); the SQL client feeds the user's input.
This module owns the effects of statements on the session. It runs nothing, and reads and writes no files.

>>> session = CompileSession.open()
>>> text = "CREATE TABLE t (a INT) WITH ('connector' = 'print'); SET 'parallelism.default' = '2';"
>>> all(session.apply(session.read(unit)) for unit in session.feed(text))
True
>>> session.context.catalog.names(), session.configuration.values
(('t',), {'parallelism.default': '2'})
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, assert_never

from sqlglot.errors import TokenError

from hintplan.planner.caching import cache_table, uncache_table
from hintplan.planner.catalog import alter_table, alter_view, declare_table, declare_view, drop
from hintplan.planner.context import ClassAccess, Context
from hintplan.planner.hints.grammar import Hints, read_hints
from hintplan.planner.hints.ledger import Ledger
from hintplan.planner.job import JobCompiler
from hintplan.planner.settings import Configuration
from hintplan.planner.sinks.create_as import filled_by
from hintplan.planner.statements.model import (
    AddJar,
    AlterTable,
    AlterView,
    CacheTable,
    CreateFunction,
    CreateTable,
    CreateView,
    Drop,
    Insert,
    ResetOption,
    SetOption,
    Statement,
    UncacheTable,
    UseDefault,
)
from hintplan.planner.statements.script import read_statement
from hintplan.planner.syntax.blanked import Blanked
from hintplan.planner.syntax.budget import Budget
from hintplan.planner.syntax.dialect import Token, refuse_long_numbers, tokenize
from hintplan.planner.syntax.lexer import scan_text
from hintplan.planner.syntax.source import Diagnostics, Source
from hintplan.planner.syntax.units import Unit, next_unit
from hintplan.planner.user_functions import declare_function, register_function
from hintplan.plans.errors import SqlError
from hintplan.plans.model.config import KEYS, canonical_key
from hintplan.plans.settings.flink_keys import RefusedKey, refused_key, why_idle
from hintplan.plans.text.findings import CompilerFinding

Declaration = (
    SetOption
    | ResetOption
    | CreateTable
    | CreateView
    | AlterTable
    | AlterView
    | CreateFunction
    | Drop
    | CacheTable
    | UncacheTable
    | UseDefault
    | AddJar
)
"""The statements whose only effect is to change the session."""

_DECLARES = re.compile(
    r"\b(?=(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?(?:SYSTEM\s+)?\w+|TABLE|VIEW|FUNCTION)\s+"
    r"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:`?\w+`?\s*\.\s*){0,2}`?(\w+)`?)",
    re.IGNORECASE,
)
"""The names that a statement with a syntax error may declare."""


@dataclass(slots=True, kw_only=True)
class CompileSession:
    """One session. Its compilations share ``context``; ``position`` is the end of the text that was read."""

    context: Context
    configuration: Configuration
    position: int = 0

    @classmethod
    def open(
        cls,
        config: Mapping[str, str] | None = None,
        *,
        file: str | None = None,
        strict_hints: bool = False,
        allow_modules: Sequence[str] = (),
        functions: Mapping[str, type | str] | None = None,
    ) -> CompileSession:
        """Return an empty session. ``config`` overrides SET. Raise SqlError for a wrong ``config``.

        CREATE FUNCTION may load classes from ``allow_modules``. Python searches these next to ``file`` and in the
        current directory, too. ``functions`` are declared at once, by class or class name, without a check of
        ``allow_modules``.
        """
        source = Source(text="", file=file)
        report = Diagnostics(source=source, strict_hints=strict_hints)
        configuration = Configuration.of(_heeded(config or {}, report))
        context = Context(
            source=source,
            text=Blanked(),
            report=report,
            ledger=Ledger(Hints(after_select={}, after_name={})),
            config=configuration.settings().config,
            compiler=configuration.settings().compiler,
            batch=configuration.settings().mode == "batch",
            classes=ClassAccess(modules=tuple(allow_modules), directories=directories_of(file)),
        )
        for name, declared in (functions or {}).items():
            register_function(context, name, declared)
        return cls(context=context, configuration=configuration)

    @property
    def source(self) -> Source:
        return self.context.source

    @property
    def findings(self) -> Sequence[CompilerFinding]:
        """The warnings and notes of the current statement, or of the init files."""
        return self.context.report.findings

    def feed(self, text: str) -> Iterator[Unit]:
        """Add ``text`` to the session's text, and yield its statements. Read each before requesting the next."""
        self.source.text += text
        while (unit := next_unit(self.source, self.position)) is not None:
            # Advance first: a statement with an error is skipped, too.
            self.position = unit.end
            yield unit

    def include(self, file: str, text: str) -> Iterator[Unit]:
        """Yield the statements of an init file, before the statements of the script."""
        self.source.include(file, text)
        yield from self.feed("")
        self.skip()

    def skip(self) -> None:
        """Skip the text that was added and not read."""
        self.position = len(self.source.text)

    def read(self, unit: Unit) -> Statement:
        """Parse the statement of ``unit``, and add its hints to the session. Raise SqlError for a syntax error."""
        context = self.context
        context.place = unit.start
        pieces: list[list[Token]] = []
        for start, end in unit.pieces:
            scanned = scan_text(self.source, start, end)
            context.text.add(start, scanned.text)
            try:
                tokens = tokenize(scanned.text, start)
            except TokenError as error:
                raise self.source.error("the statement cannot be read", start, str(error)) from error
            self.source.spend("tokens", len(tokens), start)
            refuse_long_numbers(self.source, tokens)
            hints = read_hints(self.source, scanned, tokens, context.report)
            context.ledger.hints.after_select.update(hints.after_select)
            context.ledger.hints.after_name.update(hints.after_name)
            pieces.append(tokens)
        return read_statement(self.source, context.text, pieces)

    @contextmanager
    def attempt(self, unit: Unit) -> Iterator[None]:
        """Record the errors of ``unit``, which the caller processes in the ``with`` block.

        After an error, remove the unit's declarations, but remember their names as failed.
        """
        problems, catalog = self.source.problems, self.context.catalog
        since = problems.before = problems.doubts
        problems.unsure = False
        with problems.going_on():
            yield
        if problems.doubts == since:
            return
        text = self.source.text[unit.start : unit.end]
        declared = [match[1] for match in _DECLARES.finditer(text)]
        catalog.failed |= {name for declared_name in declared for name in (declared_name, declared_name.lower())}
        altered = declared if text[:5].upper() == "ALTER" else []
        kinds: tuple[dict[str, Any], ...] = (catalog.tables, catalog.views)
        for kind in kinds:
            for name in [n for n, entry in kind.items() if unit.start <= entry.offset < unit.end or n in altered]:
                del kind[name]

    def apply(self, statement: Declaration) -> bool:
        """Apply a declaration to the session. Return True if it changed anything. Raise SqlError if it is invalid."""
        context = self.context
        context.place = statement.offset
        if not isinstance(statement, CreateTable | CreateView | UseDefault | AddJar) or _replaces(statement):
            context.tried.clear()
        match statement:
            case CreateTable():
                return declare_table(context, statement)
            case CreateView():
                return declare_view(context, statement)
            case AlterTable():
                return alter_table(context, statement)
            case AlterView():
                alter_view(context, statement)
                return True
            case CreateFunction():
                return declare_function(context, statement)
            case Drop():
                return drop(context, statement)
            case CacheTable():
                return cache_table(context, statement)
            case UncacheTable():
                return uncache_table(context, statement)
            case UseDefault():
                return False
            case AddJar():
                context.report.note_idle(f"ADD JAR has no effect: {why_idle('pipeline.jars')}", statement.offset)
                return False
            case SetOption() | ResetOption():
                try:
                    return self._configure(statement)
                except SqlError as error:
                    problems = self.source.problems
                    problems.add(error, problems.doubts, certain=True)
                    problems.never_sure |= statement.key is not None and canonical_key(statement.key) in KEYS
                    return False
            case _:
                assert_never(statement)

    def create_and_fill(self, statement: CreateTable) -> Insert:
        """Declare the table of CREATE TABLE ... AS, and return the INSERT of its query.

        If the table exists and IF NOT EXISTS is set, the INSERT writes to the existing table.
        """
        declared = self.apply(statement)
        return filled_by(statement, self.context.catalog.tables[statement.name].declaration if declared else None)

    def _configure(self, statement: SetOption | ResetOption) -> bool:
        """Change the configuration. Return False for a key that has no effect here."""
        context = self.context
        if isinstance(statement, SetOption) and (no_effect := _no_effect(statement.key, statement.value)) is not None:
            if isinstance(no_effect, RefusedKey):
                raise self.source.error(_not_supported(statement.key, no_effect), statement.offset, no_effect.instead)
            context.report.note_idle(no_effect, statement.offset)
            return False
        if statement.key and (why_idle(statement.key) is not None or refused_key(statement.key) is not None):
            return False
        if isinstance(statement, ResetOption):
            self.configuration.reset(self.source, statement)
        elif statement.key:
            self.configuration.set(self.source, statement)
            if KEYS[canonical_key(statement.key)].kind == "duration":
                context.report.note_bare(statement.value, statement.value_offset)
        settings = self.configuration.settings()
        context.config, context.compiler = settings.config, settings.compiler
        context.batch = settings.mode == "batch"
        return True

    def job(self) -> JobCompiler:
        """Return a new job with the current configuration."""
        return JobCompiler(self.context, self.configuration.settings())

    def begin_report(self) -> None:
        """Discard the findings of earlier statements, and reset the compilation budget."""
        self.source.budget = Budget(limits=self.source.budget.limits)
        self.context.report = Diagnostics(source=self.source, strict_hints=self.context.report.strict_hints)

    def check_options(self, unit: Unit) -> None:
        """Raise SqlError unless each OPTIONS hint in ``unit`` follows the name of a table that is read or written."""
        ledger = self.context.ledger
        hints = ledger.hints.after_name
        places = list(itertools.takewhile(lambda place: place >= unit.start, reversed(hints)))
        for place in reversed(places):
            if place < unit.end and place not in ledger.at_tables:
                raise self.source.error(
                    "OPTIONS must follow the name of a table in FROM, JOIN or INSERT INTO",
                    hints[place].offset,
                    "write it directly after the name, before AS; for a view or CTE, at the table inside of it",
                )


def directories_of(file: str | None) -> tuple[str, ...]:
    """Return the directories in which a user may put a module: the script's directory and the current one."""
    beside = (os.path.dirname(os.path.abspath(file)),) if file and not file.startswith("<") else ()
    return tuple(dict.fromkeys((*beside, os.getcwd())))


def _replaces(statement: Declaration) -> bool:
    """Return True for a statement that gives a name another meaning."""
    return isinstance(statement, CreateView) and statement.replace


def _heeded(config: Mapping[str, str], report: Diagnostics) -> dict[str, str]:
    """Return ``config`` without Flink's keys that have no effect here. Note each such key.

    Raise SqlError for an unsupported key.
    """
    effective: dict[str, str] = {}
    for key, value in config.items():
        idle = _no_effect(key, value)
        if isinstance(idle, RefusedKey):
            raise SqlError(_not_supported(key, idle), hint=idle.instead)
        if idle is None:
            effective[key] = value
        else:
            report.note_idle(idle)
    return effective


def _no_effect(key: str, value: str) -> str | RefusedKey | None:
    """Return a message if a key of Flink has no effect when set to ``value``.

    Return the refused key if hintplan does not support it, and None if it has an effect.
    """
    idle = why_idle(key)
    if idle is not None:
        return f"'{key}' has no effect: {idle}"
    refused = refused_key(key)
    if refused is None or refused.default is None or value.strip().lower() != refused.default.lower():
        return refused
    return f"'{key}' has no effect: it is so anyway"


def _not_supported(key: str, refused: RefusedKey) -> str:
    return f"'{key}' is not supported: {refused.reason}"


def too_deep(session: CompileSession) -> SqlError:
    """Return the error to raise for a RecursionError of a compilation."""
    return session.source.error(
        "the statement is nested too deeply",
        session.context.place,
        "split its longest expression or query into views",
    )

"""A session: a catalog and a configuration that grow statement by statement, and the text they were told in.

Compiling a script is a session that is fed the whole of it (:mod:`hintplan.planner.compile`); the SQL client feeds one
as its user types. Owns what statements do to the session. Running anything, reading and writing files is not known
here.

>>> session = Session.open()
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
from hintplan.planner.job import Job
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
from hintplan.planner.syntax.lexer import scan
from hintplan.planner.syntax.source import Report, Source
from hintplan.planner.syntax.units import Unit, next_unit
from hintplan.planner.user_functions import declare_function, register_function
from hintplan.plans.errors import SqlError
from hintplan.plans.model.config import KEYS, canonical_key
from hintplan.plans.settings.flink_keys import RefusedKey, refused_key, why_idle

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
"""The statements that change the session and do nothing else."""

_DECLARES = re.compile(
    r"\b(?=(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?(?:SYSTEM\s+)?\w+|TABLE|VIEW|FUNCTION)\s+"
    r"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:`?\w+`?\s*\.\s*){0,2}`?(\w+)`?)",
    re.IGNORECASE,
)
"""The names that a statement which cannot be read may declare."""


@dataclass(slots=True, kw_only=True)
class Session:
    """One session; ``context`` is what its compilations share, ``position`` how far its text has been read."""

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
    ) -> Session:
        """An empty session, in which ``config`` wins over SET; SqlError for a wrong ``config``.

        Functions may be declared by classes in ``allow_modules``, which are looked for beside ``file`` and in the
        current directory too. ``functions`` are declared at once, by classes or their names, which are allowed.
        """
        source = Source(text="", file=file)
        report = Report(source=source, strict_hints=strict_hints)
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

    def feed(self, text: str) -> Iterator[Unit]:
        """Add ``text`` to the session's; its statements, each to be read before the next is asked for."""
        self.source.text += text
        while (unit := next_unit(self.source, self.position)) is not None:
            # A unit that cannot be read is skipped like one that can.
            self.position = unit.end
            yield unit

    def include(self, file: str, text: str) -> Iterator[Unit]:
        """The statements of an init file, before those of the script."""
        self.source.include(file, text)
        yield from self.feed("")
        self.skip()

    def skip(self) -> None:
        """Pass over what has been fed and not read."""
        self.position = len(self.source.text)

    def read(self, unit: Unit) -> Statement:
        """The statement of ``unit``, its hints added to the session's; SqlError if it is none."""
        context = self.context
        context.place = unit.start
        pieces: list[list[Token]] = []
        for start, end in unit.pieces:
            scanned = scan(self.source, start, end)
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
        """Take down the errors of ``unit``, which is read inside; what it declares is not there then, but known."""
        problems, catalog = self.source.problems, self.context.catalog
        since = problems.before = problems.doubts
        problems.unsure = False
        with problems.going_on():
            yield
        if problems.doubts == since:
            return
        text = self.source.text[unit.start : unit.end]
        declared = [match[1] for match in _DECLARES.finditer(text)]
        catalog.failed |= {name for each in declared for name in (each, each.lower())}
        altered = declared if text[:5].upper() == "ALTER" else []
        kinds: tuple[dict[str, Any], ...] = (catalog.tables, catalog.views)
        for kind in kinds:
            for name in [n for n, each in kind.items() if unit.start <= each.offset < unit.end or n in altered]:
                del kind[name]

    def apply(self, statement: Declaration) -> bool:
        """What a declaration does to the session; whether it did anything. SqlError if it makes no sense."""
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
        """Declare the table of CREATE TABLE ... AS, unless IF NOT EXISTS finds it; the INSERT of its query."""
        declared = self.apply(statement)
        return filled_by(statement, self.context.catalog.tables[statement.name].declaration if declared else None)

    def _configure(self, statement: SetOption | ResetOption) -> bool:
        """Change the configuration; False for a key that means nothing here."""
        context = self.context
        if isinstance(statement, SetOption) and (found := _no_effect(statement.key, statement.value)) is not None:
            if isinstance(found, RefusedKey):
                raise self.source.error(_not_supported(statement.key, found), statement.offset, found.instead)
            context.report.note_idle(found, statement.offset)
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

    def job(self) -> Job:
        """A new job, with the configuration as it stands."""
        return Job(self.context, self.configuration.settings())

    def begin_report(self) -> None:
        """Forget the findings of earlier statements, and what compiling them has cost."""
        self.source.budget = Budget(limits=self.source.budget.limits)
        self.context.report = Report(source=self.source, strict_hints=self.context.report.strict_hints)

    def check_options(self, unit: Unit) -> None:
        """SqlError unless every OPTIONS hint in ``unit`` follows the name of a table that is read."""
        ledger = self.context.ledger
        hints = ledger.hints.after_name
        here = list(itertools.takewhile(lambda place: place >= unit.start, reversed(hints)))
        for place in reversed(here):
            if place < unit.end and place not in ledger.at_tables:
                raise self.source.error(
                    "OPTIONS must follow the name of a table in FROM, JOIN or INSERT INTO",
                    hints[place].offset,
                    "write it directly after the name, before AS; for a view or CTE, at the table inside of it",
                )


def directories_of(file: str | None) -> tuple[str, ...]:
    """Where a user expects to put a module: beside the script, or where he stands."""
    beside = (os.path.dirname(os.path.abspath(file)),) if file and not file.startswith("<") else ()
    return tuple(dict.fromkeys((*beside, os.getcwd())))


def _replaces(statement: Declaration) -> bool:
    """True for a statement that gives a name another meaning."""
    return isinstance(statement, CreateView) and statement.replace


def _heeded(config: Mapping[str, str], report: Report) -> dict[str, str]:
    """``config`` without the keys of Flink that mean nothing here, each with a note; SqlError for one not supported."""
    found: dict[str, str] = {}
    for key, value in config.items():
        idle = _no_effect(key, value)
        if isinstance(idle, RefusedKey):
            raise SqlError(_not_supported(key, idle), hint=idle.instead)
        if idle is None:
            found[key] = value
        else:
            report.note_idle(idle)
    return found


def _no_effect(key: str, value: str) -> str | RefusedKey | None:
    """What to say of a key of Flink that has no effect set to ``value``, or why it cannot be; None if it has one."""
    idle = why_idle(key)
    if idle is not None:
        return f"'{key}' has no effect: {idle}"
    refused = refused_key(key)
    if refused is None or refused.default is None or value.strip().lower() != refused.default.lower():
        return refused
    return f"'{key}' has no effect: it is so anyway"


def _not_supported(key: str, refused: RefusedKey) -> str:
    return f"'{key}' is not supported: {refused.reason}"


def too_deep(session: Session) -> SqlError:
    """The error to raise for a RecursionError of a compilation."""
    return session.source.error(
        "the statement is nested too deeply",
        session.context.place,
        "split its longest expression or query into views",
    )

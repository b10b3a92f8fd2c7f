"""Executes one statement of a session: changes the session, and returns the action for the client.

>>> session = CompileSession.open()
>>> unit = next(session.feed("CREATE TABLE t (a INT) WITH ('connector' = 'print');"))
>>> execute_statement(session, unit).action.text
'table t created'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from hintplan.planner.describe import describe_table, show_create_table, show_create_view, show_names
from hintplan.planner.job import Compilation
from hintplan.planner.session import CompileSession, too_deep
from hintplan.planner.statements.model import (
    AddJar,
    AlterTable,
    AlterView,
    CacheTable,
    CompilePlan,
    CreateFunction,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    ExecutePlan,
    Explain,
    Insert,
    ResetOption,
    Select,
    SetOption,
    Show,
    Statement,
    StatementSet,
    StopJobStatement,
    UncacheTable,
    UseDefault,
    inserts_of,
)
from hintplan.planner.syntax.dialect import Token, TokenType
from hintplan.planner.syntax.problems import Problems
from hintplan.planner.syntax.units import Unit
from hintplan.plans.analysis.run_limits import deep_recursion
from hintplan.plans.client import actions
from hintplan.plans.client.actions import Action, Performed
from hintplan.plans.client.interfaces import PlannerSession
from hintplan.plans.errors import SqlError
from hintplan.plans.model.config import DML_SYNC, FORCE_RECOMPILE
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.cached import ENABLED

open_session: Callable[..., PlannerSession] = CompileSession.open
"""Opens a session for the SQL client, with the arguments of :meth:`CompileSession.open`."""


def execute_statement(session: CompileSession, unit: Unit) -> Performed:
    """Execute ``unit`` in ``session``. Raise SqlError, and change nothing, if it is wrong or unsupported."""
    session.begin_report()
    session.source.problems = Problems()
    catalog = session.context.catalog.copy()
    try:
        with deep_recursion(), session.attempt(unit):
            statement = session.read(unit)
            action = _action(session, unit, statement)
            session.check_options(unit)
        session.source.raise_problems()
        session.context.report.finish(None)
    except (SqlError, RecursionError) as error:
        session.context.catalog = catalog
        session.source.raise_problems(error if isinstance(error, SqlError) else too_deep(session))
        raise
    return Performed(
        action=action,
        findings=tuple(session.context.report.findings),
        place=session.source.diagnostic("", _place(statement)),
    )


def _place(statement: Statement) -> int:
    return statement.path_offset if isinstance(statement, CompilePlan | ExecutePlan) else statement.offset


def _action(session: CompileSession, unit: Unit, statement: Statement) -> Action:
    background = not session.configuration.is_on(DML_SYNC, default=True)
    match statement:
        case SetOption() | ResetOption():
            return _configured(session, statement)
        case CreateTable() if statement.query:
            insert = session.create_and_fill(statement)
            return actions.RunInsert(plan=_compiled(session, unit, insert).plan, background=background)
        case CreateTable():
            return _created(session, statement, "table")
        case CreateView():
            return _created(session, statement, "view")
        case AlterTable():
            return _altered(session, statement, "table")
        case AlterView():
            return _altered(session, statement, "view")
        case CreateFunction():
            return _created(session, statement, "function")
        case Drop():
            return _dropped(session, statement)
        case CacheTable():
            return _cached(session, unit, statement)
        case UncacheTable():
            return _uncached(session, unit, statement)
        case AddJar():
            session.apply(statement)
            return actions.Told(text="no JAR is needed")
        case UseDefault():
            return actions.Told(text="all tables are in default_catalog.default_database anyway")
        case Show():
            return _show(session, statement)
        case Describe():
            return describe_table(session.context, statement)
        case Select():
            return actions.RunSelect(plan=_compiled(session, unit, statement).plan)
        case Insert() | StatementSet():
            return actions.RunInsert(plan=_compiled(session, unit, statement).plan, background=background)
        case Explain():
            if isinstance(statement.job, str):
                return actions.ShowFile(path=statement.job)
            return actions.ShowPlan(plan=_compiled(session, unit, statement.job).plan, as_json=statement.as_json)
        case CompilePlan():
            return actions.WritePlan(
                plan=_compiled(session, unit, statement.job).plan,
                path=statement.path,
                if_not_exists=statement.if_not_exists,
                force=session.configuration.is_on(FORCE_RECOMPILE, default=False),
                execute=statement.execute,
                background=background,
            )
        case ExecutePlan():
            return actions.RunPlan(path=statement.path, background=background)
        case StopJobStatement():
            return actions.StopJob(name=statement.name)
        case _:
            assert_never(statement)


def _compiled(session: CompileSession, unit: Unit, statement: Select | Insert | StatementSet) -> Compilation:
    job = session.job()
    if isinstance(statement, Select):
        job.select(statement)
    else:
        for insert in inserts_of(statement):
            job.insert(insert)
    return job.finish(None, within=(unit.start, unit.end))


def _configured(session: CompileSession, statement: SetOption | ResetOption) -> Action:
    if isinstance(statement, SetOption) and not statement.key:
        values = session.configuration.values
        return actions.ShowRows(columns=("key", "value"), rows=tuple(values.items()))
    has_effect = session.apply(statement)
    if statement.key is None:
        return actions.Told(text="configuration reset")
    if not has_effect:
        return actions.Told(text=f"{statement.key} has no meaning here, and is unchanged")
    return actions.Told(text=_setting(session, statement.key))


def _created(session: CompileSession, statement: CreateTable | CreateView | CreateFunction, what: str) -> Action:
    outcome = "created" if session.apply(statement) else "already exists, and is kept"
    return actions.Told(text=f"{what} {statement.name} {outcome}")


def _altered(session: CompileSession, statement: AlterTable | AlterView, what: str) -> Action:
    is_altered = session.apply(statement)
    return actions.Told(
        text=f"{what} {statement.name} altered" if is_altered else f"there is no {what} {statement.name}"
    )


def _dropped(session: CompileSession, statement: Drop) -> Action:
    kind, is_dropped = statement.kind.lower(), session.apply(statement)
    return actions.Told(
        text=f"{kind} {statement.name} dropped" if is_dropped else f"there is no {kind} {statement.name}"
    )


def _cached(session: CompileSession, unit: Unit, statement: CacheTable) -> Action:
    is_changed = session.apply(statement)
    text = f"{statement.name} is cached from here on"
    if statement.lazy or not is_changed:
        return actions.Told(text=text)
    report = session.context.report
    session.begin_report()
    read = _reading(session, unit, statement.name, statement.offset)
    session.context.report = report
    return actions.FillCached(plan=read, text=text)


def _uncached(session: CompileSession, unit: Unit, statement: UncacheTable) -> Action:
    previous = session.context.catalog.cached.get(statement.name)
    read = None
    if previous is not None and previous.settings[ENABLED]:
        # The cached result is identified by the plan that reads all of it.
        read = _reading(session, unit, statement.name, statement.offset)
        session.begin_report()
    text = f"{statement.name} is not cached from here on"
    if not session.apply(statement):
        text = f"there is no table or view {statement.name}"
    return actions.Told(text=text) if read is None else actions.DropCached(plan=read, text=text)


def _reading(session: CompileSession, unit: Unit, name: str, place: int) -> Plan:
    """Return the plan of ``SELECT * FROM name``."""
    words = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
    tokens = [Token(kind, text, 1, 1, place, place) for kind, text in words]
    tokens.append(Token(TokenType.IDENTIFIER, name, 1, 1, place, place))
    return _compiled(session, unit, Select(query=tuple(tokens), offset=place)).plan


def _setting(session: CompileSession, key: str) -> str:
    configuration = session.configuration
    if key not in configuration.values:
        return f"{key} reset"
    note = ", as -c on the command line has it" if key in configuration.overrides else ""
    return f"{key} = {configuration.values[key]}{note}"


def _show(session: CompileSession, statement: Show) -> Action:
    if statement.what == "JOBS":
        return actions.ListJobs()
    if statement.what == "CREATE TABLE":
        return show_create_table(session.context, statement)
    if statement.what == "CREATE VIEW":
        return show_create_view(session.context, statement)
    return show_names(session.context, statement)

"""One statement of a session: what it changes there, and what it asks the client to do.

>>> session = Session.open()
>>> unit = next(session.feed("CREATE TABLE t (a INT) WITH ('connector' = 'print');"))
>>> perform(session, unit).action
Told(text='table t created')
"""

from __future__ import annotations

from planner.describe import described, listed, shown_table, shown_view
from planner.job import Compilation
from planner.session import Declaration, Session, too_deep
from planner.statements.model import (
    CacheTable,
    CompilePlan,
    CreateFunction,
    CreateTable,
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
    UncacheTable,
)
from planner.syntax.dialect import Token, TokenType
from planner.syntax.units import Unit
from plans.client import actions
from plans.client.actions import Action, Performed
from plans.errors import SqlError
from plans.model.config import DML_SYNC, FORCE_RECOMPILE
from plans.model.plan import Plan
from plans.settings.cached import ENABLED

__all__ = ["perform"]


def perform(session: Session, unit: Unit) -> Performed:
    """Do what ``unit`` says in ``session``; SqlError, and nothing has changed, if it is wrong or unsupported."""
    session.begin_report()
    catalog = session.context.catalog.copied()
    try:
        statement = session.read(unit)
        action = _action(session, unit, statement)
        session.check_options(unit)
        session.context.report.finish(None)
    except (SqlError, RecursionError) as error:
        session.context.catalog = catalog
        raise (error if isinstance(error, SqlError) else too_deep(session.source.file)) from None
    return Performed(
        action=action,
        findings=tuple(session.context.report.findings),
        place=session.source.diagnostic("", _place(statement)),
    )


def _place(statement: Statement) -> int:
    return statement.path_offset if isinstance(statement, CompilePlan | ExecutePlan) else statement.offset


def _action(session: Session, unit: Unit, statement: Statement) -> Action:
    background = not session.configuration.is_on(DML_SYNC, default=True)
    if isinstance(statement, SetOption) and not statement.key:
        values = session.configuration.values
        return actions.ShowRows(columns=("key", "value"), rows=tuple(values.items()))
    if isinstance(statement, CacheTable):
        return _cached(session, unit, statement)
    if isinstance(statement, UncacheTable):
        return _uncached(session, unit, statement)
    if isinstance(statement, Declaration):
        return _declared(session, statement)
    if isinstance(statement, Show):
        return _show(session, statement)
    if isinstance(statement, Describe):
        return described(session.context, statement)
    if isinstance(statement, Select):
        return actions.RunSelect(plan=_compiled(session, unit, statement).plan)
    if isinstance(statement, Insert | StatementSet):
        return actions.RunInsert(plan=_compiled(session, unit, statement).plan, background=background)
    if isinstance(statement, Explain):
        if isinstance(statement.job, str):
            return actions.ShowFile(path=statement.job)
        return actions.ShowPlan(plan=_compiled(session, unit, statement.job).plan, as_json=statement.as_json)
    if isinstance(statement, CompilePlan):
        return actions.WritePlan(
            plan=_compiled(session, unit, statement.job).plan,
            path=statement.path,
            if_not_exists=statement.if_not_exists,
            force=session.configuration.is_on(FORCE_RECOMPILE, default=False),
            execute=statement.execute,
            background=background,
        )
    if isinstance(statement, ExecutePlan):
        return actions.RunPlan(path=statement.path, background=background)
    return actions.StopJob(name=statement.name)


def _compiled(session: Session, unit: Unit, statement: Select | Insert | StatementSet) -> Compilation:
    job = session.job()
    if isinstance(statement, Select):
        job.select(statement)
    else:
        for insert in statement.inserts if isinstance(statement, StatementSet) else (statement,):
            job.insert(insert)
    return job.finish(None, within=(unit.start, unit.end))


def _declared(session: Session, statement: Declaration) -> Action:
    done = session.apply(statement)
    if isinstance(statement, SetOption | ResetOption):
        if statement.key is None:
            return actions.Told(text="configuration reset")
        if not done:
            return actions.Told(text=f"{statement.key} means nothing here, and stays as it is")
        return actions.Told(text=_setting(session, statement.key))
    if isinstance(statement, Drop):
        what = statement.kind.lower()
        said = f"{what} {statement.name} dropped" if done else f"there is no {what} {statement.name}"
        return actions.Told(text=said)
    what = "function" if isinstance(statement, CreateFunction) else "view"
    what = "table" if isinstance(statement, CreateTable) else what
    return actions.Told(text=f"{what} {statement.name} {'created' if done else 'is there already, and stays'}")


def _cached(session: Session, unit: Unit, statement: CacheTable) -> Action:
    done = session.apply(statement)
    text = f"{statement.name} is cached from here on"
    if statement.lazy or not done:
        return actions.Told(text=text)
    findings = session.context.report.findings[:]
    read = _reading(session, unit, statement.name, statement.offset)
    session.context.report.findings[:] = findings
    return actions.FillCached(plan=read, text=text)


def _uncached(session: Session, unit: Unit, statement: UncacheTable) -> Action:
    known = session.context.catalog.cached.get(statement.name)
    read = None
    if known is not None and known.settings[ENABLED]:
        # What is cached is what reading all of it would read.
        read = _reading(session, unit, statement.name, statement.offset)
        session.begin_report()
    text = f"{statement.name} is not cached from here on"
    if not session.apply(statement):
        text = f"there is no table or view {statement.name}"
    return actions.Told(text=text) if read is None else actions.DropCached(plan=read, text=text)


def _reading(session: Session, unit: Unit, name: str, place: int) -> Plan:
    """The plan of ``SELECT * FROM name``."""
    words = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
    tokens = [Token(kind, text, 1, 1, place, place) for kind, text in words]
    tokens.append(Token(TokenType.IDENTIFIER, name, 1, 1, place, place))
    return _compiled(session, unit, Select(query=tuple(tokens), offset=place)).plan


def _setting(session: Session, key: str) -> str:
    configuration = session.configuration
    if key not in configuration.values:
        return f"{key} reset"
    note = ", as -c on the command line has it" if key in configuration.overrides else ""
    return f"{key} = {configuration.values[key]}{note}"


def _show(session: Session, statement: Show) -> Action:
    if statement.what == "JOBS":
        return actions.ListJobs()
    if statement.what == "CREATE TABLE":
        return shown_table(session.context, statement)
    if statement.what == "CREATE VIEW":
        return shown_view(session.context, statement)
    return listed(session.context, statement)

"""Init files: declarations and settings that several scripts share, read before the first statement of a script.

Owns what may stand in them, as Flink's SQL client has it after ``-i``. Where they are found is the affair of the
commands: here are texts by the names of their files.

>>> session = Session.open()
>>> read_init_files(session, {"tables.sql": "CREATE TABLE t (a INT) WITH ('connector' = 'print')"})
>>> session.context.catalog.names()
('t',)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hintplan.planner.session import Declaration, Session, directories_of, too_deep
from hintplan.planner.statements.model import CreateTable, SetOption, Statement
from hintplan.planner.syntax.units import Unit

_ELSEWHERE = "write it in a script that is compiled with this file: --init is for what several scripts declare and set"


def read_init_files(session: Session, files: Mapping[str, str]) -> None:
    """Read ``files`` in their order, before anything else; whatever is wrong is taken down, with file and place."""
    for file, text in files.items():
        classes = session.context.classes
        found = tuple(dict.fromkeys((*classes.directories, *directories_of(file))))
        session.context.classes = replace(classes, directories=found)
        try:
            for unit in session.include(file, text):
                with session.attempt(unit):
                    _read(session, unit)
        except RecursionError:
            raise too_deep(session) from None


def _read(session: Session, unit: Unit) -> None:
    statement = session.read(unit)
    no_key = isinstance(statement, SetOption) and not statement.key
    fills = isinstance(statement, CreateTable) and statement.query
    if not isinstance(statement, Declaration) or no_key or fills:
        message = f"{_called(statement)} has no place in an init file"
        raise session.source.error(message, unit.start, _ELSEWHERE)
    session.apply(statement)
    session.check_options(unit)


def _called(statement: Statement) -> str:
    """The words of a statement, as a message has them."""
    if isinstance(statement, CreateTable):
        return "CREATE TABLE ... AS"
    if isinstance(statement, SetOption):
        return "SET without an option"
    words = {"StatementSet": "STATEMENT SET", "CompilePlan": "COMPILE PLAN", "ExecutePlan": "EXECUTE PLAN"}
    name = type(statement).__name__
    return {**words, "StopJob": "STOP JOB"}.get(name, name.upper())

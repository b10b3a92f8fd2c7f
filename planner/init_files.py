"""Init files: declarations and settings that several scripts share. The compiler reads them before a script.

This module decides which statements an init file may contain, like ``-i`` of Flink's SQL client. The commands find the
files; this module receives their texts, by file name.

>>> session = CompileSession.open()
>>> read_init_files(session, {"tables.sql": "CREATE TABLE t (a INT) WITH ('connector' = 'print')"})
>>> session.context.catalog.names()
('t',)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hintplan.planner.session import CompileSession, Declaration, directories_of, too_deep
from hintplan.planner.statements.model import CreateTable, SetOption, Statement
from hintplan.planner.syntax.units import Unit

_ELSEWHERE = "write it in a script that is compiled with this file: --init is for shared declarations and settings"


def read_init_files(session: CompileSession, files: Mapping[str, str]) -> None:
    """Read ``files`` in order, before any other text. Record all errors, with file and position."""
    for file, text in files.items():
        classes = session.context.classes
        directories = tuple(dict.fromkeys((*classes.directories, *directories_of(file))))
        session.context.classes = replace(classes, directories=directories)
        try:
            for unit in session.include(file, text):
                with session.attempt(unit):
                    _read(session, unit)
        except RecursionError:
            raise too_deep(session) from None


def _read(session: CompileSession, unit: Unit) -> None:
    statement = session.read(unit)
    no_key = isinstance(statement, SetOption) and not statement.key
    fills = isinstance(statement, CreateTable) and statement.query
    if not isinstance(statement, Declaration) or no_key or fills:
        message = f"{_called(statement)} has no place in an init file"
        raise session.source.error(message, unit.start, _ELSEWHERE)
    session.apply(statement)
    session.check_options(unit)


def _called(statement: Statement) -> str:
    """Return the name of a statement for messages."""
    if isinstance(statement, CreateTable):
        return "CREATE TABLE ... AS"
    if isinstance(statement, SetOption):
        return "SET without an option"
    words = {"StatementSet": "STATEMENT SET", "CompilePlan": "COMPILE PLAN", "ExecutePlan": "EXECUTE PLAN"}
    name = type(statement).__name__
    return {**words, "StopJobStatement": "STOP JOB"}.get(name, name.upper())

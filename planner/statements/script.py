"""Reads one statement from its tokens: selects the kind of statement, and parses SET and RESET.

An unsupported statement raises an error that names it. :mod:`hintplan.planner.syntax.units` finds the start and end of
statements. :mod:`hintplan.planner.statements.ddl` reads declarations,
:mod:`hintplan.planner.statements.query_statements` reads INSERT, :mod:`hintplan.planner.statements.plan_statements`
reads statements about plans, and :mod:`hintplan.planner.statements.catalog_statements` reads statements about the
catalog.

>>> source = Source(text="SET 'pipeline.name' = 'x'")
>>> read_statement(source, source.text, [tokenize(source.text)]).key
'pipeline.name'
"""

from __future__ import annotations

import re

from hintplan.planner.statements.alter import read_alter_table, read_alter_view
from hintplan.planner.statements.cached_statements import read_cache, read_uncache
from hintplan.planner.statements.catalog_statements import (
    ONE_DATABASE,
    read_create_database,
    read_describe,
    read_drop,
    read_show,
    read_use,
)
from hintplan.planner.statements.ddl import create_function, create_table, create_view
from hintplan.planner.statements.model import AddJar, ResetOption, SetOption, Statement, StopJobStatement
from hintplan.planner.statements.plan_statements import read_compile, read_execute, read_explain, read_set
from hintplan.planner.statements.query_statements import check_form, read_insert, read_select
from hintplan.planner.syntax.blanked import Blanked
from hintplan.planner.syntax.cursor import Cursor, word_of
from hintplan.planner.syntax.dialect import Token, TokenType, tokenize
from hintplan.planner.syntax.problems import FollowUp
from hintplan.planner.syntax.source import Source
from hintplan.plans.text.names import did_you_mean

__all__ = ["read_statement", "tokenize"]

_INSTEAD = {
    "ANALYZE": "remove it: there are no statistics",
    "LOAD": "remove it: there are no modules to load",
    "UNLOAD": "remove it: there are no modules to load",
    "ADD": "pass --allow-module for Python classes",
    "REMOVE": "leave it out",
    "UPDATE": "write INSERT INTO",
    "DELETE": "write INSERT INTO",
    "UPSERT": "write INSERT INTO",
    "ALTER": "ALTER TABLE and ALTER VIEW are supported",
    "REPLACE": "write CREATE TABLE ... AS SELECT: a plan replaces nothing that exists",
    "TRUNCATE": "write into another table",
    "QUIT": "remove it: a script ends by itself",
    "EXIT": "remove it: a script ends by itself",
    "HELP": "see docs/sql-client.md",
    "CALL": "remove it: there are no procedures",
    "VALUES": "read the rows from a table",
}
_NOT_CREATED = {
    "CATALOG": ONE_DATABASE,
    "MATERIALIZED": "write CREATE TABLE ... AS SELECT, whose plan keeps the table up to date as long as it runs",
    "MODEL": "call the model in a function of your own: CREATE FUNCTION ... LANGUAGE PYTHON",
}
_KNOWN = (
    "SELECT",
    "INSERT",
    "CREATE",
    "ALTER",
    "DROP",
    "SET",
    "RESET",
    "SHOW",
    "DESCRIBE",
    "EXPLAIN",
    "COMPILE",
    "EXECUTE",
    "CACHE",
    "UNCACHE",
)


def read_statement(source: Source, text: str | Blanked, pieces: list[list[Token]]) -> Statement:
    """Read the statement with the tokens ``pieces``, one list per semicolon. Only statement sets have several pieces.

    The tokens were cut from ``text``, in which comments and hints are blanked out. Raise SqlError for an unknown
    statement.
    """
    cursors = [Cursor(source, text, tokens) for tokens in pieces]
    cursor = cursors[0]
    offset = cursor.offset
    if cursor.take("EXECUTE", "STATEMENT", "SET") or cursor.take("BEGIN", "STATEMENT", "SET"):
        return read_set(cursors, offset, opened_by=word_of(cursor.tokens[0]))
    if cursor.take("EXECUTE"):
        return read_execute(cursor, offset)
    if cursor.take("COMPILE"):
        return read_compile(cursors, offset)
    if cursor.take("EXPLAIN"):
        return read_explain(cursors, offset)
    if cursor.take("END"):
        if source.problems.doubts:  # the start of the set may not have been read
            raise FollowUp
        raise source.error("END closes nothing", offset, "open the statement set with EXECUTE STATEMENT SET BEGIN")
    return _statement(cursor)


def _statement(cursor: Cursor) -> Statement:
    source, offset = cursor.source, cursor.offset
    word = word_of(cursor.tokens[0])
    if cursor.take("SET"):
        return _set(cursor)
    if cursor.take("RESET"):
        return ResetOption(key=None if cursor.at_end else _key(cursor), offset=offset)
    if cursor.peek("INSERT"):
        return read_insert(cursor)
    if (query := read_select(cursor)) is not None:
        return query
    check_form(cursor)
    if cursor.take("CREATE"):
        replace = cursor.take("OR", "REPLACE")
        temporary = cursor.take("TEMPORARY")
        if replace and not cursor.peek("VIEW"):
            message = "CREATE OR REPLACE is supported for views only"
            raise source.error(message, offset, "write CREATE: a plan replaces nothing that exists")
        if cursor.take("TABLE"):
            return create_table(cursor, temporary=temporary)
        if cursor.take("VIEW"):
            return create_view(cursor, temporary=temporary, replace=replace)
        if cursor.take("FUNCTION") or cursor.take("SYSTEM", "FUNCTION"):
            return create_function(cursor, temporary=temporary)
        if cursor.take("DATABASE"):
            return read_create_database(cursor, offset)
        for unsupported, instead in _NOT_CREATED.items():
            if cursor.peek(unsupported):
                raise source.error(f"CREATE {unsupported} is not supported", offset, instead)
        raise cursor.unexpected("TABLE, VIEW or FUNCTION", "write CREATE TABLE, CREATE VIEW or CREATE FUNCTION")
    if cursor.take("ALTER", "TABLE"):
        return read_alter_table(cursor)
    if cursor.take("ALTER", "VIEW"):
        return read_alter_view(cursor)
    if cursor.take("DROP"):
        return read_drop(cursor, offset)
    if cursor.take("SHOW"):
        return read_show(cursor, offset)
    if cursor.take("DESCRIBE") or cursor.take("DESC"):
        return read_describe(cursor)
    if cursor.take("USE"):
        return read_use(cursor, offset)
    if cursor.take("ADD", "JAR"):
        cursor.last_string("the path of a JAR")
        return AddJar(offset=offset)
    if cursor.take("CACHE"):
        return read_cache(cursor, offset)
    if cursor.take("UNCACHE"):
        return read_uncache(cursor, offset)
    if cursor.take("STOP", "JOB"):
        return StopJobStatement(name=cursor.last_string("the name of a job"), offset=offset)
    hint = _INSTEAD.get(word) or did_you_mean(word, _KNOWN, what="supported statements")
    raise source.error(f"{word or 'this'} is not a supported statement", offset, hint)


def _set(cursor: Cursor) -> SetOption:
    offset = cursor.offset
    if cursor.at_end:
        return SetOption(key="", value="", offset=offset, value_offset=offset)
    start, end = cursor.tokens[cursor.index].start, cursor.tokens[-1].end + 1
    if cursor.tokens[-1].token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        end = max(end, cursor.text.find("'", cursor.tokens[-1].start + 1) + 1)
    text = cursor.text[start:end]
    match = re.fullmatch(
        r"('(?P<qk>(?:[^']|'')*)'|(?P<k>[^'=\s]+))\s*=\s*('(?P<qv>(?:[^']|'')*)'|(?P<v>[^']*))", text, re.S
    )
    if match is None or not (match["qk"] or match["k"]):
        raise cursor.source.error("expected SET 'key' = 'value'", offset, "quote the key and the value")
    key = match["k"] or match["qk"].replace("''", "'")
    quoted = match["qv"]
    value = match["v"].strip() if quoted is None else quoted.replace("''", "'")
    return SetOption(key=key, value=value, offset=offset, value_offset=start + match.start(4))


def _key(cursor: Cursor) -> str:
    """Read ``'key'``, or a key without quotes, up to the end of the statement."""
    first = cursor.tokens[cursor.index]
    if first.token_type == TokenType.STRING:
        return cursor.last_string("a configuration key")
    return cursor.text[first.start : cursor.tokens[-1].end + 1].strip()

"""The grammar of DROP, SHOW, DESCRIBE and USE. :mod:`hintplan.planner.describe` answers SHOW and DESCRIBE.

>>> from hintplan.planner.syntax.dialect import tokenize
>>> from hintplan.planner.syntax.source import Source
>>> source = Source(text="DROP VIEW IF EXISTS v")
>>> cursor = Cursor(source, source.text, tokenize(source.text))
>>> cursor.take("DROP"), read_drop(cursor, 0).if_exists
(True, True)
"""

from __future__ import annotations

from typing import Literal

from hintplan.planner.statements.ddl import DEFAULT_PATH, table_name
from hintplan.planner.statements.model import Describe, Drop, Show, UseDefault
from hintplan.planner.syntax.cursor import Cursor

_Kind = Literal["TABLE", "VIEW", "FUNCTION"]
_Listed = Literal["TABLES", "VIEWS", "FUNCTIONS", "USER FUNCTIONS", "JOBS"]

KINDS: tuple[_Kind, ...] = ("TABLE", "VIEW", "FUNCTION")
LISTED: tuple[_Listed, ...] = ("TABLES", "VIEWS", "FUNCTIONS", "USER FUNCTIONS", "JOBS")
ONE_DATABASE = (
    f"all tables live in {'.'.join(DEFAULT_PATH)}: remove this, and write table names alone; put shared declarations "
    f"into files for --init"
)
_CAN_SHOW = "SHOW supports TABLES, VIEWS, [USER] FUNCTIONS, JOBS, CREATE TABLE name and CREATE VIEW name"


def read_drop(cursor: Cursor, offset: int) -> Drop:
    """Read a DROP statement from after its keyword to the end."""
    for unsupported in ("CATALOG", "DATABASE"):
        if cursor.peek(unsupported):
            raise cursor.source.error(f"DROP {unsupported} is not supported", offset, ONE_DATABASE)
    temporary = cursor.take("TEMPORARY")
    if cursor.take("SYSTEM") and not cursor.peek("FUNCTION"):
        raise cursor.unexpected("FUNCTION", "only functions can be SYSTEM")
    for kind in KINDS:
        if cursor.take(kind):
            if_exists = cursor.take("IF", "EXISTS")
            place = cursor.offset
            name = table_name(cursor, f"the name of a {kind.lower()}")
            cursor.end()
            return Drop(kind=kind, name=name, offset=place, temporary=temporary, if_exists=if_exists)
    raise cursor.unexpected("TABLE, VIEW or FUNCTION", "write DROP TABLE name, DROP VIEW name or DROP FUNCTION name")


def read_show(cursor: Cursor, offset: int) -> Show:
    """Read a SHOW statement from after its keyword to the end."""
    if cursor.take("CREATE"):
        kind = "TABLE" if cursor.take("TABLE") else "VIEW" if cursor.take("VIEW") else None
        if kind is None:
            raise cursor.unexpected("TABLE or VIEW", _CAN_SHOW)
        place = cursor.offset
        name = table_name(cursor, f"the name of a {kind.lower()}")
        cursor.end()
        return Show(what="CREATE TABLE" if kind == "TABLE" else "CREATE VIEW", offset=place, name=name)
    for listed in LISTED:
        if cursor.take(*listed.split()):
            negated = cursor.take("NOT")
            if negated and not cursor.peek("LIKE"):
                raise cursor.unexpected("LIKE", "write SHOW ... NOT LIKE 'pattern'")
            like = cursor.string("a pattern") if cursor.take("LIKE") else None
            cursor.end()
            return Show(what=listed, offset=offset, like=like, negated=negated)
    raise cursor.unexpected("something to show", _CAN_SHOW)


def read_describe(cursor: Cursor) -> Describe:
    """Read a DESCRIBE statement from after its keyword to the end."""
    cursor.take("TABLE")
    cursor.take("EXTENDED")
    place = cursor.offset
    name = table_name(cursor, "the name of a table or view")
    cursor.end()
    return Describe(name=name, offset=place)


def read_use(cursor: Cursor, offset: int) -> UseDefault:
    """Read ``USE [CATALOG] name`` from after its keyword. Raise SqlError unless it names the default."""
    if cursor.peek("MODULES"):
        message = "USE MODULES is not supported"
        raise cursor.source.error(message, offset, "remove it: there are no modules to load")
    catalog, database = DEFAULT_PATH
    kind = "catalog" if cursor.take("CATALOG") else "database"
    place = cursor.offset
    path = cursor.path(f"the name of a {kind}")
    cursor.end()
    if path not in (((catalog,),) if kind == "catalog" else ((database,), DEFAULT_PATH)):
        raise cursor.source.error(f"there is no {kind} '{'.'.join(path)}'", place, ONE_DATABASE)
    return UseDefault(offset=offset)


def read_create_database(cursor: Cursor, offset: int) -> UseDefault:
    """Read ``CREATE DATABASE IF NOT EXISTS`` from after DATABASE.

    Raise SqlError unless it names the default database.
    """
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    path = cursor.path("the name of a database")
    if path not in (DEFAULT_PATH[1:], DEFAULT_PATH):
        raise cursor.source.error("CREATE DATABASE is not supported", offset, ONE_DATABASE)
    if not if_not_exists:
        message = f"database '{path[-1]}' already exists"
        raise cursor.source.error(message, offset, "write IF NOT EXISTS, or remove it")
    cursor.rest()
    return UseDefault(offset=offset)

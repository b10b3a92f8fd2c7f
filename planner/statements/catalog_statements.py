"""The grammar of DROP, SHOW and DESCRIBE. What they find is :mod:`planner.describe`'s business.

>>> from planner.syntax.dialect import tokenize
>>> from planner.syntax.source import Source
>>> source = Source(text="DROP VIEW IF EXISTS v")
>>> cursor = Cursor(source, source.text, tokenize(source.text))
>>> cursor.take("DROP"), read_drop(cursor, 0).if_exists
(True, True)
"""

from __future__ import annotations

from typing import Literal

from planner.statements.ddl import table_name
from planner.statements.model import Describe, Drop, Show
from planner.syntax.cursor import Cursor

_Kind = Literal["TABLE", "VIEW", "FUNCTION"]
_Listed = Literal["TABLES", "VIEWS", "FUNCTIONS", "USER FUNCTIONS", "JOBS"]

_KINDS: tuple[_Kind, ...] = ("TABLE", "VIEW", "FUNCTION")
_LISTED: tuple[_Listed, ...] = ("TABLES", "VIEWS", "FUNCTIONS", "USER FUNCTIONS", "JOBS")
_CAN_SHOW = "SHOW knows TABLES, VIEWS, [USER] FUNCTIONS, JOBS, CREATE TABLE name and CREATE VIEW name"


def read_drop(cursor: Cursor, offset: int) -> Drop:
    """Read a DROP from after the word to the end of the statement."""
    temporary = cursor.take("TEMPORARY")
    if cursor.take("SYSTEM") and not cursor.peek("FUNCTION"):
        raise cursor.unexpected("FUNCTION", "only functions can be SYSTEM")
    for kind in _KINDS:
        if cursor.take(kind):
            if_exists = cursor.take("IF", "EXISTS")
            place = cursor.offset
            name = table_name(cursor, f"the name of a {kind.lower()}")
            cursor.end()
            return Drop(kind=kind, name=name, offset=place, temporary=temporary, if_exists=if_exists)
    raise cursor.unexpected("TABLE, VIEW or FUNCTION", "write DROP TABLE name, DROP VIEW name or DROP FUNCTION name")


def read_show(cursor: Cursor, offset: int) -> Show:
    """Read a SHOW from after the word to the end of the statement."""
    if cursor.take("CREATE"):
        kind = "TABLE" if cursor.take("TABLE") else "VIEW" if cursor.take("VIEW") else None
        if kind is None:
            raise cursor.unexpected("TABLE or VIEW", _CAN_SHOW)
        place = cursor.offset
        name = table_name(cursor, f"the name of a {kind.lower()}")
        cursor.end()
        return Show(what="CREATE TABLE" if kind == "TABLE" else "CREATE VIEW", offset=place, name=name)
    for what in _LISTED:
        if cursor.take(*what.split()):
            negated = cursor.take("NOT")
            if negated and not cursor.peek("LIKE"):
                raise cursor.unexpected("LIKE", "write SHOW ... NOT LIKE 'pattern'")
            like = cursor.string("a pattern") if cursor.take("LIKE") else None
            cursor.end()
            return Show(what=what, offset=offset, like=like, negated=negated)
    raise cursor.unexpected("something to show", _CAN_SHOW)


def read_describe(cursor: Cursor, offset: int) -> Describe:
    """Read a DESCRIBE from after the word to the end of the statement."""
    cursor.take("TABLE")
    cursor.take("EXTENDED")
    place = cursor.offset
    name = table_name(cursor, "the name of a table or view")
    cursor.end()
    return Describe(name=name, offset=place)

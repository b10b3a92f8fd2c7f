"""The grammar of ALTER TABLE and ALTER VIEW. :mod:`hintplan.planner.declarations.alter` changes the declaration.

>>> from hintplan.planner.syntax.dialect import tokenize
>>> from hintplan.planner.syntax.source import Source
>>> source = Source(text="ALTER TABLE t RENAME a TO b")
>>> cursor = Cursor(source, source.text, tokenize(source.text))
>>> cursor.take("ALTER", "TABLE"), read_alter_table(cursor).renamed
(True, ('a', 'b'))
"""

from __future__ import annotations

from hintplan.planner.statements.columns import Key, read_column, read_declarations, read_with_options
from hintplan.planner.statements.ddl import table_name
from hintplan.planner.statements.model import AlterAction, AlterTable, AlterView, ColumnPlace
from hintplan.planner.syntax.cursor import Cursor

_FORM = "write ALTER TABLE t SET (...), RESET (...), ADD, MODIFY, DROP or RENAME"


def read_alter_table(cursor: Cursor) -> AlterTable:
    """Read an ALTER TABLE from after the word TABLE to the end of the statement."""
    if_exists = cursor.take("IF", "EXISTS")
    offset = cursor.offset
    name = table_name(cursor, "the name of a table")
    if cursor.take("SET"):
        options, places = read_with_options(cursor)
        statement = AlterTable(
            name=name,
            offset=offset,
            if_exists=if_exists,
            action="SET",
            options=options,
            option_offsets=places,
        )
    elif cursor.take("RESET"):
        statement = AlterTable(name=name, offset=offset, if_exists=if_exists, action="RESET", dropped=_reset(cursor))
    elif cursor.take("RENAME"):
        statement = _rename(cursor, name, offset, if_exists=if_exists)
    elif (word := "ADD" if cursor.take("ADD") else "MODIFY" if cursor.take("MODIFY") else None) is not None:
        statement = _columns(cursor, name, offset, "ADD" if word == "ADD" else "MODIFY", if_exists=if_exists)
    elif cursor.take("DROP"):
        statement = _drop(cursor, name, offset, if_exists=if_exists)
    else:
        raise cursor.unexpected("SET, RESET, ADD, MODIFY, DROP or RENAME", _FORM)
    cursor.end()
    return statement


def _reset(cursor: Cursor) -> tuple[tuple[str, int], ...]:
    cursor.expect("(", "write RESET ('key', ...)")
    keys: list[tuple[str, int]] = []
    while True:
        place = cursor.offset
        keys.append((cursor.string("an option name"), place))
        if not cursor.take(","):
            break
    cursor.expect(")")
    return tuple(keys)


def _rename(cursor: Cursor, name: str, offset: int, *, if_exists: bool) -> AlterTable:
    action: AlterAction = "RENAME"
    renamed: tuple[str, ...] = ()
    place = cursor.offset
    if not cursor.take("TO"):
        action, renamed = "RENAME COLUMN", (cursor.name("a column name"),)
        cursor.expect("TO", "write RENAME column TO new_name")
        renamed = (*renamed, cursor.name("a new column name"))
    else:
        place = cursor.offset
        renamed = (table_name(cursor, "a new table name"),)
    return AlterTable(
        name=name, offset=offset, if_exists=if_exists, action=action, renamed=renamed, renamed_offset=place
    )


def _columns(cursor: Cursor, name: str, offset: int, action: AlterAction, *, if_exists: bool) -> AlterTable:
    _refuse_partition(cursor)
    if cursor.peek("DISTRIBUTION"):
        raise cursor.source.error("DISTRIBUTION is not supported", cursor.offset, "leave it out")
    columns: list[ColumnPlace] = []

    def read_one() -> Key | None:
        column, key = read_column(cursor)
        place = cursor.offset
        first = cursor.take("FIRST")
        after = cursor.name("a column name") if not first and cursor.take("AFTER") else None
        columns.append(ColumnPlace(column=column, first=first, after=after, offset=place))
        return key

    key, watermark = read_declarations(cursor, read_one, in_parentheses=cursor.take("("))
    return AlterTable(
        name=name,
        offset=offset,
        if_exists=if_exists,
        action=action,
        columns=tuple(columns),
        primary_key=key[0] if key else (),
        key_offset=key[1] if key else offset,
        watermark=watermark,
    )


def _drop(cursor: Cursor, name: str, offset: int, *, if_exists: bool) -> AlterTable:
    _refuse_partition(cursor)
    place = cursor.offset
    if cursor.peek("CONSTRAINT"):
        message = "constraints have no names here"
        raise cursor.source.error(message, cursor.offset, f"write ALTER TABLE {name} DROP PRIMARY KEY")
    if cursor.take("PRIMARY", "KEY"):
        dropped = (("", place),)
        return AlterTable(
            name=name, offset=offset, if_exists=if_exists, action="DROP", drops="PRIMARY KEY", dropped=dropped
        )
    if cursor.take("WATERMARK"):
        dropped = (("", place),)
        return AlterTable(
            name=name, offset=offset, if_exists=if_exists, action="DROP", drops="WATERMARK", dropped=dropped
        )
    in_parentheses = cursor.take("(")
    columns: list[tuple[str, int]] = []
    while True:
        place = cursor.offset
        columns.append((cursor.name("a column name"), place))
        if not in_parentheses or not cursor.take(","):
            break
    if in_parentheses:
        cursor.expect(")")
    return AlterTable(name=name, offset=offset, if_exists=if_exists, action="DROP", dropped=tuple(columns))


def _refuse_partition(cursor: Cursor) -> None:
    if cursor.peek("PARTITION"):
        message = "partitions of tables are not supported"
        raise cursor.source.error(message, cursor.offset, "leave the statement out")


def read_alter_view(cursor: Cursor) -> AlterView:
    """Read an ALTER VIEW from after the word VIEW to the end of the statement."""
    offset = cursor.offset
    name = table_name(cursor, "the name of a view")
    if cursor.take("RENAME", "TO"):
        place = cursor.offset
        renamed = table_name(cursor, "a new view name")
        cursor.end()
        return AlterView(name=name, offset=offset, renamed=renamed, renamed_offset=place)
    cursor.expect("AS", "write ALTER VIEW name AS SELECT ..., or RENAME TO name")
    if cursor.at_end:
        raise cursor.unexpected("a query")
    return AlterView(name=name, offset=offset, query=cursor.rest())

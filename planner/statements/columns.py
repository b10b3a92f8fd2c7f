"""The grammar of column declarations, keys and watermarks in CREATE TABLE and ALTER TABLE.

This module owns the syntax only. It does not interpret the expressions of computed columns.

>>> from hintplan.planner.syntax.dialect import tokenize
>>> from hintplan.planner.syntax.source import Source
>>> source = Source(text="total AS price * amount COMMENT 'in cents'")
>>> read_column(Cursor(source, source.text, tokenize(source.text)))[0].expression_text
'price * amount'
"""

from __future__ import annotations

from collections.abc import Callable

from hintplan.planner.statements.model import ColumnDeclaration
from hintplan.planner.syntax.cursor import Cursor
from hintplan.planner.syntax.problems import FollowUp
from hintplan.plans.declarations.types import DataType, parse_type

Key = tuple[tuple[str, ...], int]
"""The columns of a primary key, and its offset."""
Watermark = tuple[str, str, int]
"""The column of a watermark, its expression, and its offset."""

_NOT_ENFORCED = "keys of external tables are not enforced"
_ANY = DataType(root="STRING")
"""The type that replaces an invalid type after its error is recorded."""
_AFTER_TYPE = ("PRIMARY", "CONSTRAINT", "COMMENT", "METADATA", "FIRST", "AFTER")


def read_column(cursor: Cursor) -> tuple[ColumnDeclaration, Key | None]:
    """Read one column, and return it with its primary key, if it declares one."""
    offset = cursor.offset
    name = cursor.name("a column name")
    if name.startswith("__"):
        raise cursor.source.error(f"column names that start with '__' are reserved: '{name}'", offset, "rename it")
    if cursor.take("AS"):
        tokens = cursor.until(",", ")", "COMMENT", "FIRST", "AFTER")
        if not tokens:
            raise cursor.unexpected("an expression")
        comment = cursor.string("a comment") if cursor.take("COMMENT") else None
        return ColumnDeclaration(
            name=name, offset=offset, expression=tuple(tokens), expression_text=cursor.slice(tokens), comment=comment
        ), None
    data_type = _type(cursor)
    metadata, virtual = None, False
    if cursor.take("METADATA"):
        metadata = cursor.string("a metadata key") if cursor.take("FROM") else name
        virtual = cursor.take("VIRTUAL")
    key: Key | None = None
    comment = None
    while not (cursor.peek(",") or cursor.peek(")") or cursor.peek("FIRST") or cursor.peek("AFTER") or cursor.at_end):
        place = cursor.offset
        if metadata is None and (cursor.peek("PRIMARY", "KEY") or cursor.peek("CONSTRAINT")):
            _constraint_name(cursor)
            cursor.expect("PRIMARY KEY", "only PRIMARY KEY constraints are supported")
            cursor.expect("NOT ENFORCED", f"write PRIMARY KEY NOT ENFORCED: {_NOT_ENFORCED}")
            key = ((name,), place)
        elif cursor.take("COMMENT"):
            comment = cursor.string("a comment")
        else:
            raise cursor.unexpected("',' or ')'", "separate columns with commas")
    return ColumnDeclaration(
        name=name, offset=offset, type=data_type, comment=comment, metadata=metadata, virtual=virtual
    ), key


def _type(cursor: Cursor) -> DataType:
    start, offset = cursor.index, cursor.offset
    depth = 0
    while not cursor.at_end:
        token = cursor.tokens[cursor.index]
        if depth == 0 and (token.text in (",", ")") or any(cursor.peek(word) for word in _AFTER_TYPE)):
            break
        if token.text in ("(", ")") or set(token.text) <= {"<", ">"}:
            depth += token.text.count("(") + token.text.count("<") - token.text.count(")") - token.text.count(">")
        cursor.index += 1
    text = cursor.text[offset : cursor.tokens[cursor.index - 1].end + 1] if cursor.index > start else ""
    if not text:
        raise cursor.unexpected("a type", "write the column's type, such as BIGINT or STRING")
    try:
        return parse_type(text)
    except ValueError as error:
        problems = cursor.source.problems
        advice = "use a type such as INT, BIGINT, DOUBLE, DECIMAL(p, s), STRING, BOOLEAN, DATE or TIMESTAMP(3)"
        problems.add(cursor.source.error(str(error), offset, advice), problems.doubts, certain=True)
        return _ANY


def _at_table_key(cursor: Cursor) -> bool:
    """Return True if a constraint of the table comes next."""
    if cursor.peek("UNIQUE") or cursor.peek("PERIOD"):
        place = cursor.offset
        word = cursor.next().text
        if cursor.peek("(") or cursor.peek("FOR"):
            message = f"{word.upper()} is not supported"
            raise cursor.source.error(message, place, "only PRIMARY KEY (...) NOT ENFORCED is")
        message = f"{word.upper()} is a word of the language, in Flink, too"
        raise cursor.source.error(message, place, f"quote the name of the column: `{word}`")
    return cursor.peek("PRIMARY", "KEY") or cursor.peek("CONSTRAINT")


def _read_table_key(cursor: Cursor) -> Key:
    """Read ``[CONSTRAINT name] PRIMARY KEY (a, b) NOT ENFORCED``."""
    place = cursor.offset
    _constraint_name(cursor)
    cursor.expect("PRIMARY KEY", "only PRIMARY KEY constraints are supported")
    columns = cursor.names("a column name")
    cursor.expect("NOT ENFORCED", f"write PRIMARY KEY (...) NOT ENFORCED: {_NOT_ENFORCED}")
    return columns, place


def _constraint_name(cursor: Cursor) -> None:
    if cursor.take("CONSTRAINT"):
        cursor.name("a constraint name")


def read_declarations(
    cursor: Cursor, read_one: Callable[[], Key | None], *, in_parentheses: bool
) -> tuple[Key | None, Watermark | None]:
    """Read declarations, and return the primary key and the watermark.

    ``read_one`` reads a column, and may return a key. With ``in_parentheses``, read up to the closing parenthesis.
    """
    key: Key | None = None
    watermark: Watermark | None = None
    in_doubt = False
    while True:
        place, new_key, is_read = cursor.offset, None, False
        with cursor.source.problems.going_on():
            if cursor.take("WATERMARK", "FOR"):
                if watermark:
                    raise cursor.source.error("a table has at most one WATERMARK", place, "keep one of them")
                watermark = _read_watermark(cursor, place)
            elif _at_table_key(cursor):
                new_key = _read_table_key(cursor)
            else:
                new_key = read_one()
            if key is not None and new_key is not None:
                advice = "list its columns in one PRIMARY KEY"
                raise cursor.source.error("a table has at most one primary key", place, advice)
            key, is_read = new_key or key, True
        if not is_read:
            in_doubt = True
            cursor.until(",", ")")
        if not in_parentheses or not cursor.take(","):
            break
    if in_doubt:
        raise FollowUp
    if in_parentheses:
        cursor.expect(")", "separate columns with commas and close the list with ')'")
    return key, watermark


def _read_watermark(cursor: Cursor, offset: int) -> Watermark:
    """Read a watermark from after ``WATERMARK FOR``, and return its column, its expression, and ``offset``."""
    place = cursor.offset
    column = cursor.name("a column name")
    if cursor.peek("."):
        raise cursor.source.error("WATERMARK on a nested field is not supported", place, "use a top-level column")
    cursor.expect("AS", "write WATERMARK FOR column AS expression")
    tokens = cursor.until(",", ")")
    if not tokens:
        raise cursor.unexpected("an expression")
    return column, cursor.slice(tokens), offset


def read_with_options(cursor: Cursor) -> tuple[dict[str, str], dict[str, int]]:
    """Read ``('key' = 'value', ...)``, and return the options, ``connector`` first, and the offset of each."""
    cursor.expect("(")
    options: dict[str, str] = {}
    places: dict[str, int] = {}
    while not cursor.peek(")"):
        place = cursor.offset
        key = cursor.string("an option name")
        if key in options:
            raise cursor.source.error(f"option '{key}' is given twice", place, "keep one of them")
        cursor.expect("=", "write 'key' = 'value'")
        places[key] = place
        options[key] = cursor.string("an option value")
        if not cursor.take(","):
            break
    cursor.expect(")", "separate options with commas and close the list with ')'")
    return connector_first(options), places


def connector_first(options: dict[str, str]) -> dict[str, str]:
    """Return ``options`` with the connector before all others."""
    first = {"connector": options["connector"]} if "connector" in options else {}
    return {**first, **options}

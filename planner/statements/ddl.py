"""CREATE TABLE, VIEW and FUNCTION, parsed token by token, so that each error has an exact position.

This module owns the order of the clauses and the grammar of LIKE. :mod:`hintplan.planner.statements.columns` reads the
declarations in parentheses. It does not check connectors or the meaning of a computed column's expression.
"""

from __future__ import annotations

from typing import get_args

from hintplan.planner.statements.columns import Key, read_column, read_declarations, read_with_options
from hintplan.planner.statements.model import (
    ColumnDeclaration,
    CreateFunction,
    CreateTable,
    CreateView,
    Like,
    LikeFeature,
    LikeStrategy,
)
from hintplan.planner.syntax.cursor import Cursor
from hintplan.planner.syntax.dialect import Token

DEFAULT_PATH = ("default_catalog", "default_database")
"""The catalog and the database of all tables."""
_NOT_CARRIED = {
    "DISTRIBUTED": "remove it: rows are spread by the keys of operators",
}
_NEVER_OVERWRITTEN = ("ALL", "CONSTRAINTS", "DISTRIBUTION", "PARTITIONS")
_LIKE_FORM = "write LIKE table (INCLUDING ALL EXCLUDING OPTIONS), or name other features"


def table_name(cursor: Cursor, what: str) -> str:
    """Advance past a table's name, and return it. A path must lead to the default database."""
    offset = cursor.offset
    path = cursor.path(what)
    if path[:-1] != DEFAULT_PATH[3 - len(path) :][: len(path) - 1] or len(path) > 3:
        raise cursor.source.error(
            f"'{'.'.join(path)}' lies in another catalog or database",
            offset,
            f"tables live in {'.'.join(DEFAULT_PATH)}: write '{path[-1]}'",
        )
    return path[-1]


def create_table(cursor: Cursor, *, temporary: bool) -> CreateTable:
    """Read a CREATE TABLE from after the word TABLE to the end of the statement."""
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    offset = cursor.offset
    name = table_name(cursor, "a table name")
    columns: list[ColumnDeclaration] = []
    listed: list[tuple[str, int]] = []

    def read_one() -> Key | None:
        if (bare_name := _bare_name(cursor)) is not None:
            listed.append(bare_name)
            return None
        column, key = read_column(cursor)
        columns.append(column)
        return key

    in_parentheses = cursor.take("(")
    key, watermark = read_declarations(cursor, read_one, in_parentheses=True) if in_parentheses else (None, None)
    comment = cursor.string("a comment") if cursor.take("COMMENT") else None
    for words, instead in _NOT_CARRIED.items():
        if cursor.peek(*words.split()):
            raise cursor.source.error(f"{words} is not supported", cursor.offset, instead)
    partitioned_offset = cursor.offset
    partitioned = cursor.names("a column name") if cursor.take("PARTITIONED", "BY") else ()
    options, option_offsets = read_with_options(cursor) if cursor.take("WITH") else ({}, {})
    like = _like(cursor) if cursor.take("LIKE") else None
    query = _query(cursor, name) if cursor.peek("AS") else ()
    if like is not None and query:
        message = "CREATE TABLE takes LIKE or AS, not both"
        raise cursor.source.error(message, like.offset, "declare the table with LIKE, then write INSERT INTO")
    if not query:
        cursor.end()
        if not in_parentheses and like is None:
            raise cursor.unexpected("'('", "list the table's columns in parentheses")
        if listed:
            _, place = listed[0]
            raise cursor.source.error(f"column '{listed[0][0]}' has no type", place, "write one, such as BIGINT")
    return CreateTable(
        name=name,
        offset=offset,
        temporary=temporary,
        columns=tuple(columns),
        primary_key=key[0] if key else (),
        key_offset=key[1] if key else offset,
        watermark=watermark,
        comment=comment,
        options=options,
        option_offsets=option_offsets,
        if_not_exists=if_not_exists,
        partitioned_by=partitioned,
        partitioned_offset=partitioned_offset,
        like=like,
        listed=tuple(listed),
        query=query,
    )


def _bare_name(cursor: Cursor) -> tuple[str, int] | None:
    """Return a column's name if nothing follows it, else None. With AS, a table may list the columns of its query."""
    start, place = cursor.index, cursor.offset
    name = cursor.name("a column name")
    if cursor.peek(",") or cursor.peek(")"):
        return name, place
    cursor.index = start
    return None


def _like(cursor: Cursor) -> Like:
    """Read the clause LIKE from after its keyword."""
    offset = cursor.offset
    table = table_name(cursor, "the name of a table")
    strategies: dict[LikeFeature, LikeStrategy] = {}
    if cursor.take("("):
        while not strategies or not cursor.take(")"):
            place = cursor.offset
            strategy = next((word for word in get_args(LikeStrategy) if cursor.take(word)), None)
            feature = next((word for word in get_args(LikeFeature) if strategy and cursor.take(word)), None)
            if strategy is None or feature is None:
                raise cursor.unexpected("a feature" if strategy else "INCLUDING, EXCLUDING or OVERWRITING", _LIKE_FORM)
            if feature in strategies:
                raise cursor.source.error(f"LIKE has two rules for {feature}", place, "keep one of them")
            if strategy == "OVERWRITING" and feature in _NEVER_OVERWRITTEN:
                advice = f"write INCLUDING {feature}, or EXCLUDING {feature} and declare it again"
                raise cursor.source.error(f"LIKE cannot overwrite {feature}", place, advice)
            strategies[feature] = strategy
    return Like(table=table, offset=offset, strategies=strategies)


def _query(cursor: Cursor, name: str) -> tuple[Token, ...]:
    """Read the query of CREATE TABLE ... AS."""
    cursor.expect("AS")
    if cursor.at_end:
        raise cursor.unexpected("a query", f"write CREATE TABLE {name} WITH (...) AS SELECT ...")
    return cursor.rest()


def create_view(cursor: Cursor, *, temporary: bool, replace: bool) -> CreateView:
    """Read a CREATE VIEW from after the word VIEW to the end of the statement."""
    place = cursor.offset
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    if if_not_exists and replace:
        raise cursor.source.error("CREATE OR REPLACE takes no IF NOT EXISTS", place, "write one of them")
    offset = cursor.offset
    name = table_name(cursor, "a view name")
    columns = cursor.names("a column name") if cursor.peek("(") else ()
    if cursor.take("COMMENT"):
        cursor.string("a comment")
    cursor.expect("AS", "write CREATE VIEW name AS SELECT ...")
    if cursor.at_end:
        raise cursor.unexpected("a query")
    return CreateView(
        name=name,
        offset=offset,
        temporary=temporary,
        columns=columns,
        query=cursor.rest(),
        if_not_exists=if_not_exists,
        replace=replace,
    )


def create_function(cursor: Cursor, *, temporary: bool) -> CreateFunction:
    """Read a CREATE FUNCTION from after the word FUNCTION to the end of the statement."""
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    offset = cursor.offset
    name = table_name(cursor, "a function name")
    cursor.expect("AS", "write CREATE FUNCTION name AS 'module.Class' LANGUAGE PYTHON")
    class_offset = cursor.offset
    class_name = cursor.string("the name of a class")
    place = cursor.offset
    language = "PYTHON" if cursor.take("LANGUAGE", "PYTHON") else "JAVA"
    if language == "JAVA":
        has_language = cursor.take("LANGUAGE")
        language = cursor.name("a language").upper() if has_language else language
        about = (
            f"functions in {language} are not supported"
            if has_language
            else "a function without LANGUAGE is one in JAVA"
        )
        raise cursor.source.error(
            about, place, "write the function as a Python class, and LANGUAGE PYTHON after its name"
        )
    if cursor.peek("USING"):
        raise cursor.source.error(
            "USING is not supported: a class is loaded from a Python module",
            cursor.offset,
            "make the module importable, and allow it with --allow-module",
        )
    cursor.end()
    return CreateFunction(
        name=name,
        offset=offset,
        temporary=temporary,
        class_name=class_name,
        class_offset=class_offset,
        if_not_exists=if_not_exists,
    )

"""The grammar around queries: INSERT INTO, INSERT OVERWRITE, and queries without INSERT. The queries stay tokens.

This module reports errors that the query parser would accept, or report with a misleading message.

>>> from hintplan.planner.syntax.dialect import tokenize
>>> from hintplan.planner.syntax.source import Source
>>> source = Source(text="INSERT INTO s (a) SELECT 1")
>>> read_insert(Cursor(source, source.text, tokenize(source.text))).columns
('a',)
"""

from __future__ import annotations

from itertools import pairwise

from hintplan.planner.statements.ddl import table_name
from hintplan.planner.statements.model import Insert, PartitionValue, Select
from hintplan.planner.syntax.cursor import Cursor, word_of
from hintplan.planner.syntax.dialect import Token, TokenType
from hintplan.planner.syntax.windowed_tables import WINDOWS

_GROUP_INSTEAD = (
    "write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) GROUP BY window_start, window_end"
)


def check_form(cursor: Cursor) -> None:
    """Raise SqlError for errors that the query parser would accept, or report with a misleading message."""
    _check_one_statement(cursor)
    _check_commas(cursor)


def _check_one_statement(cursor: Cursor) -> None:
    for before, token in pairwise(cursor.tokens[cursor.index :]):
        follows = cursor.text[before.end + 1 : token.start]
        if (
            "\n" in follows
            and word_of(token) in ("INSERT", "CREATE", "SET", "EXECUTE", "END")
            and word_of(before) not in ("THEN", "ELSE", ",", ".", "(")
        ):
            index = cursor.tokens.index(token)
            after = [word_of(t) for t in cursor.tokens[index + 1 : index + 2]]
            if (word_of(token), *after) in (
                ("INSERT", "INTO"),
                ("CREATE", "TABLE"),
                ("CREATE", "VIEW"),
                ("CREATE", "TEMPORARY"),
                ("EXECUTE", "STATEMENT"),
                ("SET", ""),
            ):
                raise cursor.source.error(
                    f"missing ';' before {word_of(token)}", before.end + 1, "end each statement with ';'"
                )


def _check_commas(cursor: Cursor) -> None:
    for before, token in pairwise(cursor.tokens[cursor.index :]):
        if before.token_type == TokenType.COMMA and word_of(token) in (",", ")", "FROM", "WHERE"):
            message = f"there is nothing between ',' and '{token.text}'"
            raise cursor.source.error(message, before.start, "remove the ','")
    words = ["", "", "", *map(word_of, cursor.tokens)]
    for place, (token, after) in enumerate(pairwise(cursor.tokens)):
        first, _, previous = words[place : place + 3]
        if word_of(token) in WINDOWS and after.text == "(" and previous != "AS":
            if previous in ("FROM", "JOIN"):
                message = f"{word_of(token)} in {previous} is an argument of TABLE(...)"
                raise cursor.source.error(message, token.start, _GROUP_INSTEAD)
            if first == "LATERAL":
                message = f"{word_of(token)} after LATERAL is not supported, by Flink neither"
                raise cursor.source.error(message, token.start, "write TABLE(...) without LATERAL")
        if word_of(token) in ("FROM", "JOIN") and word_of(after) == "VALUES":
            message, advice = "VALUES needs parentheses here", "write (VALUES (1, 'a')) AS t(x, y)"
            raise cursor.source.error(message, after.start, advice)
        if word_of(token) == "MINUS" and word_of(after) in ("SELECT", "ALL", "VALUES"):
            raise cursor.source.error("MINUS is not supported, nor is it in Flink", token.start, "write EXCEPT")
        if word_of(token) == "MATCH_RECOGNIZE" and after.text == "(":
            advice = "join the table with itself, or aggregate the rows of a key"
            raise cursor.source.error("MATCH_RECOGNIZE is not supported", token.start, advice)


def read_select(cursor: Cursor) -> Select | None:
    """Read a query up to the end of the statement, or return None if none starts here."""
    if not (cursor.peek("SELECT") or cursor.peek("WITH") or cursor.peek("VALUES") or cursor.peek("(")):
        return None
    check_form(cursor)
    return Select(query=cursor.rest(), offset=cursor.offset)


def read_insert(cursor: Cursor) -> Insert:
    """Read an INSERT INTO or INSERT OVERWRITE up to the end of the statement."""
    offset = cursor.offset
    check_form(cursor)
    cursor.expect("INSERT", "write INSERT INTO table SELECT ...")
    place = cursor.offset
    overwrites = place if cursor.take("OVERWRITE") else None
    if overwrites is None:
        cursor.expect("INTO", "write INSERT INTO table SELECT ...")
    table_offset = cursor.offset
    table = table_name(cursor, "a table name")
    hinted = cursor.tokens[cursor.index - 1].start
    partition = _partition(cursor) if cursor.take("PARTITION") else ()
    columns_offset = cursor.offset
    columns: tuple[str, ...] = ()
    if cursor.peek("(") and not any(cursor.peek("(", word) for word in ("SELECT", "WITH", "VALUES", "(")):
        columns = cursor.names("a column name")
    if cursor.at_end:
        raise cursor.unexpected("a query", "write INSERT INTO table SELECT ...")
    query, conflict = _without_conflict(cursor, cursor.rest())
    return Insert(
        table=table,
        offset=offset,
        table_offset=table_offset,
        columns=columns,
        columns_offset=columns_offset,
        query=query,
        partition=partition,
        conflict_offset=conflict,
        hinted=hinted,
        overwrites=overwrites,
    )


def _partition(cursor: Cursor) -> tuple[PartitionValue, ...]:
    """Read the columns with constant values from after PARTITION."""
    cursor.expect("(", "write PARTITION (column = value, ...)")
    values: list[PartitionValue] = []
    while True:
        offset = cursor.offset
        name = cursor.name("a column name")
        if any(value.column == name for value in values):
            raise cursor.source.error(f"column '{name}' is listed twice", offset, "list it once")
        cursor.expect("=", "write PARTITION (column = value, ...); a column without a value is selected by the query")
        value = tuple(cursor.until(",", ")"))
        if not value:
            raise cursor.unexpected("a value")
        values.append(PartitionValue(column=name, offset=offset, value=value))
        if not cursor.take(","):
            break
    cursor.expect(")", "separate values with commas and close the list with ')'")
    return tuple(values)


def _without_conflict(cursor: Cursor, tokens: tuple[Token, ...]) -> tuple[tuple[Token, ...], int | None]:
    """Split off ``ON CONFLICT DO DEDUPLICATE`` at the end of a query, and return its offset.

    Raise SqlError for Flink's other strategies, which depend on watermarks.
    """
    *clause, way = [word_of(token) for token in tokens[-4:]] or [""]
    if clause != ["ON", "CONFLICT", "DO"]:
        return tokens, None
    if way != "DEDUPLICATE":
        raise cursor.source.error(
            f"ON CONFLICT DO {way} is not supported: it goes by watermarks",
            tokens[-4].start,
            "write ON CONFLICT DO DEDUPLICATE, which keeps the latest row of each key",
        )
    return tokens[:-4], tokens[-4].start

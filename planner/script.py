"""A script cut into statements: SET, CREATE TABLE, CREATE VIEW, INSERT, and statement sets around INSERTs.

Owns where a statement starts and ends and which kinds there are; everything else is refused here by name.

>>> [type(s).__name__ for s in read_script(Source(text="SET 'pipeline.name' = 'x';"), "SET 'pipeline.name' = 'x';")]
['SetOption']
"""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot.errors import TokenError

from planner.cursor import Cursor, word_of
from planner.ddl import create_table, create_view, table_name
from planner.dialect import Token, TokenType, tokenize
from planner.source import Source
from planner.statements import Insert, SetOption, Statement
from plans.names import did_you_mean

__all__ = ["read_script"]

_INSTEAD = {
    "SELECT": "write INSERT INTO <sink table> SELECT ...: a plan needs a sink",
    "WITH": "write INSERT INTO <sink table> WITH ... SELECT ...: a plan needs a sink",
    "VALUES": "read the rows from a table",
    "RESET": "leave the option out: nothing is set before the script starts",
    "DROP": "leave the object out of the script",
    "ALTER": "change the CREATE statement instead",
    "USE": "tables live in default_catalog.default_database",
    "EXPLAIN": "compile the script, then run 'hintplan explain plan.json'",
    "UPDATE": "write INSERT INTO",
    "DELETE": "write INSERT INTO",
}


def read_script(source: Source, text: str) -> tuple[Statement, ...]:
    """The statements of ``text``, the blanked-out text of ``source``, in order."""
    try:
        tokens = tokenize(text)
    except TokenError as error:
        raise source.error("the script cannot be read", 0, str(error)) from error
    found: list[Statement] = []
    open_set: int | None = None
    for statement in _split(tokens):
        cursor = Cursor(source, text, statement)
        offset = cursor.offset
        if cursor.take("EXECUTE", "STATEMENT", "SET") or cursor.take("BEGIN", "STATEMENT", "SET"):
            executes = word_of(cursor.tokens[0]) == "EXECUTE"
            if open_set is not None:
                raise source.error("statement sets cannot be nested", offset, "close the first with END;")
            if executes:
                cursor.expect("BEGIN", "write EXECUTE STATEMENT SET BEGIN ...; END;")
            open_set = offset
            if cursor.at_end:
                if executes:
                    raise source.error("a statement set holds INSERT statements", cursor.offset, "add one, then END;")
                continue
        elif cursor.take("END"):
            if open_set is None:
                raise source.error(
                    "END closes nothing", offset, "open the statement set with EXECUTE STATEMENT SET BEGIN"
                )
            if not cursor.at_end:
                raise cursor.unexpected("';'", "end each statement with ';'")
            open_set = None
            continue
        if open_set is not None and not cursor.peek("INSERT"):
            raise cursor.unexpected("INSERT INTO in the statement set", "close the statement set with END; first")
        found.append(_statement(cursor))
    if open_set is not None:
        raise source.error("this statement set is never closed", open_set, "add END; after its last INSERT")
    return tuple(found)


def _split(tokens: list[Token]) -> list[list[Token]]:
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [s for s in statements if s]


def _statement(cursor: Cursor) -> Statement:
    source, offset = cursor.source, cursor.offset
    word = word_of(cursor.tokens[0]) if cursor.index == 0 else word_of(cursor.tokens[cursor.index])
    if cursor.take("SET"):
        return _set(cursor)
    _check_one_statement(cursor)
    _check_form(cursor)
    if cursor.take("INSERT"):
        return _insert(cursor, offset)
    if cursor.take("CREATE"):
        if cursor.take("OR"):
            raise source.error("CREATE OR REPLACE is not supported", offset, "write CREATE")
        cursor.take("TEMPORARY")
        if cursor.take("TABLE"):
            return create_table(cursor)
        if cursor.take("VIEW"):
            return create_view(cursor)
        if not cursor.at_end and word_of(cursor.tokens[cursor.index]) in ("FUNCTION", "SYSTEM"):
            raise source.error("CREATE FUNCTION is not supported", offset, "use the built-in functions")
        raise cursor.unexpected("TABLE or VIEW", "write CREATE TABLE or CREATE VIEW")
    hint = _INSTEAD.get(word) or did_you_mean(word, ("INSERT", "CREATE", "SET"), what="supported statements")
    raise source.error(f"{word or 'this'} is not a supported statement", offset, hint)


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


def _check_form(cursor: Cursor) -> None:
    """Refuse what the query parser would forgive, or not recognise as what it is."""
    for before, token in pairwise(cursor.tokens[cursor.index :]):
        if before.token_type == TokenType.COMMA and word_of(token) in (",", ")", "FROM", "WHERE"):
            message = f"nothing stands between ',' and '{token.text}'"
            raise cursor.source.error(message, before.start, "remove the ','")
    for before, token, after in zip(cursor.tokens, cursor.tokens[1:], cursor.tokens[2:], strict=False):
        if word_of(token) == "TABLE" and after.text == "(" and word_of(before) in ("FROM", "JOIN", ","):
            message = "table functions such as TUMBLE are not supported"
            raise cursor.source.error(message, token.start, "use a table, a view or a sub-query")


def _set(cursor: Cursor) -> SetOption:
    offset = cursor.offset
    if cursor.at_end:
        raise cursor.source.error("SET without an option is not supported", offset, "write SET 'key' = 'value';")
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


def _insert(cursor: Cursor, offset: int) -> Insert:
    if cursor.peek("OVERWRITE"):
        raise cursor.source.error("INSERT OVERWRITE is not supported in streaming", cursor.offset, "write INSERT INTO")
    cursor.expect("INTO", "write INSERT INTO table SELECT ...")
    table_offset = cursor.offset
    table = table_name(cursor, "a table name")
    if cursor.peek("PARTITION"):
        raise cursor.source.error(
            "INSERT INTO ... PARTITION is not supported", cursor.offset, "select the column's value"
        )
    columns_offset = cursor.offset
    columns: tuple[str, ...] = ()
    if cursor.peek("(") and not (cursor.peek("(", "SELECT") or cursor.peek("(", "WITH") or cursor.peek("(", "(")):
        columns = cursor.names("a column name")
    if cursor.at_end:
        raise cursor.unexpected("a query", "write INSERT INTO table SELECT ...")
    if cursor.peek("VALUES"):
        raise cursor.source.error("INSERT INTO ... VALUES is not supported", cursor.offset, _INSTEAD["VALUES"])
    return Insert(
        table=table,
        offset=offset,
        table_offset=table_offset,
        columns=columns,
        columns_offset=columns_offset,
        query=cursor.rest(),
    )

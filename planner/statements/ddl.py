"""CREATE TABLE, VIEW and FUNCTION: token by token, so that every complaint has an exact place.

Owns the grammar of column lists, constraints, watermarks and options. Does not know whether a connector exists, nor
what a computed column's expression means.
"""

from __future__ import annotations

from planner.statements.model import ColumnDeclaration, CreateFunction, CreateTable, CreateView
from planner.syntax.cursor import Cursor
from plans.declarations.types import DataType, parse_type

_CATALOG = ("default_catalog", "default_database")


def table_name(cursor: Cursor, what: str) -> str:
    """Step over a table's name; a path is accepted if it leads to the default database."""
    offset = cursor.offset
    path = cursor.path(what)
    if path[:-1] != _CATALOG[3 - len(path) :][: len(path) - 1] or len(path) > 3:
        raise cursor.source.error(
            f"'{'.'.join(path)}' lies in another catalog or database",
            offset,
            f"tables live in {'.'.join(_CATALOG)}: write '{path[-1]}'",
        )
    return path[-1]


def create_table(cursor: Cursor, *, temporary: bool) -> CreateTable:
    """Read a CREATE TABLE from after the word TABLE to the end of the statement."""
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    offset = cursor.offset
    name = table_name(cursor, "a table name")
    if cursor.peek("AS"):
        raise cursor.source.error(
            "CREATE TABLE AS is not supported", cursor.offset, "declare the table's columns, then write INSERT INTO"
        )
    if cursor.peek("LIKE"):
        raise cursor.source.error("CREATE TABLE ... LIKE is not supported", cursor.offset, "write the declaration out")
    cursor.expect("(", "list the table's columns in parentheses")
    columns: list[ColumnDeclaration] = []
    keys: list[tuple[str, ...]] = []
    watermark: tuple[str, str, int] | None = None
    while True:
        place = cursor.offset
        if cursor.take("WATERMARK", "FOR"):
            if watermark:
                raise cursor.source.error("a table has at most one WATERMARK", place, "keep one of them")
            watermark = _watermark(cursor, place)
        elif cursor.peek("PRIMARY", "KEY") or cursor.peek("CONSTRAINT"):
            keys.append(_table_key(cursor))
        elif cursor.peek("UNIQUE") or cursor.peek("PERIOD"):
            raise cursor.source.error(
                f"{cursor.next().text.upper()} is not supported", place, "only PRIMARY KEY (...) NOT ENFORCED is"
            )
        else:
            column, is_key = _column(cursor)
            columns.append(column)
            if is_key:
                keys.append((column.name,))
        if len(keys) > 1:
            raise cursor.source.error(
                "a table has at most one primary key", place, "list its columns in one PRIMARY KEY"
            )
        if not cursor.take(","):
            break
    cursor.expect(")", "separate columns with commas and close the list with ')'")
    comment = cursor.string("a comment") if cursor.take("COMMENT") else None
    for words in (("PARTITIONED", "BY"), ("DISTRIBUTED",)):
        if cursor.peek(*words):
            raise cursor.source.error(f"{' '.join(words)} is not supported", cursor.offset, "remove it")
    options, option_offsets = _options(cursor)
    if cursor.peek("LIKE") or cursor.peek("AS"):
        word = cursor.next().text.upper()
        raise cursor.source.error(f"CREATE TABLE ... {word} is not supported", offset, "write the declaration out")
    cursor.end()
    return CreateTable(
        name=name,
        offset=offset,
        temporary=temporary,
        columns=tuple(columns),
        primary_key=keys[0] if keys else (),
        watermark=watermark,
        comment=comment,
        options=options,
        option_offsets=option_offsets,
        if_not_exists=if_not_exists,
    )


def create_view(cursor: Cursor, *, temporary: bool) -> CreateView:
    """Read a CREATE VIEW from after the word VIEW to the end of the statement."""
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
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
        named = cursor.take("LANGUAGE")
        language = cursor.name("a language").upper() if named else language
        about = f"functions in {language} are not supported" if named else "a function without LANGUAGE is one in JAVA"
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


def _column(cursor: Cursor) -> tuple[ColumnDeclaration, bool]:
    offset = cursor.offset
    name = cursor.name("a column name")
    if name.startswith("__"):
        raise cursor.source.error(f"column names that start with '__' are reserved: '{name}'", offset, "rename it")
    if cursor.take("AS"):
        tokens = cursor.until(",", ")", "COMMENT")
        if not tokens:
            raise cursor.unexpected("an expression")
        comment = cursor.string("a comment") if cursor.take("COMMENT") else None
        return ColumnDeclaration(
            name=name, offset=offset, expression=tuple(tokens), expression_text=cursor.slice(tokens), comment=comment
        ), False
    data_type = _type(cursor)
    is_key = False
    comment = None
    while not (cursor.peek(",") or cursor.peek(")") or cursor.at_end):
        place = cursor.offset
        if cursor.take("PRIMARY", "KEY"):
            cursor.expect("NOT ENFORCED", "write PRIMARY KEY NOT ENFORCED: keys of external tables are not enforced")
            is_key = True
        elif cursor.take("COMMENT"):
            comment = cursor.string("a comment")
        elif cursor.peek("METADATA"):
            raise cursor.source.error("METADATA columns are not supported", place, f"remove column '{name}'")
        else:
            raise cursor.unexpected("',' or ')'", "separate columns with commas")
    return ColumnDeclaration(name=name, offset=offset, type=data_type, comment=comment), is_key


def _type(cursor: Cursor) -> DataType:
    start, offset = cursor.index, cursor.offset
    depth = 0
    while not cursor.at_end:
        token = cursor.tokens[cursor.index]
        if depth == 0 and (
            token.text in (",", ")") or cursor.peek("PRIMARY") or cursor.peek("COMMENT") or cursor.peek("METADATA")
        ):
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
        raise cursor.source.error(
            str(error),
            offset,
            "use a type such as INT, BIGINT, DOUBLE, DECIMAL(p, s), STRING, BOOLEAN, DATE or TIMESTAMP(3)",
        ) from None


def _table_key(cursor: Cursor) -> tuple[str, ...]:
    if cursor.take("CONSTRAINT"):
        cursor.name("a constraint name")
    cursor.expect("PRIMARY KEY", "only PRIMARY KEY constraints are supported")
    found = cursor.names("a column name")
    cursor.expect("NOT ENFORCED", "write PRIMARY KEY (...) NOT ENFORCED: keys of external tables are not enforced")
    return found


def _watermark(cursor: Cursor, offset: int) -> tuple[str, str, int]:
    place = cursor.offset
    column = cursor.name("a column name")
    if cursor.peek("."):
        raise cursor.source.error("WATERMARK on a nested field is not supported", place, "use a top-level column")
    cursor.expect("AS", "write WATERMARK FOR column AS expression")
    tokens = cursor.until(",", ")")
    if not tokens:
        raise cursor.unexpected("an expression")
    return column, cursor.slice(tokens), offset


def _options(cursor: Cursor) -> tuple[dict[str, str], dict[str, int]]:
    """The options, ``connector`` first, and where each of them stands."""
    if not cursor.take("WITH"):
        return {}, {}
    cursor.expect("(")
    options: dict[str, str] = {}
    places: dict[str, int] = {}
    while True:
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
    first = {"connector": options["connector"]} if "connector" in options else {}
    return {**first, **options}, places

"""SHOW and DESCRIBE: the contents of a session's catalog, as rows and as the statements that declare them.

>>> sql_like("a%") .fullmatch("abc") is not None
True
"""

from __future__ import annotations

import re

from hintplan.planner.context import Context, TableEntry
from hintplan.planner.expressions.scalars import known_functions
from hintplan.planner.query.queries import build_view
from hintplan.planner.session import CompileSession
from hintplan.planner.statements.model import Describe, Show
from hintplan.planner.syntax.problems import Problems
from hintplan.planner.syntax.source import Source
from hintplan.planner.translation.aggregates import NAMES
from hintplan.plans.client.actions import ShowRows, ShowText
from hintplan.plans.declarations.tables import TableColumn
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import SqlError
from hintplan.plans.text.names import did_you_mean

_DESCRIBED = ("name", "type", "null", "key", "extras", "watermark")


def show_names(context: Context, statement: Show) -> ShowRows:
    """Return the sorted names for SHOW TABLES, VIEWS or FUNCTIONS. Tables include views."""
    catalog = context.catalog
    names = {
        "TABLES": ("table name", catalog.names()),
        "VIEWS": ("view name", tuple(catalog.views)),
        "FUNCTIONS": ("function name", (*known_functions(), *NAMES, *catalog.functions)),
        "USER FUNCTIONS": ("function name", tuple(catalog.functions)),
    }
    heading, matches = names[statement.what]
    if statement.like is not None:
        # Names of functions are case-insensitive.
        pattern = sql_like(statement.like, re.IGNORECASE if "FUNCTIONS" in statement.what else 0)
        matches = tuple(name for name in matches if (pattern.fullmatch(name) is None) == statement.negated)
    return ShowRows(columns=(heading,), rows=tuple((name,) for name in sorted(set(matches))))


def completion_names(session: CompileSession) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the columns of each table and view, and the names of functions.

    A view that no longer compiles has no columns.
    """
    context = session.context
    columns = {name: tuple(c.name for c in entry.table.columns) for name, entry in context.catalog.tables.items()}
    for name, view in context.catalog.views.items():
        try:
            with context.on_trial():
                columns[name] = tuple(f.name for f in build_view(context, view).fields)
        except SqlError:
            columns[name] = ()
    context.source.problems = Problems()
    return columns, (*known_functions(), *NAMES)


def sql_like(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a LIKE pattern as a regular expression: ``%`` is any text, ``_`` any character, a backslash escapes."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    words = {"%": ".*", "_": "."}
    return re.compile("".join(words.get(part) or re.escape(part[-1]) for part in parts), re.DOTALL | flags)


def describe_table(context: Context, statement: Describe) -> ShowRows:
    """Return the columns of a table or view, in the format of Flink's DESCRIBE."""
    name = statement.name
    if name in context.catalog.tables:
        return ShowRows(columns=_DESCRIBED, rows=_table_rows(context.catalog.tables[name]))
    if name in context.catalog.views:
        with context.on_trial():
            fields = build_view(context, context.catalog.views[name]).fields
        rows = tuple((f.name, str(f.type.as_nullable()), "TRUE", None, None, None) for f in fields)
        return ShowRows(columns=_DESCRIBED, rows=rows)
    declared = context.catalog.names()
    advice = did_you_mean(name, declared, what="declared")
    raise context.source.error(f"there is no table or view '{name}'", statement.offset, advice)


def _table_rows(entry: TableEntry) -> tuple[tuple[str | None, ...], ...]:
    table = entry.table
    key = f"PRI({', '.join(table.primary_key)})" if table.primary_key else None
    watermark = table.watermark
    return tuple(
        (
            column.name,
            str(parse_type(column.type).as_nullable()),
            str(not column.type.endswith("NOT NULL") and column.name not in table.primary_key).upper(),
            key if column.name in table.primary_key else None,
            _extras(column) or None,
            watermark.expression if watermark is not None and watermark.column == column.name else None,
        )
        for column in table.columns
    )


def show_create_table(context: Context, statement: Show) -> ShowText:
    """Return the CREATE TABLE statement of a table.

    Raise SqlError for a view or an unknown name.
    """
    entry = context.catalog.tables.get(statement.name)
    if entry is None:
        raise _missing(context, statement, "view", tuple(context.catalog.views), tuple(context.catalog.tables))
    table = entry.table
    lines = [_column(column) for column in table.columns]
    if table.watermark is not None:
        lines.append(f"WATERMARK FOR {_name(table.watermark.column)} AS {table.watermark.expression}")
    if table.primary_key:
        lines.append(f"PRIMARY KEY ({', '.join(map(_name, table.primary_key))}) NOT ENFORCED")
    temporary = "TEMPORARY " if entry.temporary else ""
    comment = "" if table.comment is None else f" COMMENT {_text(table.comment)}"
    partitioned = f" PARTITIONED BY ({', '.join(map(_name, table.partitioned_by))})" if table.partitioned_by else ""
    options = ",\n".join(f"  {_text(key)} = {_text(value)}" for key, value in table.options.items())
    body = ",\n".join(f"  {line}" for line in lines)
    head = f"CREATE {temporary}TABLE {_name(statement.name)}"
    return ShowText(text=f"{head} (\n{body}\n){comment}{partitioned} WITH (\n{options}\n);")


def show_create_view(context: Context, statement: Show) -> ShowText:
    """Return the CREATE VIEW statement of a view, with its original query.

    Raise SqlError for a table or an unknown name.
    """
    view = context.catalog.views.get(statement.name)
    if view is None:
        raise _missing(context, statement, "table", tuple(context.catalog.tables), tuple(context.catalog.views))
    temporary = "TEMPORARY " if view.temporary else ""
    columns = f" ({', '.join(map(_name, view.columns))})" if view.columns else ""
    query = _written(context.source, view.query[0].start, view.query[-1].end + 1)
    return ShowText(text=f"CREATE {temporary}VIEW {_name(statement.name)}{columns} AS\n{query};")


def _written(source: Source, start: int, end: int) -> str:
    # The end of a quoted token excludes the closing quote.
    closing = source.text[end : end + 1]
    return source.text[start : end + (closing in ("'", "`") and bool(closing))]


def _missing(
    context: Context, statement: Show, other: str, others: tuple[str, ...], known: tuple[str, ...]
) -> Exception:
    name, kind = statement.name, statement.what.removeprefix("CREATE ").lower()
    if name in others:
        advice = f"write SHOW CREATE {other.upper()} {name}"
        return context.source.error(f"'{name}' is a {other}", statement.offset, advice)
    advice = did_you_mean(name, known, what="declared")
    return context.source.error(f"there is no {kind} '{name}'", statement.offset, advice)


def _column(column: TableColumn) -> str:
    comment = "" if column.comment is None else f" COMMENT {_text(column.comment)}"
    declaration = " ".join(part for part in ("" if column.expression else column.type, _extras(column)) if part)
    return f"{_name(column.name)} {declaration}{comment}"


def _extras(column: TableColumn) -> str:
    """Return the part of a column's declaration that makes it a computed or METADATA column, else an empty text."""
    if column.metadata is None:
        return "" if column.expression is None else f"AS {column.expression}"
    key = "" if column.metadata == column.name else f" FROM {_text(column.metadata)}"
    return f"METADATA{key}{' VIRTUAL' if column.virtual else ''}"


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

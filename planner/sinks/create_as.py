"""CREATE TABLE ... AS: the columns that a table gets from its query, and the INSERT that fills it.

Names, types and order of the columns follow Flink (tests/flink/ddl.json). Columns that only the declaration has come
first, then the columns of the query. A declaration may change the type of a query's column, and a list of names the
order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hintplan.planner.context import Context, QueryEnvironment
from hintplan.planner.expressions.typed import NULL
from hintplan.planner.query.queries import build_query
from hintplan.planner.query.syntax_rewrites import parse_simplified_query
from hintplan.planner.sinks.insert import column_names, output_offsets
from hintplan.planner.statements.model import ColumnDeclaration, CreateTable, Insert
from hintplan.plans.text.names import did_you_mean


def filled_by(statement: CreateTable, declared: CreateTable | None) -> Insert:
    """Return the INSERT of ``statement``. ``declared`` is the new declaration, or None if the table existed before."""
    columns = () if declared is None else tuple(name for name, _ in declared.listed)
    return Insert(
        table=statement.name,
        offset=statement.offset,
        table_offset=statement.offset,
        columns=columns,
        columns_offset=statement.offset,
        query=statement.query,
    )


def with_query_columns(context: Context, statement: CreateTable) -> CreateTable:
    """Return the declaration with the columns of its query. ``listed`` has these columns, in the order of the query.

    Raise SqlError for a declaration that conflicts with the query.
    """
    source = context.source
    if statement.temporary:
        message = "CREATE TEMPORARY TABLE ... AS is not supported, as in Flink"
        raise source.error(message, statement.offset, "leave TEMPORARY out")
    query = parse_simplified_query(context, statement.query)
    with context.on_trial():
        relation = build_query(context, QueryEnvironment(block=statement.name), query)
    places = output_offsets(query, len(relation.fields))
    query_columns: dict[str, ColumnDeclaration] = {}
    for name, field, place in zip(column_names(context, relation, query), relation.fields, places, strict=True):
        if field.type == NULL:
            raise source.error(f"column '{name}' is NULL, which has no type", place, "write CAST(NULL AS STRING)")
        query_columns[name] = ColumnDeclaration(name=name, offset=place, type=field.type.as_nullable())
    listed = tuple((column.name, column.offset) for column in query_columns.values())
    declared = {column.name: column for column in statement.columns}
    for name, column in declared.items():
        if name in query_columns and not column.is_physical:
            message = f"the query has a column '{name}', which cannot be computed as well"
            raise source.error(message, column.offset, "rename one of them")
    ordered = _in_order(context, statement, query_columns) if statement.listed else query_columns
    columns = (
        *(c for c in statement.columns if c.name not in query_columns),
        *(declared.get(n, c) for n, c in ordered.items()),
    )
    return replace(statement, columns=columns, listed=listed)


def _in_order(
    context: Context, statement: CreateTable, columns: Mapping[str, ColumnDeclaration]
) -> dict[str, ColumnDeclaration]:
    """Return the columns of the query in the order in which the statement lists them."""
    for name, place in statement.listed:
        if name not in columns:
            advice = did_you_mean(name, columns, what="columns of the query")
            raise context.source.error(f"the query has no column '{name}'", place, advice)
    names = [name for name, _ in statement.listed]
    if statement.columns or sorted(names) != sorted(columns):
        _, place = statement.listed[0]
        advice = f"list {', '.join(columns)}, or write types to declare more columns"
        raise context.source.error("a list of names must be the columns of the query, each once", place, advice)
    return {name: columns[name] for name in names}

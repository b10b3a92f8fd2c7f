"""Tables and views as the script declares them, checked and ready to be read.

Owns the meaning of a declaration: names, types of computed columns, keys, watermarks, options. Its form was checked by
:mod:`planner.statements.ddl`.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.context import ComputedColumn, Context, TableEntry
from planner.query.queries import build_view
from planner.statements.model import CreateTable, CreateView, Drop
from planner.syntax.dialect import parse_expression
from planner.translation.expressions import declaration_translator
from planner.translation.scope import Input, Scope
from plans.connectors.check import check_table
from plans.declarations.tables import Table, TableColumn, Watermark
from plans.declarations.types import DataType
from plans.text.names import did_you_mean


def declare_table(context: Context, statement: CreateTable) -> bool:
    """Add a table to the catalog, False if IF NOT EXISTS kept it out; SqlError if its declaration makes no sense."""
    if _exists(context, statement):
        return False
    _check_columns(context, statement)
    declared = {c.name: c for c in statement.columns}
    for name in statement.primary_key:
        if name not in declared or declared[name].type is None:
            what = "is computed" if name in declared else "does not exist"
            raise context.source.error(
                f"primary key column '{name}' of table '{statement.name}' {what}",
                statement.offset,
                did_you_mean(name, (c.name for c in statement.columns if c.type), what="physical columns"),
            )
    physical = tuple(context.field(c.name, c.type) for c in statement.columns if c.type is not None)
    scope = Scope(inputs=(Input(name=statement.name, kind="table", fields=physical, offset=statement.offset),))
    translator = declaration_translator(context, scope, "a computed column")
    computed = tuple(
        ComputedColumn(
            name=c.name,
            expr=translator.expression(parse_expression(context.source, context.text, list(c.expression))),
        )
        for c in statement.columns
        if c.type is None
    )
    types = {c.name: c.expr.type for c in computed}
    columns = tuple(
        TableColumn(
            name=c.name,
            type=str(types[c.name] if c.type is None else c.type),
            expression=c.expression_text,
            comment=c.comment,
        )
        for c in statement.columns
    )
    watermark = None
    if statement.watermark:
        column, expression, offset = statement.watermark
        _check_watermark(context, column, {**types, **{f.name: f.type for f in physical}}, offset)
        watermark = Watermark(column=column, expression=expression)
    table = Table(
        columns=columns,
        primary_key=statement.primary_key,
        watermark=watermark,
        comment=statement.comment,
        options=statement.options,
    )
    for found in check_table(statement.name, table):
        raise context.source.error(f"table '{statement.name}': {found.message}", statement.offset, found.hint)
    context.catalog.tables[statement.name] = TableEntry(
        table=table,
        offset=statement.offset,
        temporary=statement.temporary,
        option_offsets=statement.option_offsets,
        physical=physical,
        computed=computed,
    )
    return True


def declare_view(context: Context, statement: CreateView) -> bool:
    """Add a view to the catalog, False if IF NOT EXISTS kept it out.

    Its query is compiled once here, so that its errors show even if nothing reads it.
    """
    if _exists(context, statement):
        return False
    with context.on_trial():
        build_view(context, statement)
    context.catalog.views[statement.name] = statement
    return True


def drop(context: Context, statement: Drop) -> bool:
    """Remove a table or view, False if IF EXISTS found none; SqlError if it is none, or of another kind.

    As in Flink, views that read it stay, and fail when they are used.
    """
    catalog, name = context.catalog, statement.name
    if statement.kind == "FUNCTION":
        return _drop_function(context, statement)
    kinds: dict[str, Mapping[str, TableEntry | CreateView]] = {"TABLE": catalog.tables, "VIEW": catalog.views}
    if name not in kinds[statement.kind]:
        other = next((kind for kind, found in kinds.items() if name in found), None)
        if other is not None:
            message, advice = f"'{name}' is a {other.lower()}", f"write DROP {other} {name}"
            raise context.source.error(message, statement.offset, advice)
        if statement.if_exists:
            return False
        advice = did_you_mean(name, tuple(kinds[statement.kind]), what="declared")
        raise context.source.error(f"there is no {statement.kind.lower()} '{name}'", statement.offset, advice)
    if kinds[statement.kind][name].temporary != statement.temporary:
        _refuse_kind(context, statement)
    if statement.kind == "TABLE":
        del catalog.tables[name]
    else:
        del catalog.views[name]
    catalog.cached.pop(name, None)
    return True


def _drop_function(context: Context, statement: Drop) -> bool:
    functions, name = context.catalog.functions, statement.name.lower()
    if name not in functions:
        if statement.if_exists:
            return False
        advice = did_you_mean(name, functions, what="declared functions")
        raise context.source.error(f"there is no function '{statement.name}'", statement.offset, advice)
    if functions[name].temporary != statement.temporary:
        _refuse_kind(context, statement)
    del functions[name]
    return True


def _refuse_kind(context: Context, statement: Drop) -> None:
    is_temporary = "not " * statement.temporary + "temporary"
    write = f"DROP {'' if statement.temporary else 'TEMPORARY '}{statement.kind} {statement.name}"
    raise context.source.error(f"'{statement.name}' is {is_temporary}", statement.offset, f"write {write}")


def _exists(context: Context, statement: CreateTable | CreateView) -> bool:
    if statement.name not in context.catalog.names():
        return False
    if statement.if_not_exists:
        return True
    raise context.source.error(
        f"'{statement.name}' is declared twice", statement.offset, "rename one of them, or DROP the first"
    )


def _check_columns(context: Context, statement: CreateTable) -> None:
    seen: dict[str, str] = {}
    for column in statement.columns:
        folded = column.name.lower()
        if folded in seen:
            same = (
                "twice" if seen[folded] == column.name else f"beside '{seen[folded]}', from which only its case differs"
            )
            raise context.source.error(
                f"column '{column.name}' is declared {same}", column.offset, "rename one of them"
            )
        seen[folded] = column.name
    if all(c.type is None for c in statement.columns):
        raise context.source.error(
            f"table '{statement.name}' has no physical column", statement.offset, "declare at least one with a type"
        )


def _check_watermark(context: Context, column: str, types: Mapping[str, DataType], offset: int) -> None:
    if column not in types:
        raise context.source.error(
            f"WATERMARK FOR unknown column '{column}'", offset, did_you_mean(column, types, what="columns")
        )
    found = types[column]
    if found.root not in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        raise context.source.error(
            f"WATERMARK needs a TIMESTAMP column, '{column}' is {found.as_nullable()}",
            offset,
            "use a TIMESTAMP(3) column",
        )

"""The tables and views of a script: checks their declarations and adds them to the catalog.

This module owns the meaning of a declaration: names, types of computed columns, keys, watermarks, options.
:mod:`hintplan.planner.statements.ddl` checks its syntax.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hintplan.planner.context import ComputedColumn, Context, TableEntry, Tried
from hintplan.planner.declarations.alter import altered
from hintplan.planner.declarations.like import derived
from hintplan.planner.expressions.typed import Call, Expr, Field, function_name, is_user_call, walk
from hintplan.planner.query.queries import build_view
from hintplan.planner.sinks.create_as import with_query_columns
from hintplan.planner.statements.model import AlterTable, AlterView, CreateTable, CreateView, Drop, Like
from hintplan.planner.syntax.dialect import parse_expression
from hintplan.planner.syntax.problems import FollowUp
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Input, Scope
from hintplan.plans.connectors.check import check_given, check_table
from hintplan.plans.connectors.table import CONNECTORS, connector_of
from hintplan.plans.declarations.tables import Table, TableColumn, Watermark
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import Diagnostic, SqlError
from hintplan.plans.text.names import did_you_mean


def declare_table(context: Context, statement: CreateTable) -> bool:
    """Add a table to the catalog. Return False if it exists and IF NOT EXISTS is set.

    Raise SqlError if the declaration is invalid.
    """
    if _exists(context, statement):
        return False
    if statement.like is not None:
        statement = derived(context.source, statement, statement.like, _base(context, statement.like))
    elif statement.query:
        statement = with_query_columns(context, statement)
    context.catalog.tables[statement.name] = _entry(context, statement)
    return True


def _base(context: Context, like: Like) -> CreateTable:
    """Return the declaration of the table in LIKE."""
    catalog = context.catalog
    if like.table in catalog.failed and like.table not in catalog.names():
        raise FollowUp
    if like.table in catalog.views:
        message, advice = f"'{like.table}' is a view, and LIKE takes tables", "write CREATE TABLE ... AS SELECT"
        raise context.source.error(message, like.offset, advice)
    entry = catalog.tables.get(like.table)
    if entry is None or entry.declaration is None:
        advice = did_you_mean(like.table, catalog.tables, what="declared")
        raise context.source.error(f"there is no table '{like.table}'", like.offset, advice)
    catalog.bases.add(like.table)
    return entry.declaration


def _entry(context: Context, statement: CreateTable) -> TableEntry:
    """Return the table that ``statement`` declares, with all its columns. Raise SqlError if the declaration is invalid.

    Option errors that do not affect the columns are recorded, not raised.
    """
    problems = context.source.problems
    since = problems.doubts
    if since != problems.before:  # a column could not be read
        known_options = Table(columns=(), options=_with_effect(context, statement))
        _checked_options(context, statement, known_options, check_given(statement.name, known_options))
        raise FollowUp
    with problems.whole():
        for check in (_check_columns, _check_key, _check_partitions):
            with problems.going_on():
                check(context, statement)
        table, fields, computed = _table(context, statement)
        diagnostics = (
            check_table(statement.name, table) if problems.doubts == since else check_given(statement.name, table)
        )
        unsure, missing = _checked_options(context, statement, table, diagnostics)
    return TableEntry(
        table=table,
        offset=statement.offset,
        temporary=statement.temporary,
        option_offsets=statement.option_offsets,
        fields=fields,
        computed=computed,
        declaration=statement,
        missing=missing,
        unsure=unsure,
    )


def _check_key(context: Context, statement: CreateTable) -> None:
    """Raise SqlError for a primary key column that is not physical, or that is listed twice."""
    declared = {c.name: c for c in statement.columns}
    for name in statement.primary_key:
        if name not in declared or not declared[name].is_physical:
            of_metadata = name in declared and declared[name].metadata is not None
            problem = "is a METADATA column" if of_metadata else "is computed" if name in declared else "does not exist"
            raise context.source.error(
                f"primary key column '{name}' of table '{statement.name}' {problem}",
                statement.key_offset,
                did_you_mean(name, (c.name for c in statement.columns if c.is_physical), what="physical columns"),
            )
        if statement.primary_key.count(name) > 1:
            message = f"primary key column '{name}' is listed twice"
            raise context.source.error(message, statement.key_offset, "list it once")


def _table(context: Context, statement: CreateTable) -> tuple[Table, tuple[Field, ...], tuple[ComputedColumn, ...]]:
    """Return the table in its plan form, its fields that a scan reads, and its computed columns."""
    fields = tuple(context.field(c.name, c.type) for c in statement.columns if c.type is not None)
    scope = Scope(inputs=(Input(name=statement.name, kind="table", fields=fields, offset=statement.offset),))
    translator = clause_translator(context, scope, "a computed column")
    computed = tuple(
        _computed(context, c.name, translator.expression(parsed))
        for c in statement.columns
        if c.type is None
        for parsed in (parse_expression(context.source, context.text, list(c.expression)),)
    )
    types = {c.name: c.expr.type for c in computed}
    columns = tuple(
        TableColumn(
            name=c.name,
            type=str(types[c.name] if c.type is None else c.type),
            expression=c.expression_text,
            metadata=c.metadata,
            virtual=c.virtual,
            comment=c.comment,
        )
        for c in statement.columns
    )
    watermark = None
    if statement.watermark:
        column, expression, offset = statement.watermark
        with context.source.problems.going_on():
            _check_watermark(context, column, {**types, **{f.name: f.type for f in fields}}, offset)
        watermark = Watermark(column=column, expression=expression)
    table = Table(
        columns=columns,
        primary_key=statement.primary_key,
        partitioned_by=statement.partitioned_by,
        watermark=watermark,
        comment=statement.comment,
        options=_with_effect(context, statement),
    )
    return table, fields, computed


def _with_effect(context: Context, statement: CreateTable) -> dict[str, str]:
    """Return the options without Flink's options that have no effect here. Report each of those with a note."""
    connector = CONNECTORS.get(statement.options.get("connector", ""))
    reasons = {} if connector is None else {key: connector.why_idle(key) for key in statement.options}
    idle = {key: reason for key, reason in reasons.items() if reason is not None}
    for key, reason in idle.items():
        place = statement.option_offsets.get(key, statement.offset)
        context.report.note_idle(f"'{key}' has no effect: {reason}", place)
    return {key: value for key, value in statement.options.items() if key not in idle}


def _check_partitions(context: Context, statement: CreateTable) -> None:
    """Raise SqlError for a partition column that is not physical, or that is listed twice."""
    physical = [column.name for column in statement.columns if column.is_physical]
    for name in statement.partitioned_by:
        if name not in physical:
            message = f"the partition column '{name}' is no physical column of table '{statement.name}'"
            advice = did_you_mean(name, physical, what="physical columns")
            raise context.source.error(message, statement.partitioned_offset, advice)
        if statement.partitioned_by.count(name) > 1:
            message = f"the partition column '{name}' is listed twice"
            raise context.source.error(message, statement.partitioned_offset, "list it once")


def _computed(context: Context, name: str, expr: Expr) -> ComputedColumn:
    """Return the computed column ``name``, with the current declarations of its functions."""
    called = {function_name(call) for call in walk(expr) if isinstance(call, Call) and is_user_call(call)}
    functions = {function: context.catalog.function(function) for function in sorted(called)}
    return ComputedColumn(name=name, expr=expr, functions=functions)


def _checked_options(
    context: Context, statement: CreateTable, table: Table, problems: Iterable[Diagnostic]
) -> tuple[bool, SqlError | None]:
    """Record the ``problems`` of options in the statement.

    Return True if there are any, and the error for missing options. Statements that use the table raise this error.
    """
    lacking: list[Diagnostic] = []
    unsure = False
    places = {c.name: c.offset for c in statement.columns}
    for problem in problems:
        column = (problem.path or "").removeprefix(f"tables.{statement.name}.columns.")
        of_partitions = (problem.path or "") == f"tables.{statement.name}.partitioned-by"
        place = statement.partitioned_offset if of_partitions else places.get(column, statement.offset)
        error = context.source.error(f"table '{statement.name}': {problem.message}", place, problem.hint)
        option = (problem.path or "").rpartition(f"tables.{statement.name}.options.")[2]
        # A connector's problem with the whole table has the path of the option 'connector'.
        if option in statement.option_offsets and (option != "connector" or connector_of(table) is None):
            place = statement.option_offsets[option]
            error = context.source.error(f"table '{statement.name}': {problem.message}", place, problem.hint)
        if option in table.options or of_partitions:
            unsure = True
            if not context.source.problems.has_one_at(error):  # LIKE copies wrong options
                context.source.problems.add_known(error)
        else:
            lacking += error.diagnostics
    return unsure, SqlError(diagnostics=tuple(lacking)) if lacking else None


def alter_table(context: Context, statement: AlterTable) -> bool:
    """Apply ALTER TABLE to a declaration. Return False if the table does not exist and IF EXISTS is set.

    Raise SqlError if the statement or the new declaration is invalid.
    """
    catalog, name = context.catalog, statement.name
    if name in catalog.views:
        raise context.source.error(f"'{name}' is a view", statement.offset, f"write ALTER VIEW {name} AS SELECT ...")
    entry = catalog.tables.get(name)
    if entry is None or entry.declaration is None:
        if statement.if_exists:
            return False
        advice = did_you_mean(name, catalog.tables, what="declared")
        raise context.source.error(f"there is no table '{name}'", statement.offset, advice)
    _check_permanent(context, "table", name, entry.temporary, statement.offset)
    new_declaration = altered(context.source, statement, entry.declaration)
    if statement.action == "RENAME":
        _check_free(context, new_declaration.name, statement.renamed_offset)
        del catalog.tables[name]
        catalog.cached.pop(name, None)
    catalog.tables[new_declaration.name] = _entry(context, new_declaration)
    return True


def alter_view(context: Context, statement: AlterView) -> None:
    """Change the query or the name of a view. Raise SqlError if the statement is invalid."""
    catalog, name = context.catalog, statement.name
    if name in catalog.tables:
        raise context.source.error(f"'{name}' is a table", statement.offset, f"write ALTER TABLE {name} ...")
    view = catalog.views.get(name)
    if view is None:
        advice = did_you_mean(name, catalog.views, what="declared")
        raise context.source.error(f"there is no view '{name}'", statement.offset, advice)
    _check_permanent(context, "view", name, view.temporary, statement.offset)
    if statement.renamed:
        _check_free(context, statement.renamed, statement.renamed_offset)
        del catalog.views[name]
        catalog.cached.pop(name, None)
        catalog.views[statement.renamed] = replace(view, name=statement.renamed)
    else:
        new_view = replace(view, query=statement.query, columns=(), offset=statement.offset)
        _try_view(context, new_view)
        catalog.views[name] = new_view


def _check_permanent(context: Context, what: str, name: str, temporary: bool, offset: int) -> None:
    """Raise SqlError for a temporary table or view, which Flink does not alter."""
    if temporary:
        advice = f"DROP TEMPORARY {what.upper()} {name}, then CREATE it again"
        raise context.source.error(f"'{name}' is a temporary {what}, which cannot be altered", offset, advice)


def _check_free(context: Context, name: str, offset: int) -> None:
    if name in context.catalog.names():
        raise context.source.error(f"'{name}' is declared already", offset, "choose another name")


def declare_view(context: Context, statement: CreateView) -> bool:
    """Add a view to the catalog. Return False if it exists and IF NOT EXISTS is set.

    Compile the query once, so that its errors appear even if nothing reads the view.
    """
    if statement.name in context.catalog.views and statement.replace:
        if context.catalog.views[statement.name].temporary != statement.temporary:
            _refuse_kind(context, "VIEW", statement.name, statement.offset, temporary=statement.temporary)
    elif _exists(context, statement):
        return False
    _try_view(context, statement)
    context.catalog.views[statement.name] = statement
    return True


def _try_view(context: Context, view: CreateView) -> None:
    """Compile the query of a view. Raise SqlError for an error in it, or for a reference to the view itself."""
    before = context.catalog.views.pop(view.name, None)
    context.taken = set()
    try:
        with context.on_trial():
            dynamic = dict(context.dynamic)
            relation = build_view(context, view)
            if context.dynamic == dynamic:
                within = frozenset((view.name, *context.taken))
                unsure = context.source.problems.unsure
                context.tried[view.name] = Tried(view=view, relation=relation, within=within, unsure=unsure)
    finally:
        context.taken = None
        if before is not None:
            context.catalog.views[view.name] = before
    times = Counter(field.name for field in relation.fields)
    twice = next((name for name, number in times.items() if name and number > 1), None)
    if twice is not None:
        message = f"view '{view.name}' has two columns '{twice}'"
        raise context.source.error(message, view.offset, "write AS another_name, or list the columns of the view")


def drop(context: Context, statement: Drop) -> bool:
    """Remove a table, view or function. Return False if it does not exist and IF EXISTS is set.

    Raise SqlError if it does not exist, or is of another kind. As in Flink, views that read it remain, and fail when
    they are used.
    """
    catalog, name = context.catalog, statement.name
    if statement.kind == "FUNCTION":
        return _drop_function(context, statement)
    kinds: dict[str, Mapping[str, TableEntry | CreateView]] = {"TABLE": catalog.tables, "VIEW": catalog.views}
    if name not in kinds[statement.kind]:
        other = next((kind for kind, declared in kinds.items() if name in declared), None)
        if other is not None:
            message, advice = f"'{name}' is a {other.lower()}", f"write DROP {other} {name}"
            raise context.source.error(message, statement.offset, advice)
        if statement.if_exists:
            return False
        advice = did_you_mean(name, tuple(kinds[statement.kind]), what="declared")
        raise context.source.error(f"there is no {statement.kind.lower()} '{name}'", statement.offset, advice)
    if kinds[statement.kind][name].temporary != statement.temporary:
        _refuse_kind(context, statement.kind, statement.name, statement.offset, temporary=statement.temporary)
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
        _refuse_kind(context, statement.kind, statement.name, statement.offset, temporary=statement.temporary)
    del functions[name]
    return True


def _refuse_kind(context: Context, kind: str, name: str, offset: int, *, temporary: bool) -> None:
    is_temporary = "not " * temporary + "temporary"
    write = f"DROP {'' if temporary else 'TEMPORARY '}{kind} {name}"
    raise context.source.error(f"'{name}' is {is_temporary}", offset, f"write {write}")


def give_table(context: Context, name: str, table: Table) -> None:
    """Add a ``table`` that no statement declares. A statement may still declare the name, and replaces the table."""
    fields = tuple(context.field(column.name, parse_type(column.type)) for column in table.columns)
    context.catalog.given.add(name)
    context.catalog.tables[name] = TableEntry(
        table=table, offset=0, temporary=False, option_offsets={}, fields=fields, computed=()
    )


def _exists(context: Context, statement: CreateTable | CreateView) -> bool:
    if statement.name in context.catalog.given:
        context.catalog.given.discard(statement.name)
        del context.catalog.tables[statement.name]
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
            same = "twice" if seen[folded] == column.name else f"next to '{seen[folded]}', which differs only in case"
            raise context.source.error(
                f"column '{column.name}' is declared {same}", column.offset, "rename one of them"
            )
        seen[folded] = column.name
    if not any(c.is_physical for c in statement.columns):
        raise context.source.error(
            f"table '{statement.name}' has no physical column", statement.offset, "declare at least one with a type"
        )


def _check_watermark(context: Context, column: str, types: Mapping[str, DataType], offset: int) -> None:
    if column not in types:
        raise context.source.error(
            f"WATERMARK FOR unknown column '{column}'", offset, did_you_mean(column, types, what="columns")
        )
    data_type = types[column]
    if data_type.root not in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        raise context.source.error(
            f"WATERMARK needs a TIMESTAMP column, '{column}' is {data_type.as_nullable()}",
            offset,
            "use a TIMESTAMP(3) column",
        )

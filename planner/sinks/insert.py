"""INSERT INTO: fits the columns of a query to the sink, and its changes to the row kinds that the sink accepts.

Columns match by position. If rows share a key of the sink, a state keeps them all, unless the configuration disables
this. Batch mode refuses a query that would leave wrong rows in the sink.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from sqlglot import exp

from hintplan.planner.context import Context, QueryEnvironment, TableEntry
from hintplan.planner.expressions.typed import (
    BOOLEAN,
    NULL,
    Field,
    FieldRef,
    Literal,
    call,
    conjunction,
    is_deterministic,
)
from hintplan.planner.passes import optimise
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.query.queries import build_query
from hintplan.planner.query.sources.scans import (
    check_name,
    dynamic_table,
    warn_of_idle_cache,
    warn_of_idle_watermark,
)
from hintplan.planner.query.syntax_rewrites import parse_simplified_query
from hintplan.planner.relations import (
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalCorrelate,
    LogicalJoin,
    LogicalRowNumber,
    LogicalScan,
    LogicalWatermark,
    Relation,
    identity,
    inputs_of,
)
from hintplan.planner.sinks.columns import constants, convert_to_sink_column
from hintplan.planner.sinks.keys import check_key_in_batch, materialized_by
from hintplan.planner.statements.model import Insert, Select
from hintplan.planner.syntax.dialect import cells_of, is_values, offset_of
from hintplan.planner.syntax.problems import FollowUp
from hintplan.plans.analysis.changelog import refused_kinds
from hintplan.plans.connectors.check import check_written
from hintplan.plans.connectors.connector import IN_BATCHES
from hintplan.plans.connectors.suggestions import suggested_sinks, suggested_sources, updates_hint
from hintplan.plans.connectors.table import (
    bounding_option,
    can_lookup,
    can_read,
    can_write,
    check_reading,
    dropping_options,
    is_bounded,
    is_read_in_streams,
    sink_kinds,
)
from hintplan.plans.declarations.built_in import DRAWN
from hintplan.plans.declarations.row_kinds import ALL_KINDS
from hintplan.plans.declarations.tables import Table, TableColumn, required_columns, written_columns
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.model.config import NOT_NULL_ENFORCER
from hintplan.plans.operators.sink import overwrite_problem
from hintplan.plans.text.names import did_you_mean


def build_insert(context: Context, statement: Insert) -> tuple[str, Relation, tuple[str, ...]]:
    """Return the sink's table, and the optimised relation that feeds it, with the written columns in order.

    The third value has the columns of the sink's primary key if a state must keep all rows by it.
    """
    problems = context.source.problems
    sink = None
    with problems.going_on():
        sink = _sink(context, statement)
    with problems.whole():
        query = parse_simplified_query(context, statement.query)
        relation = build_query(context, QueryEnvironment(block=statement.table), query)
    if sink is None:
        raise FollowUp
    table, entry = sink
    constant = constants(context, statement, entry)
    targets = _targets(context, statement, entry)
    if len(targets) != len(relation.fields):
        listed = " listed" if statement.columns else ""
        raise context.source.error(
            f"the query has {len(relation.fields)} columns, sink '{statement.table}' has {len(targets)}{listed}",
            offset_of(query),
            f"select, in this order: {', '.join(t.name for t in targets)}",
        )
    places = output_offsets(query, len(targets))
    values = dict(constant)
    for t, f, place in zip(targets, relation.fields, places, strict=True):
        with problems.going_on():
            values[t.name] = convert_to_sink_column(context, statement, t, f, place)
    if problems.unsure or problems.never_sure:
        raise FollowUp
    items = tuple(
        Item(
            field=context.field(f.name, f.type),
            expr=values.get(f.name) or Literal(text=None, type=f.type.as_nullable()),
        )
        for f in entry.written
    )
    written = LogicalCalc(input=relation, filter=None, items=items, base=relation.base, block=statement.table)
    relation = optimise(context, _without_nulls(context, statement, entry, written))
    _check_scans(context, relation)
    if statement.overwrites is not None:
        problem = overwrite_problem(statement.table, entry.table, "batch" if context.batch else "streaming")
        if problem is not None:
            raise context.source.error(problem[0], statement.overwrites, problem[1])
    if context.batch:
        check_key_in_batch(context, statement, entry, relation)
        return table, relation, ()
    _check_repeatable(context, relation, statement)
    _check_changes(context, statement, entry, relation)
    return table, relation, materialized_by(context, statement, entry, relation)


def result_table(context: Context, statement: Select) -> tuple[str, TableEntry]:
    """Return a sink for the result of a query, under an unused name, with a unique name for each column.

    As in Flink, a column without a name is called EXPR$n, and a duplicate name gets a number.
    """
    query = parse_simplified_query(context, statement.query)
    with context.on_trial():
        relation = build_query(context, QueryEnvironment(block="query"), query)
    names = column_names(context, relation, query)
    types = ["STRING" if f.type == NULL else str(f.type) for f in relation.fields]
    columns = tuple(TableColumn(name=n, type=t) for n, t in zip(names, types, strict=True))
    # The sink accepts every change and writes nothing. The run returns the rows to its caller.
    table = Table(columns=columns, options=dropping_options())
    fields = tuple(context.field(c.name, parse_type(c.type)) for c in columns)
    free = (f"query_result{n or ''}" for n in itertools.count())
    name = next(n for n in free if n not in context.catalog.names())
    return name, TableEntry(
        table=table, offset=statement.offset, temporary=True, option_offsets={}, fields=fields, computed=()
    )


def column_names(context: Context, relation: Relation, query: exp.Query) -> list[str]:
    """Return a unique name for each column of a query.

    A column without a name is called EXPR$n, and a duplicate name gets a number.
    """
    names: list[str] = []
    taken: set[str] = set()
    next_number: Counter[str] = Counter()
    for number, field in enumerate(relation.fields):
        stem = field.name or f"EXPR${number}"
        if stem.startswith("__"):
            advice = "write AS another_name"
            place = output_offsets(query, len(relation.fields))[number]
            raise context.source.error(f"column names that start with '__' are reserved: '{stem}'", place, advice)
        name = stem
        while name.lower() in taken:
            name = f"{stem}{next_number[stem.lower()]}"
            next_number[stem.lower()] += 1
        taken.add(name.lower())
        names.append(name)
    return names


def _sink(context: Context, statement: Insert) -> tuple[str, TableEntry]:
    name, source = statement.table, context.source
    if name in context.catalog.views:
        raise source.error(
            f"'{name}' is a view and cannot be written to", statement.table_offset, "insert into a table"
        )
    entry = context.catalog.tables.get(name)
    if entry is None and name in context.catalog.failed:
        raise FollowUp
    if entry is None:
        sinks = tuple(name for name, each in context.catalog.tables.items() if can_write(each.table))
        advice = did_you_mean(name, sinks, what="tables that can be written") if sinks else "declare it: CREATE TABLE"
        raise source.error(f"unknown sink table '{name}'", statement.table_offset, advice)
    check_name(context, name, statement.table_offset)
    hint = None if statement.hinted is None else context.ledger.hints.after_name.get(statement.hinted)
    if hint is not None and statement.hinted is not None:
        context.ledger.at_tables.add(statement.hinted)
        warn_of_idle_cache(context, hint, f"'{name}' is written here")
    called, entry = dynamic_table(context, name, entry, hint, written=True)
    if entry.unsure:
        return called, entry
    if not can_write(entry.table):
        raise source.error(
            f"connector '{entry.table.options.get('connector')}' of table '{name}' cannot be written to",
            statement.table_offset,
            f"insert into a table whose connector writes, such as {suggested_sinks()}",
        )
    for problem in check_written(name, entry.table):
        raise source.error(f"table '{name}': {problem.message}", statement.table_offset, problem.hint or "")
    return called, entry


def _without_nulls(context: Context, statement: Insert, entry: TableEntry, written: LogicalCalc) -> Relation:
    """Return ``written`` without rows that have NULL where the sink is NOT NULL, if the session drops such rows."""
    if context.compiler.get(NOT_NULL_ENFORCER, "ERROR") == "ERROR":
        return written
    required = required_columns(written_columns(entry.table), entry.table.primary_key)
    fields = [field for field in written.fields if field.name in required]
    checks = tuple(call("IS NOT NULL", (FieldRef(field=field),), BOOLEAN, statement.offset) for field in fields)
    if not checks:
        return written
    items = identity(written.fields)
    return LogicalCalc(input=written, filter=conjunction(checks), items=items, base=written.base, block=statement.table)


def _targets(context: Context, statement: Insert, entry: TableEntry) -> tuple[Field, ...]:
    constant = {value.column for value in statement.partition}
    if not statement.columns:
        return tuple(f for f in entry.written if f.name not in constant)
    by_name = {f.name: f for f in entry.written if f.name not in constant}
    times = Counter(statement.columns)
    for name in statement.columns:
        if name not in by_name:
            raise context.source.error(
                f"sink '{statement.table}' has no physical column '{name}'",
                statement.columns_offset,
                did_you_mean(name, by_name, what="columns"),
            )
        if times[name] > 1:
            raise context.source.error(f"column '{name}' is listed twice", statement.columns_offset, "list it once")
    declared = {c.name: c.type for c in entry.table.columns}
    for name in by_name:
        if name not in statement.columns and declared[name].endswith("NOT NULL"):
            raise context.source.error(
                f"column '{name}' of sink '{statement.table}' is NOT NULL and gets no value",
                statement.columns_offset,
                "list it and select a value for it",
            )
    return tuple(by_name[n] for n in statement.columns)


def output_offsets(query: exp.Query, width: int) -> list[int]:
    """Return the offset of each output column, or the offset of the first SELECT if it does not list all columns."""
    first: exp.Expr = query
    while not isinstance(first, exp.Select):
        first = first.this
    listed = cells_of(first.expressions[0]) if is_values(first) else first.expressions
    if len(listed) == width:
        return [offset_of(e) for e in listed]
    return [offset_of(first)] * width


def _check_scans(context: Context, relation: Relation, *, marked: bool = False) -> None:
    """Raise SqlError for a scan of a table that this job cannot scan."""
    if isinstance(relation, LogicalScan):
        table = context.table(relation.table).table
        if not can_read(table):
            lookup = f"look it up: JOIN {relation.declared} FOR SYSTEM_TIME AS OF ...; or " if can_lookup(table) else ""
            connector = table.options.get("connector", "")
            raise context.source.error(
                f"table '{relation.declared}' cannot be read: its connector is '{connector}'",
                relation.offset,
                f"{lookup}use a connector that reads, such as {suggested_sources()}",
            )
        for problem in check_reading(relation.declared, table):
            raise context.source.error(problem.message, relation.offset, problem.hint or "")
        if not context.batch and not is_read_in_streams(table):
            raise context.source.error(
                f"table '{relation.declared}' is read by batch jobs only", relation.offset, IN_BATCHES
            )
        if context.batch and not is_bounded(table):
            raise context.source.error(
                f"table '{relation.declared}' never ends, and a batch job would not either",
                relation.offset,
                f"add '{bounding_option(table)}' to its WITH (...)",
            )
        if relation.options is not None:
            warn_of_idle_cache(context, relation.options, f"'{relation.declared}' is read here")
            if not marked:
                warn_of_idle_watermark(context, relation.options)
    for below in inputs_of(relation):
        is_marked = isinstance(relation, LogicalWatermark) or (marked and isinstance(relation, LogicalCalc))
        _check_scans(context, below, marked=is_marked)


_AT_SOURCE = (
    "all rows change in their source: let the source write a time into them, compute expressions of the current time "
    "in the readers of the sink, or in a batch job"
)


def _check_repeatable(context: Context, relation: Relation, statement: Insert) -> None:
    """Refuse expressions whose value differs between the addition of a row and its retraction."""
    if isinstance(relation, LogicalCalc) and not is_insert_only(relation.input):
        expressions = (*(i.expr for i in relation.items), *([relation.filter] if relation.filter is not None else []))
        bad = next((e for e in expressions if not is_deterministic(e)), None)
        if bad is not None:
            raise context.source.error(
                "the current time over a query whose rows can change: a row could not be taken back as it was written",
                getattr(bad, "offset", 0) or statement.offset,
                _earlier(relation.input),
            )
    if isinstance(relation, LogicalCorrelate) and relation.function in DRAWN and not is_insert_only(relation.input):
        raise context.source.error(
            f"{relation.function.removesuffix('_SEEDED')} over a query whose rows can change: a row could not be taken "
            "back as it was written",
            relation.offset or statement.offset,
            _earlier(relation.input),
        )
    for below in inputs_of(relation):
        _check_repeatable(context, below, statement)


def _earlier(relation: Relation) -> str:
    """Return where below ``relation`` the current time can be computed: in tables whose rows are only added."""
    added = sorted(set(_only_added(relation)))
    if not added:
        return _AT_SOURCE
    return f"compute it before rows change, such as in a computed column of {' or '.join(added)}, and compare with it"


def _only_added(relation: Relation) -> Iterator[str]:
    if isinstance(relation, LogicalScan) and not relation.changelog:
        yield f"'{relation.declared}'"
    for below in inputs_of(relation):
        yield from _only_added(below)


def _check_changes(context: Context, statement: Insert, entry: TableEntry, relation: Relation) -> None:
    if is_insert_only(relation):
        return
    table = entry.table
    if refused_kinds(ALL_KINDS, sink_kinds(table)):
        cause, offset = _first_updating(relation)
        place = f" at {context.source.where(offset)}" if offset else ""
        raise context.source.error(
            f"sink '{statement.table}' ({table.options.get('connector')}) takes inserts only, but {cause}{place} "
            "updates and deletes rows it has written",
            statement.table_offset,
            updates_hint(table),
        )


def _first_updating(relation: Relation) -> tuple[str, int]:
    """Return the topmost operator that turns an append-only input into changes, and its offset."""
    match relation:
        case LogicalAggregate() if relation.calls:
            return "the aggregation", relation.offset
        case LogicalAggregate() if is_insert_only(relation.input):
            return "the removal of duplicates", relation.offset
        case LogicalJoin() if relation.join_type not in ("inner", "semi"):
            return f"the {relation.join_type} join", relation.offset
        case LogicalRowNumber() if is_insert_only(relation.input):
            return "the choice of first rows (ROW_NUMBER or LIMIT)", 0
        case LogicalScan():
            return f"the changelog of '{relation.declared}'", relation.offset
        case _:
            return _first_updating(next(i for i in inputs_of(relation) if not is_insert_only(i)))

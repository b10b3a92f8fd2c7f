"""Scans of tables: the columns of the connector, with computed columns in a calc above."""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.context import Context, QueryEnvironment, TableEntry
from hintplan.planner.expressions.typed import Expr, Field, FieldRef, substitute
from hintplan.planner.query.sources.dynamic import dynamic_table
from hintplan.planner.relations import Item, LogicalCalc, LogicalScan, Relation
from hintplan.planner.syntax.dialect import offset_of
from hintplan.plans.connectors.table import is_upsert_source, source_kinds
from hintplan.plans.declarations.built_in import built_in
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.declarations.tables import Table
from hintplan.plans.model.config import EVENTS_DUPLICATE


def scan_table(
    context: Context, environment: QueryEnvironment, node: exp.Table, entry: TableEntry, base: tuple[str, ...]
) -> Relation:
    """Return a scan of the table that ``node`` names, with all its declared columns."""
    place = offset_of(node.this)
    options = context.ledger.hints.after_name.get(place)
    context.ledger.at_tables.add(place)
    name, entry = dynamic_table(context, node.name, entry, options)
    fields = {f.id: context.field(f.name, f.type) for f in entry.fields}
    unsure = context.source.problems.unsure
    relation = LogicalScan(
        table=name,
        declared=node.name,
        fields=tuple(fields.values()),
        options=options,
        changelog=not unsure and source_kinds(entry.table) != INSERT_ONLY,
        normalized=() if unsure else _normalized(context, node.name, entry.table, place),
        readings=environment.readings,
        offset=place,
        base=base,
        block=environment.block,
    )
    if relation.changelog and context.batch:
        raise context.source.error(
            f"'{node.name}' is a changelog, which batch mode cannot read: rows have no order there",
            place,
            "run the job in streaming mode, with --once",
        )
    return _with_computed(context, entry, relation, fields) if entry.computed else relation


def _with_computed(context: Context, entry: TableEntry, scan: LogicalScan, fields: dict[int, Field]) -> LogicalCalc:
    """Return the declared columns, computed ones included; ``fields`` are the scan's fields by declared id."""
    for column in entry.computed:
        for name, function in column.functions.items():
            if built_in(name) is None and context.catalog.functions.get(name) is not function:
                message = f"column '{column.name}' of '{scan.declared}' calls '{name}', which was dropped since"
                raise context.source.error(message, scan.offset, "declare the table anew, below the function")
    values: dict[int, Expr] = {old: FieldRef(field=new) for old, new in fields.items()}
    read = {f.name: Item(field=f, expr=FieldRef(field=f)) for f in fields.values()}
    computed = {
        c.name: Item(field=context.field(c.name, c.expr.type), expr=substitute(c.expr, values)) for c in entry.computed
    }
    items = tuple({**read, **computed}[c.name] for c in entry.table.columns)
    return LogicalCalc(input=scan, filter=None, items=items, base=scan.base, block=scan.block)


def _normalized(context: Context, name: str, table: Table, place: int) -> tuple[str, ...]:
    """Return the columns by which rows of a source replace each other, if it emits upserts or may repeat changes."""
    if is_upsert_source(table):
        return table.primary_key
    if context.compiler.get(EVENTS_DUPLICATE) != "true" or source_kinds(table) == INSERT_ONLY:
        return ()
    if not table.primary_key:
        raise context.source.error(
            f"'{EVENTS_DUPLICATE}' is true, but the changelog '{name}' has no primary key to tell repeated changes by",
            place,
            "declare PRIMARY KEY (...) NOT ENFORCED",
        )
    return table.primary_key

"""Scans of tables: the columns of the connector, with computed columns in a calc above.

Tables whose WITH options are overridden by an OPTIONS hint, for one reference (FLIP-113).

In the plan, such a table is separate from the declared table. It keeps the declared name if the job uses the table with
these options only; otherwise it gets a name such as ``orders_hinted``. Options for the cache of a lookup belong to the
lookup, and do not create another table.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from hintplan.planner.context import Context, DynamicTable, QueryEnvironment, TableEntry
from hintplan.planner.expressions.typed import INT, Expr, Field, FieldRef, literal, substitute
from hintplan.planner.hints.lookup import OPTIONS, LookupHint, watermark_options
from hintplan.planner.relations import Item, LogicalCalc, LogicalScan, LogicalValues, Relation
from hintplan.planner.syntax.dialect import offset_of
from hintplan.plans.connectors.check import check_given, check_table
from hintplan.plans.connectors.connector import LookedUp
from hintplan.plans.connectors.table import connector_of, is_upsert_source, source_kinds
from hintplan.plans.declarations.built_in import built_in
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.declarations.tables import Table
from hintplan.plans.model.config import DYNAMIC_OPTIONS, EVENTS_DUPLICATE


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
                raise context.source.error(message, scan.offset, "declare the table again, below the function")
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


def dynamic_table(
    context: Context, name: str, entry: TableEntry, hint: LookupHint | None, *, written: bool = False
) -> tuple[str, TableEntry]:
    """Return the provisional plan name of table ``name``, and the table with the options of ``hint``.

    Raises SqlError for an option that the connector does not accept in WITH, and for a missing option. A switch in the
    configuration can forbid OPTIONS for tables that are read, as in Flink, but not for tables that are ``written``.
    """
    source = context.source
    source.problems.unsure |= entry.unsure
    if hint is None or entry.unsure:
        if entry.missing is not None:
            source.problems.add_known(entry.missing)
        return name, entry
    if not written and context.compiler.get(DYNAMIC_OPTIONS) == "false":
        message = f"OPTIONS is switched off: '{DYNAMIC_OPTIONS}' is false"
        raise source.error(message, hint.offset, "remove the hint, or SET it to 'true'")
    for loser, winner in hint.overridden.items():
        context.ledger.losers[loser] = ("overridden", f"at {source.where(winner)}")
    table = entry.table
    heeded = [option for option in hint.options if option.offset not in hint.overridden]
    for option in heeded:
        if option.key == "connector" and option.value != table.options.get("connector"):
            message = f"OPTIONS cannot change the connector of table '{name}'"
            raise source.error(message, option.offset, "declare another table, such as with CREATE TABLE ... LIKE")
    places = {option.key: option.offset for option in heeded}
    spec = connector_of(table)
    # The lookup checks cache options for contradictions, because only it has all layers.
    caching = {key for _, key in hint.places} if isinstance(spec, LookedUp) else set()
    # The watermark of this reference takes its options as settings of a hint.
    if not written and table.watermark is not None:
        caching |= {option.key for option in watermark_options(hint).values()}
    own = {option.key: option.value for option in heeded if option.key not in caching}
    options = {**table.options, **own}
    # An error may suggest an option that is set in WITH, but never one that the hint sets itself.
    alone = replace(table, options={"connector": table.options.get("connector", ""), **own})
    for problem in (*check_given(name, alone), *check_table(name, replace(table, options=options))):
        key = (problem.path or "").rpartition(f"tables.{name}.options.")[2]
        raise source.error(f"table '{name}': {problem.message}", places.get(key, hint.offset), problem.hint)
    if options == table.options:
        for key in own:
            context.ledger.applied(places[key], f"tables.{name}.options.{key}")
        return name, entry
    return _named(context, name, entry, options, {key: places[key] for key in own})


def _named(
    context: Context, name: str, entry: TableEntry, options: Mapping[str, str], places: Mapping[str, int]
) -> tuple[str, TableEntry]:
    """Return the table with ``options``, under the name of its first reference, or under a free name."""
    tables = context.dynamic
    if entry.missing is not None:
        context.catalog.bases.add(name)
    for plan_name, dynamic in tables.items():
        if dynamic.declared is entry and dynamic.entry.table.options == options:
            tables[plan_name] = replace(dynamic, places=dynamic.places | frozenset(places.items()))
            return plan_name, dynamic.entry
    names = (f"{name}_hinted{'' if n == 1 else f'_{n}'}" for n in itertools.count(1))
    free = next(n for n in names if n not in context.catalog.names() and n not in tables)
    table = replace(entry.table, options=options)
    hinted = replace(entry, table=table, option_offsets={**entry.option_offsets, **places}, missing=None)
    tables[free] = DynamicTable(name=name, declared=entry, entry=hinted, places=frozenset(places.items()))
    return free, hinted


def warn_of_idle_cache(context: Context, hint: LookupHint, reason: str) -> None:
    """Warn that lookup cache options have no effect in the hint of a table that is not looked up."""
    for (_, key), offset in hint.places.items():
        context.ledger.losers.setdefault(offset, ("refused", reason))
        message = f"OPTIONS option '{key}' has no effect: only a table that is looked up has a cache, and {reason}"
        context.report.warn_of_hint(message, offset, "remove it")


def warn_of_idle_watermark(context: Context, hint: LookupHint) -> None:
    """Warn of options for the watermark in the hint of a table that have no effect, where nothing goes by time."""
    reason = "no window reads this table"
    for option in watermark_options(hint).values():
        context.ledger.losers.setdefault(option.offset, ("refused", reason))
        message = f"OPTIONS option '{option.key}' has no effect: {reason}"
        context.report.warn_of_hint(message, option.offset, "remove it")


def check_name(context: Context, name: str, offset: int) -> None:
    """Raise SqlError if a table is declared under a name that the job already uses for a hinted table."""
    dynamic = context.dynamic.get(name)
    if dynamic is not None:
        message = f"'{name}' is what the plan calls '{dynamic.name}' with the options of a hint"
        raise context.source.error(message, offset, f"declare '{name}' above the first {OPTIONS} hint, or rename it")


def final_names(context: Context, used: set[str]) -> dict[str, str]:
    """Return the final plan names of the hinted tables in ``used``: the declared name if no other table needs it."""
    hinted = {plan_name: table for plan_name, table in context.dynamic.items() if plan_name in used}
    names = [table.name for table in hinted.values()]
    return {
        plan_name: table.name if names.count(table.name) == 1 and table.name not in used else plan_name
        for plan_name, table in hinted.items()
    }


def single_row(context: Context, block: str) -> LogicalValues:
    """Return the row for a SELECT without FROM, or an UNNEST at the beginning of FROM.

    Its only column has no name that a query can use.
    """
    field = context.field("ZERO", INT)
    return LogicalValues(fields=(field,), rows=((literal(0, INT),),), base=(block,), block=block)

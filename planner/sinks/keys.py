"""Queries whose upsert key differs from the primary key of their sink: a state keeps all rows, or some rows get lost.

In a stream, ``table.exec.sink.upsert-materialize`` decides, as in Flink. AUTO keeps all rows unless the sink's key is
known to identify a row of the query; FORCE always keeps them, and NONE never. ``ON CONFLICT DO DEDUPLICATE`` selects
AUTO for one statement. Batch mode keeps no state.
"""

from __future__ import annotations

from typing import assert_never

from hintplan.planner.context import Context, TableEntry
from hintplan.planner.properties.unique_keys import is_insert_only, unique_keys
from hintplan.planner.relations import (
    LogicalAggregate,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalPassthrough,
    LogicalScan,
    LogicalUnion,
    LogicalUnnest,
    LogicalValues,
    LogicalWindowAggregate,
    Relation,
)
from hintplan.planner.statements.model import Insert
from hintplan.plans.connectors.table import is_upsert_sink
from hintplan.plans.model.config import UPSERT_MATERIALIZE


def materialized_by(context: Context, statement: Insert, entry: TableEntry, relation: Relation) -> tuple[str, ...]:
    """Return the sink's primary key if a state must keep all rows by it, else nothing.

    A note or a warning states the reason.
    """
    table, key = entry.table, ", ".join(entry.table.primary_key)
    if not is_upsert_sink(table):
        if statement.conflict_offset is not None:
            message = f"ON CONFLICT has no meaning for sink '{statement.table}', which does not replace rows by a key"
            raise context.source.error(message, statement.conflict_offset, "remove it")
        return ()
    mode = context.compiler.get(UPSERT_MATERIALIZE, "AUTO")
    if mode == "FORCE":
        return table.primary_key
    if is_insert_only(relation) or _fits_key(context, entry, relation):
        return ()
    shown = _shown_keys(context, relation)
    known = f"identified by ({'), or by ('.join(shown)})" if shown else "not known to be identified by it"
    if mode == "NONE" and statement.conflict_offset is None:
        context.report.warn(
            f"sink '{statement.table}' is written by its primary key ({key}), but rows of this query are {known}: rows "
            "that share it overwrite each other, and deleting one deletes it for all",
            statement.table_offset,
            f"set '{UPSERT_MATERIALIZE}' = 'AUTO' to keep them all, and the latest in the sink",
        )
        return ()
    if statement.conflict_offset is None:
        context.report.note(
            f"sink '{statement.table}' is written by its primary key ({key}), but rows of this query are {known}: all "
            "are kept in state, and the latest of each key is in the sink",
            statement.table_offset,
            "aggregate by the sink's key, or declare the keys of the tables, to do without that state",
        )
    return table.primary_key


def check_key_in_batch(context: Context, statement: Insert, entry: TableEntry, relation: Relation) -> None:
    """Refuse rows that share a key of the sink, or warn of them: it is unknown which of them remains."""
    if statement.conflict_offset is not None:
        message = "ON CONFLICT has no meaning in batch mode, which keeps no state"
        raise context.source.error(message, statement.conflict_offset, "aggregate by the sink's key")
    if not is_upsert_sink(entry.table) or _fits_key(context, entry, relation):
        return
    key, shown = ", ".join(entry.table.primary_key), _shown_keys(context, relation)
    unknown = f"it is unknown whether ({key}), the primary key of sink '{statement.table}', identifies a row of this"
    if is_insert_only(relation):
        context.report.warn(
            f"{unknown} query: of rows with the same key, an arbitrary one stays",
            statement.table_offset,
            "declare the PRIMARY KEY of the table that is read, or aggregate by the sink's key",
        )
    elif not shown and _ends_in_join(relation):
        context.report.warn(
            f"{unknown} join: rows that share it overwrite each other, and deleting one deletes it for all",
            statement.table_offset,
            "declare the PRIMARY KEYs of the joined tables, or aggregate by the sink's key",
        )
    else:
        ways = "), or by (".join(shown)
        detail = f"its rows are identified by ({ways})" if shown else "it does not select a key of its rows"
        raise context.source.error(
            f"this query does not fit the primary key ({key}) of sink '{statement.table}': {detail}; several rows "
            "would share one row of the sink, and deleting one would delete it for all",
            statement.table_offset,
            "group by the sink's primary key, or declare the sink with the query's key",
        )


def _ends_in_join(relation: Relation) -> bool:
    """Return True if the rows come from a join, a lookup or a call, below filters, projections and sorts."""
    match relation:
        case LogicalCalc() | LogicalPassthrough():
            return _ends_in_join(relation.input)
        case LogicalJoin() | LogicalLookupJoin() | LogicalCorrelate() | LogicalUnnest():
            return True
        case LogicalScan() | LogicalValues() | LogicalExpand() | LogicalUnion():
            return False
        case LogicalAggregate() | LogicalWindowAggregate():
            return False
        case _:
            assert_never(relation)


def _fits_key(context: Context, entry: TableEntry, relation: Relation) -> bool:
    """Return True if the sink's primary key identifies a row of the query."""
    names = {f.id: f.name for f in relation.fields}
    keys = unique_keys(relation, context.plan_tables())
    return any({names[i] for i in key} <= set(entry.table.primary_key) for key in keys)


def _shown_keys(context: Context, relation: Relation) -> list[str]:
    """Return the keys of the query's rows as texts, sorted."""
    names = {f.id: f.name for f in relation.fields}
    keys = unique_keys(relation, context.plan_tables())
    return sorted(", ".join(sorted(names[i] for i in key)) or "nothing: it has one row" for key in keys)

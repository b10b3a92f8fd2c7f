"""``scan``: reads columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated

from hintplan.plans.connectors.connector import IN_BATCHES
from hintplan.plans.connectors.table import (
    bounding_option,
    can_read,
    check_reading,
    is_bounded,
    is_read_in_streams,
    is_upsert_source,
    source_kinds,
    takes_conditions,
)
from hintplan.plans.declarations.fields import Expression, Name, Names, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import read_columns
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.shown import shown_expression
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.spec.columns import check_known, check_names, types_of, unknown_table
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.kind import Neighbour, OperatorKind, WithSettings, any_order
from hintplan.plans.operators.table import described_table
from hintplan.plans.settings.layers import Settings
from hintplan.plans.text.counts import count


@frozen
class Scan(WithSettings):
    """Reads ``columns`` of ``table`` by name, except computed ones, with the row kinds that its source emits.

    With predicate pushdown, the source leaves out rows for which ``filter`` is not true. It may return more rows, so
    the operators above the scan filter again.
    """

    id: OperatorId
    table: Annotated[Name, "The table to read."]
    columns: Annotated[Names, "The columns to read, by name; not computed ones.", {"uniqueItems": True}]
    filter: Annotated[
        Expression | None, "What the source is asked to leave out the other rows by; the calc above filters again."
    ] = None
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        return ()


def _columns(scan: Scan, inputs: Sequence[Columns], plan: Declared) -> Columns:
    readable = {column.name: column for column in read_columns(plan.tables[scan.table])}
    return tuple(readable[name] for name in scan.columns)


def _row_kinds(scan: Scan, inputs: RowKinds, plan: Declared) -> RowKinds:
    return source_kinds(plan.tables[scan.table]) if scan.table in plan.tables else INSERT_ONLY


def _check(scan: Scan, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    if scan.table not in plan.tables:
        yield unknown_table(scan.table, plan.tables, path)
        return
    table = plan.tables[scan.table]
    yield from check_reading(scan.table, table)
    readable = types_of(read_columns(table))
    computed = {column.name for column in table.columns if column.expression is not None}
    for name in scan.columns:
        if name in computed:
            hint = "scan the columns that it is computed from, and compute it in a calc"
            yield Diagnostic(
                message=f"column '{name}' is computed and cannot be read", path=f"{path}.columns", hint=hint
            )
        else:
            yield from check_known([name], readable, f"{path}.columns", f"column of table '{scan.table}'")
    yield from check_names(scan.columns, path, "columns")
    if scan.filter is not None and not takes_conditions(table):
        message = f"the source of table '{scan.table}' cannot be asked for some of its rows"
        yield Diagnostic(message=message, path=f"{path}.filter", hint="remove the filter; the calc above has it too")


def _check_mode(scan: Scan, plan: Declared, path: str) -> Iterator[Diagnostic]:
    if scan.table not in plan.tables:
        return
    table = plan.tables[scan.table]
    if plan.mode != "batch":
        if can_read(table) and not is_read_in_streams(table):
            message = f"table '{scan.table}' is read by batch jobs only"
            yield Diagnostic(message=message, path=f"tables.{scan.table}.options.connector", hint=IN_BATCHES)
        return
    if can_read(table) and not is_bounded(table):
        message = f"table '{scan.table}' never ends, and a batch job would not either"
        options = f"tables.{scan.table}.options"
        yield Diagnostic(message=message, path=options, hint=f"set '{bounding_option(table)}' to end it")
    if source_kinds(table) != INSERT_ONLY:
        message = f"table '{scan.table}' is a changelog, which has no order in batch mode"
        options = f"tables.{scan.table}.options.source.changelog"
        yield Diagnostic(message=message, path=options, hint="run the job in streaming mode, with --once")


def _check_place(
    scan: Scan, inputs: Sequence[Neighbour], readers: Sequence[Neighbour], plan: Declared, path: str
) -> Iterator[Diagnostic]:
    if scan.filter is not None:
        for reader in readers:
            if not any(where == "filter" and text for where, text in reader.kind.expressions(reader.operator)):
                message = f"'{scan.id}' is asked for some rows only, and '{reader.operator.id}' does not filter them"
                yield Diagnostic(message=message, path=f"{path}.filter", hint="compile the SQL again")
    other_readers = [reader for reader in readers if not reader.kind.takes_upserts]
    if is_upsert_source(plan.tables[scan.table]):
        message = f"'{scan.id}' reads upserts, which only a changelog-normalize makes a changelog of"
    elif len(other_readers) < len(readers):
        message = f"'{scan.id}' is read by a changelog-normalize, so nothing else can read it"
    else:
        return
    for reader in other_readers:
        yield Diagnostic(message=message, path=f"operators.{reader.operator.id}.inputs", hint="compile the SQL again")


def _describe(scan: Scan, plan: Declared) -> str:
    table = plan.tables.get(scan.table)
    total = count(len(table.columns) if table else 0, "column")
    asked = f" · WHERE {shown_expression(scan.filter)}" if scan.filter is not None else ""
    return f"{described_table(scan.id, scan.table, table)} · {len(scan.columns)} of {total}{asked}"


def _expressions(scan: Scan) -> Iterator[tuple[str, str | None]]:
    yield "filter", scan.filter


SCAN = OperatorKind(
    op="scan",
    cls=Scan,
    title="scan",
    description="Reads columns of a table, with the row kinds that its source emits.",
    table="reads",
    columns=_columns,
    check=_check,
    check_place=_check_place,
    row_kinds=_row_kinds,
    reads_order=any_order,
    check_mode=_check_mode,
    expressions=_expressions,
    implied=("filter",),
    describe=_describe,
)

"""``scan``: reads columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from hintplan.plans.operators.contract.columns import check_known, check_names, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Neighbours, Operator
from hintplan.plans.operators.contract.tables import described_table, unknown_table
from hintplan.plans.settings.layers import Settings
from hintplan.plans.text.counts import count


@frozen
class Scan(Operator):
    """Reads ``columns`` of ``table`` by name, except computed ones, with the row kinds that its source emits.

    With predicate pushdown, the source leaves out rows for which ``filter`` is not true. It may return more rows, so
    the operators above the scan filter again.
    """

    op = "scan"
    title = "scan"
    description = "Reads columns of a table, with the row kinds that its source emits."
    implied = ("filter",)
    table_use = "reads"

    id: OperatorId
    table: Annotated[Name, "The table to read."]
    columns: Annotated[Names, "The columns to read, by name; not computed ones.", {"uniqueItems": True}]
    filter: Annotated[
        Expression | None, "The predicate that is pushed down to the source; the calc above evaluates it again."
    ] = None
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        return ()

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        readable = {column.name: column for column in read_columns(inputs.plan.tables[self.table])}
        return tuple(readable[name] for name in self.columns)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        if self.table not in inputs.plan.tables:
            yield unknown_table(self.table, inputs.plan.tables, self.path)
            return
        table = inputs.plan.tables[self.table]
        yield from check_reading(self.table, table)
        readable = types_of(read_columns(table))
        computed = {column.name for column in table.columns if column.expression is not None}
        for name in self.columns:
            if name in computed:
                hint = "scan the columns that it is computed from, and compute it in a calc"
                yield Diagnostic(
                    message=f"column '{name}' is computed and cannot be read", path=f"{self.path}.columns", hint=hint
                )
            else:
                yield from check_known([name], readable, f"{self.path}.columns", f"column of table '{self.table}'")
        yield from check_names(self.columns, self.path, "columns")
        if self.filter is not None and not takes_conditions(table):
            message = f"the source of table '{self.table}' cannot evaluate a filter"
            yield Diagnostic(
                message=message, path=f"{self.path}.filter", hint="remove the filter; the calc above has it too"
            )

    def check_mode(self, plan: Declared) -> Iterator[Diagnostic]:
        if self.table not in plan.tables:
            return
        table = plan.tables[self.table]
        if plan.mode != "batch":
            if can_read(table) and not is_read_in_streams(table):
                message = f"table '{self.table}' is read by batch jobs only"
                yield Diagnostic(message=message, path=f"tables.{self.table}.options.connector", hint=IN_BATCHES)
            return
        if can_read(table) and not is_bounded(table):
            message = f"table '{self.table}' never ends, and a batch job would not either"
            options = f"tables.{self.table}.options"
            yield Diagnostic(message=message, path=options, hint=f"set '{bounding_option(table)}' to end it")
        if source_kinds(table) != INSERT_ONLY:
            message = f"table '{self.table}' is a changelog, which has no order in batch mode"
            options = f"tables.{self.table}.options.source.changelog"
            yield Diagnostic(message=message, path=options, hint="run the job in streaming mode, with --once")

    def check_neighbours(self, neighbours: Neighbours) -> Iterator[Diagnostic]:
        if self.filter is not None:
            for reader in neighbours.readers:
                if not any(where == "filter" and text for where, text in reader.expressions()):
                    message = f"'{self.id}' has a filter, and '{reader.id}' does not filter them"
                    yield Diagnostic(message=message, path=f"{self.path}.filter", hint="compile the SQL again")
        other_readers = [reader for reader in neighbours.above_watermark if not reader.takes_upserts]
        if is_upsert_source(neighbours.plan.tables[self.table]):
            message = f"'{self.id}' reads upserts, which only a changelog-normalize makes a changelog of"
        elif any(reader.normalizes_changes for reader in neighbours.above_watermark):
            message = f"'{self.id}' is read by a changelog-normalize, so nothing else can read it"
        else:
            return
        for reader in other_readers:
            yield Diagnostic(message=message, path=f"{reader.path}.inputs", hint="compile the SQL again")

    def row_kinds(self, inputs: RowKinds, plan: Declared) -> RowKinds:
        return source_kinds(plan.tables[self.table]) if self.table in plan.tables else INSERT_ONLY

    def expressions(self) -> Iterator[tuple[str, str | None]]:
        yield "filter", self.filter

    def describe(self, plan: Declared) -> str:
        table = plan.tables.get(self.table)
        total = count(len(table.columns) if table else 0, "column")
        asked = f" · WHERE {shown_expression(self.filter)}" if self.filter is not None else ""
        return f"{described_table(self.id, self.table, table)} · {len(self.columns)} of {total}{asked}"

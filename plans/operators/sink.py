"""``sink``: writes to a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Literal

from hintplan.plans.connectors.check import check_written
from hintplan.plans.connectors.table import is_upsert_sink, overwrites, overwriting_connectors, sink_kinds
from hintplan.plans.declarations.fields import Name, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import RowKind
from hintplan.plans.declarations.tables import Table, written_columns
from hintplan.plans.declarations.types import DataType
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import listed, parse
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Operator
from hintplan.plans.operators.contract.tables import described_table, unknown_table
from hintplan.plans.settings.layers import Settings
from hintplan.plans.text.read_only import ReadOnly

_NO_SETTINGS: Mapping[str, Settings] = ReadOnly()


@frozen
class Sink(Operator):
    """Writes its input to ``table``; the input has the columns of the table in order.

    With ``overwrite``, a batch job first removes the rows of the ``table``, or the rows of the ``partitions`` to which
    it writes.
    """

    op = "sink"
    title = "sink"
    description = "Writes its input to a table."
    groups = ()
    table_use = "writes"

    id: OperatorId
    inputs: OneInput
    table: Annotated[Name, "The table to write."]
    overwrite: Annotated[
        Literal["table", "partitions"] | None,
        "The existing rows that are deleted first, including rows of other writers: all rows of the table, or of the "
        "partitions that are written; absent for none.",
    ] = None

    @property
    def settings(self) -> Mapping[str, Settings]:
        """Always empty, because a sink has no output to cache."""
        return _NO_SETTINGS

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        return inputs.only

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        columns = inputs.only
        if self.table not in inputs.plan.tables:
            yield unknown_table(self.table, inputs.plan.tables, self.path)
            return
        wanted = written_columns(inputs.plan.tables[self.table])
        yield from _check_overwrite(self, inputs.plan)
        yield from check_written(self.table, inputs.plan.tables[self.table])
        if [c.name for c in columns] != [c.name for c in wanted]:
            message = f"table '{self.table}' has the columns {listed(wanted)}, but the input has {listed(columns)}"
            yield Diagnostic(message=message, path=self.path)
            return
        for have, want in zip(columns, wanted, strict=True):
            if not fits(parse(have.type), parse(want.type)):
                message = f"column '{have.name}' is {have.type}, which does not fit {want.type} of table '{self.table}'"
                yield Diagnostic(message=message, path=self.path)

    def takes(self, plan: Declared) -> Collection[RowKind] | None:
        return sink_kinds(plan.tables[self.table]) if self.table in plan.tables else None

    def describe(self, plan: Declared) -> str:
        table = plan.tables.get(self.table)
        text = described_table(self.id, self.table, table)
        text += f" · upsert by {', '.join(table.primary_key)}" if table and is_upsert_sink(table) else ""
        return text + (f" · OVERWRITES {taken_away(self)}" if self.overwrite else "")


def _check_overwrite(sink: Sink, plan: Declared) -> Iterator[Diagnostic]:
    table = plan.tables[sink.table]
    if sink.overwrite is None:
        return
    problem = overwrite_problem(sink.table, table, plan.mode)
    if problem is not None:
        yield Diagnostic(message=problem[0], hint=problem[1], path=f"{sink.path}.overwrite")
    wanted = overwritten_of(table)
    if sink.overwrite != wanted:
        partitioning = "has partitions" if table.partitioned_by else "has no partitions"
        yield Diagnostic(
            message=f"table '{sink.table}' {partitioning}", hint=f"write '{wanted}'", path=f"{sink.path}.overwrite"
        )


def overwritten_of(table: Table) -> Literal["table", "partitions"]:
    """Return which rows INSERT OVERWRITE removes, as Flink's file system tables do (tests/flink/files.json)."""
    return "partitions" if table.partitioned_by else "table"


def overwrite_problem(name: str, table: Table, mode: str) -> tuple[str, str] | None:
    """Return the reason why a table cannot be overwritten in a mode, and a remedy, or None if it can."""
    if mode != "batch":
        message = "INSERT OVERWRITE is for batch jobs: a stream never ends, and in Flink neither overwrites"
        return message, "write INSERT INTO, or SET 'execution.runtime-mode' = 'batch'"
    if not overwrites(table):
        message = f"table '{name}' cannot be overwritten: its connector is '{table.options.get('connector')}'"
        return message, f"write INSERT INTO, or use one of {overwriting_connectors()}"
    return None


def fits(have: DataType, want: DataType) -> bool:
    """Return True if every value of ``have`` is a value of ``want``; the sink itself checks NULL."""
    have, want = have.as_nullable(), want.as_nullable()
    if have == want:
        return True
    integers = ("TINYINT", "SMALLINT", "INT", "BIGINT")
    if have.root in integers and want.root in integers:
        return integers.index(have.root) <= integers.index(want.root)
    if have.is_text and want.is_text:
        return want.root == "STRING" or (want.root == "VARCHAR" and (have.precision or 2**31) <= (want.precision or 0))
    if have.root == want.root == "DECIMAL":
        scale = (want.scale or 0) - (have.scale or 0)
        return scale >= 0 and (want.precision or 0) - (have.precision or 0) >= scale
    if have.root == want.root and have.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return (have.precision or 0) <= (want.precision or 0)
    return (have.root, want.root) in (("FLOAT", "DOUBLE"), ("BINARY", "BYTES"), ("VARBINARY", "BYTES"))


def taken_away(sink: Sink) -> str:
    """Describe which existing rows a sink removes."""
    if sink.overwrite == "table":
        return f"all rows of table '{sink.table}'"
    return f"all rows of the partitions of '{sink.table}' that it writes to"

"""``sink``: writes to a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from plans.connectors.check import check_written
from plans.connectors.table import is_upsert_sink, sink_kinds
from plans.declarations.row_kinds import RowKind
from plans.declarations.tables import written_columns
from plans.declarations.types import DataType
from plans.errors import Diagnostic
from plans.operators.spec.columns import listed, parse, unknown_table
from plans.operators.spec.declared import Columns, Declared
from plans.operators.spec.fields import Name, OneInput, OperatorId
from plans.operators.spec.kind import OperatorKind, any_order, of_input, unchanged
from plans.operators.table import described_table
from plans.settings.layers import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Writes its input, whose columns are those of ``table`` in order, to ``table``."""

    id: OperatorId
    inputs: OneInput
    table: Annotated[Name, "The table to write."]

    @property
    def settings(self) -> Mapping[str, Settings]:
        """None: it has no output."""
        return {}

    @property
    def cached(self) -> None:
        """None, too."""
        return None


def _check(sink: Sink, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    columns = inputs[0]
    if sink.table not in plan.tables:
        yield unknown_table(sink.table, plan.tables, path)
        return
    wanted = written_columns(plan.tables[sink.table])
    yield from check_written(sink.table, plan.tables[sink.table])
    if [c.name for c in columns] != [c.name for c in wanted]:
        message = f"table '{sink.table}' has the columns {listed(wanted)}, but the input has {listed(columns)}"
        yield Diagnostic(message=message, path=path)
        return
    for have, want in zip(columns, wanted, strict=True):
        if not _fits(parse(have.type), parse(want.type)):
            message = f"column '{have.name}' is {have.type}, which does not fit {want.type} of table '{sink.table}'"
            yield Diagnostic(message=message, path=path)


def _fits(have: DataType, want: DataType) -> bool:
    """Whether every value of ``have`` is a value of ``want``; NULL is for the sink to judge."""
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


def _takes(sink: Sink, plan: Declared) -> Collection[RowKind] | None:
    return sink_kinds(plan.tables[sink.table]) if sink.table in plan.tables else None


def _describe(sink: Sink, plan: Declared) -> str:
    table = plan.tables.get(sink.table)
    text = described_table(sink.id, sink.table, table)
    return text + (f" · upsert by {', '.join(table.primary_key)}" if table and is_upsert_sink(table) else "")


SINK = OperatorKind(
    op="sink",
    cls=Sink,
    title="sink",
    description="Writes its input to a table.",
    groups=(),
    table="writes",
    columns=of_input,
    check=_check,
    row_kinds=unchanged,
    reads_order=any_order,
    takes=_takes,
    describe=_describe,
)

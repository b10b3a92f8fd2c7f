"""``late-rows``: the rows that operators have dropped because they came behind the watermark.

A plan file does not contain it: the setting ``late-rows.target`` of a watermark implies it, and the sink above it
(:mod:`hintplan.plans.model.late_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from hintplan.plans.declarations.fields import Name, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Column, written_columns
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Operator
from hintplan.plans.settings.layers import Settings
from hintplan.plans.text.read_only import ReadOnly

OPERATOR, WATERMARK = "operator", "watermark"
ADDED = (Column(name=OPERATOR, type="STRING"), Column(name=WATERMARK, type="TIMESTAMP_LTZ(3)"))
"""The columns that late rows have in addition to the columns of the source: who dropped it, by which watermark."""
_NO_SETTINGS: Mapping[str, Settings] = ReadOnly()


@frozen
class LateRows(Operator):
    """The rows of ``scans`` that its inputs drop as late, in the columns of the table ``target``."""

    op = "late-rows"
    title = "late rows"
    description = "The late rows that operators drop. Stateless; follows from a setting, and is in no plan file."
    groups = ()
    passes_watermark = False

    id: OperatorId
    inputs: Annotated[tuple[OperatorId, ...], "The operators that drop late rows, one or more.", {"minItems": 1}]
    target: Annotated[Name, "The table to which the rows go."]
    scans: Annotated[tuple[OperatorId, ...], "The scans of the tables whose watermark has the setting."]

    @property
    def settings(self) -> Mapping[str, Settings]:
        """Always empty, because only its watermark has settings."""
        return _NO_SETTINGS

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        return written_columns(inputs.plan.tables[self.target]) if self.target in inputs.plan.tables else ()

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        yield from ()

    def row_kinds(self, inputs: RowKinds, plan: Declared) -> RowKinds:
        return INSERT_ONLY

    def describe(self, plan: Declared) -> str:
        return f"LATE ROWS of {', '.join(self.inputs)}"

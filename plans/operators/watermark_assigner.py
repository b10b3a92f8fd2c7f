"""``watermark-assigner``: the place where the watermark of a table begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated

from hintplan.plans.declarations.fields import Expression, Name, OneInput, OperatorId
from hintplan.plans.errors import Diagnostic
from hintplan.plans.expressions.shown import shown_expression
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_read, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Operator
from hintplan.plans.operators.contract.timed import check_rowtime
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import duration_of
from hintplan.plans.settings.watermark import DELAY, LATE_ROWS, NO_TARGET, WATERMARK


@frozen
class WatermarkAssigner(Operator):
    """Passes on its rows, and measures their watermark: the highest value of ``base`` so far, less the delay.

    ``column`` is the rowtime. NULL in ``base`` moves nothing; NULL in the rowtime fails the run.
    """

    op = "watermark-assigner"
    title = "watermark assigner"
    description = "Passes on its rows, and measures the watermark of a table. Stateless."
    passes_columns = True
    groups = (WATERMARK, CACHED)
    sends_watermark = True
    may_run_in_arrow = True
    in_lineage = False

    id: OperatorId
    inputs: OneInput
    column: Annotated[Name, "The rowtime of the table."]
    base: Annotated[Expression, "The watermark before the delay: its highest value so far counts."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return False

    @property
    def delay(self) -> str:
        """The time by which the watermark lags behind the highest value of ``base``."""
        return str(self.settings[WATERMARK.name].values[DELAY])

    @property
    def late_rows(self) -> str | None:
        """The table for the rows that come behind the watermark; None if they are only counted."""
        target = self.settings[WATERMARK.name].values.get(LATE_ROWS) if WATERMARK.name in self.settings else None
        return None if target in (None, NO_TARGET) else str(target)

    def output_columns(self, inputs: Inputs) -> Columns:
        return inputs.only

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_rowtime(self.column, types, f"{self.path}.column")
        yield from check_read(self.base, types, f"{self.path}.base", "column of the input")

    def own_rowtimes(self) -> tuple[str, ...]:
        return (self.column,)

    def key_above(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        return keys

    def expressions(self) -> Iterator[tuple[str, str | None]]:
        yield "base", self.base

    def describe(self, plan: Declared) -> str:
        base = shown_expression(self.base)
        watermark = f"{base} - {self.delay}" if duration_of(self.delay) else base
        return watermark if self.base.strip("`") == self.column else f"{self.column} WATERMARK {watermark}"

"""``temporal-sort``: sorts the rows of a stream by their rowtime, as the watermark passes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from typing import Annotated

from hintplan.plans.declarations.computations import SortKey
from hintplan.plans.declarations.fields import Changelog, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKind
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.stateful import TimedStates
from hintplan.plans.operators.contract.timed import Timed, check_rowtime
from hintplan.plans.operators.sort import check_order, describe_order
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.state import UNTIL_ROW_PASSED


@frozen
class TemporalSort(Timed):
    """Emits rows in an ``order`` that begins with the rowtime, when the watermark passes them. Streaming only.

    Rows that are equal in the order keep the order of their arrival. Late rows are dropped.
    """

    op = "temporal-sort"
    title = "temporal sort"
    description = "Sorts rows by their rowtime; keeps them until the watermark passes them. Streaming only."
    passes_columns = True
    state_names = ("waitingState",)
    state_holds = "rows"
    state_grows_by = "row"

    id: OperatorId
    inputs: OneInput
    order: Annotated[
        tuple[SortKey, ...],
        "The sort keys, most significant first: the rowtime, ascending, then others.",
        {"minItems": 1},
    ]
    changelog: Changelog
    state: Annotated[TimedStates, "waitingState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return True

    def output_columns(self, inputs: Inputs) -> Columns:
        return inputs.only

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        problems = list(check_order(self.order, types, self.path))
        yield from problems
        if problems:
            return
        first, here = self.order[0], f"{self.path}.order[0]"
        yield from check_rowtime(first.column, types, f"{here}.column")
        if first.direction == "desc":
            message = "the order of a stream begins with a rowtime, ascending"
            yield Diagnostic(message=message, path=f"{here}.direction", hint='write "asc"')

    def check_mode(self, plan: Declared) -> Iterator[Diagnostic]:
        if plan.mode == "batch":
            message = "a batch job has no watermark"
            yield Diagnostic(message=message, path=self.path, hint="use a 'sort', which sorts all rows")

    def rowtimes_read(self) -> Iterator[tuple[int, str, str]]:
        for key in self.order[:1]:
            yield 0, "order[0].column", key.column

    def takes(self, plan: Declared) -> Collection[RowKind]:
        return INSERT_ONLY

    def kept_until(self, state: str) -> str:
        return UNTIL_ROW_PASSED

    def describe(self, plan: Declared) -> str:
        return f"ORDER BY {describe_order(self.order)} AT THE WATERMARK"

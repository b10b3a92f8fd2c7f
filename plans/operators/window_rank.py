"""``window-rank``: passes on the first N rows of each key in each window."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from hintplan.plans.declarations.computations import SortKey
from hintplan.plans.declarations.fields import Changelog, Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKind
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, check_names, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.stateful import TimedStates
from hintplan.plans.operators.contract.timed import Timed, check_of_rowtime, check_window, check_window_columns
from hintplan.plans.operators.rank import NUMBER_TYPE, describe_rank
from hintplan.plans.operators.sort import check_order
from hintplan.plans.settings.layers import Settings


@frozen
class WindowRank(Timed):
    """Numbers the rows of each window and ``key`` by ``order``, and passes on ``rank_start`` to ``rank_end``.

    The rows come out when the watermark passes their window. Among rows that are equal in the order, the row that
    arrived first has the lowest number; with ``arrival`` last, the row that arrived last. ``number`` is an additional
    column, BIGINT NOT NULL, with the number of a row.
    """

    op = "window-rank"
    title = "window rank"
    description = "Passes on the first N rows of each key in each window; keeps them until the watermark passes it."
    passes_columns = True
    state_names = ("windowRankState",)
    state_holds = "rows"
    state_grows_by = "row"

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The columns of PARTITION BY, without the columns of the window.", {"uniqueItems": True}]
    order: Annotated[tuple[SortKey, ...], "The sort keys, most significant first; empty for the order of arrival."]
    arrival: Annotated[
        Literal["first", "last"],
        "The row with the lower number among rows with equal sort keys: the first or the last to arrive.",
    ] = "first"
    rank_start: Annotated[int, "The number of the first row of a key that is passed on.", {"minimum": 1}]
    rank_end: Annotated[int, "The largest row number that passes.", {"minimum": 1}]
    number: Annotated[Name | None, "The name of the column with a row's number; absent if nobody reads it."] = None
    window: Annotated[Window, "The windows."]
    attached: Annotated[WindowColumns, "The columns of the input with the window of a row."]
    changelog: Changelog
    state: Annotated[TimedStates, "windowRankState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return True

    def output_columns(self, inputs: Inputs) -> Columns:
        return inputs.only if self.number is None else (*inputs.only, Column(name=self.number, type=NUMBER_TYPE))

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_window(self.window, self.path)
        yield from check_of_rowtime(self.window, self.path)
        yield from check_window_columns(self.attached, types, f"{self.path}.attached")
        yield from check_known(self.key, types, f"{self.path}.key", "key column")
        yield from check_order(self.order, types, self.path)
        if self.rank_end < self.rank_start:
            message = f"no row has a number from {self.rank_start} to {self.rank_end}"
            yield Diagnostic(message=message, path=f"{self.path}.rank-end", hint="compile the SQL again")
        if self.number is not None:
            yield from check_names([*types, self.number], self.path, "number")

    def check_mode(self, plan: Declared) -> Iterator[Diagnostic]:
        if plan.mode == "batch" and (not self.order or self.arrival == "last"):
            message, hint = "rows of a batch job have no order of arrival", "order by a column"
            yield Diagnostic(message=message, path=f"{self.path}.{'arrival' if self.order else 'order'}", hint=hint)

    def takes(self, plan: Declared) -> Collection[RowKind]:
        return INSERT_ONLY

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        # Rows are numbered when they come out.
        return {key: value for key, value in facts.items() if key != "number"}

    def attached_windows(self) -> Iterator[tuple[int, str, WindowColumns, Window]]:
        yield 0, "attached", self.attached, self.window

    def describe(self, plan: Declared) -> str:
        return f"{describe_rank(self)} IN WINDOW {self.attached.start}, {self.attached.end}"

"""``window-deduplicate``: passes on the first or the last row of each key in each window."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from typing import Annotated, Literal

from hintplan.plans.declarations.fields import Changelog, Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKind
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.stateful import TimedStates
from hintplan.plans.operators.contract.timed import (
    Timed,
    check_of_rowtime,
    check_rowtime,
    check_window,
    check_window_columns,
)
from hintplan.plans.settings.layers import Settings


@frozen
class WindowDeduplicate(Timed):
    """Passes on the first or the last row of each window and ``key`` by ``time``, when the watermark passes the window.

    Among rows with the same time, the first that arrived is the first, and the last that arrived is the last.
    """

    op = "window-deduplicate"
    title = "window deduplicate"
    description = "Passes on the first or the last row of each key in each window; keeps a row for each."
    passes_columns = True
    state_names = ("windowDeduplicateState",)
    state_holds = "rows"
    state_grows_by = "key"

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The columns of PARTITION BY, without the columns of the window.", {"uniqueItems": True}]
    time: Annotated[Name, "The column with the time of a row."]
    keep: Annotated[Literal["first", "last"], "The row of a key that is passed on."]
    window: Annotated[Window, "The windows."]
    attached: Annotated[WindowColumns, "The columns of the input with the window of a row."]
    changelog: Changelog
    state: Annotated[TimedStates, "windowDeduplicateState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return True

    def output_columns(self, inputs: Inputs) -> Columns:
        return inputs.only

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_window(self.window, self.path)
        yield from check_of_rowtime(self.window, self.path)
        yield from check_window_columns(self.attached, types, f"{self.path}.attached")
        yield from check_known(self.key, types, f"{self.path}.key", "key column")
        yield from check_rowtime(self.time, types, f"{self.path}.time")

    def takes(self, plan: Declared) -> Collection[RowKind]:
        return INSERT_ONLY

    def attached_windows(self) -> Iterator[tuple[int, str, WindowColumns, Window]]:
        yield 0, "attached", self.attached, self.window

    def describe(self, plan: Declared) -> str:
        keys = f" OF EACH {', '.join(self.key)}" if self.key else ""
        return f"{self.keep.upper()} ROW{keys} BY {self.time} IN WINDOW {self.attached.start}, {self.attached.end}"

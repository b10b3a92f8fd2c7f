"""``window-table-function``: adds to each row the windows that contain it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from hintplan.plans.declarations.fields import Changelog, Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKind, RowKinds
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.windows import WALL_TIME, Window, WindowColumns
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, check_names, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.stateful import KeysUpserted, Stateful, TimedStates
from hintplan.plans.operators.contract.timed import check_rowtime, check_window
from hintplan.plans.settings.layers import Settings


@frozen
class WindowTableFunction(Stateful):
    """Repeats every row for each of its windows, with the window's start, end and time.

    Without state it drops no row, however late. A SESSION keeps rows until the watermark passes their session, and
    drops late ones.
    """

    op = "window-table-function"
    title = "window table function"
    description = "Repeats every row for each of its windows. Only sessions keep rows, until the watermark passes them."
    passes_columns = True
    state_holds = "rows"
    state_grows_by = "row"
    passes_watermark = True

    id: OperatorId
    inputs: OneInput
    time: Annotated[Name, "The rowtime; or the processing time, a column that is PROCTIME()."]
    window: Annotated[Window, "The windows."]
    keys: Annotated[Names, "The columns of PARTITION BY; only sessions have any.", {"uniqueItems": True}]
    start: Annotated[Name, "The name of the column with the start of the window."]
    end: Annotated[Name, "The name of the column with its end."]
    window_time: Annotated[Name, "The name of the column with its time: the last millisecond of the window."]
    changelog: Changelog
    state: Annotated[TimedStates, "sessionState; empty for other windows."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def state_names(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("sessionState",) if self.goes_by_time else ()

    @property
    def goes_by_time(self) -> bool:  # type: ignore[override]
        return self.window.type == "session"

    @property
    def goes_by_clock(self) -> bool:
        return self.goes_by_time and self.window.processing_time

    @property
    def windowing(self) -> tuple[str | None, Window] | None:
        return (None if self.window.processing_time else self.time), self.window

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        return (
            *inputs.only,
            Column(name=self.start, type=WALL_TIME),
            Column(name=self.end, type=WALL_TIME),
            Column(name=self.window_time, type=self.window.time_type),
        )

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_window(self.window, self.path)
        yield from check_rowtime(self.time, types, f"{self.path}.time", self.window)
        yield from check_known(self.keys, types, f"{self.path}.keys", "key column")
        if self.keys and not self.goes_by_time:
            message = "only sessions have keys: other windows do not depend on other rows"
            yield Diagnostic(message=message, path=f"{self.path}.keys", hint="write []")
        yield from check_names([*types, self.start, self.end, self.window_time], self.path, "start")

    def takes(self, plan: Declared) -> Collection[RowKind] | None:
        return INSERT_ONLY if self.goes_by_time else None

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        return INSERT_ONLY if self.goes_by_time else inputs

    def changes_for(self, ttls: Sequence[float], inputs: Sequence[RowKinds]) -> float:
        return 0.0  # a row is never changed after the watermark has passed it

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        # State does not depend on the names of the columns of the window.
        return {key: value for key, value in facts.items() if key not in ("start", "end", "window-time")}

    def own_windows(self) -> Mapping[WindowColumns, Window]:
        return {WindowColumns(start=self.start, end=self.end): self.window}

    def own_rowtimes(self) -> tuple[str, ...]:
        return () if self.window.processing_time else (self.window_time,)

    def describe(self, plan: Declared) -> str:
        keys = f" PARTITION BY {', '.join(self.keys)}" if self.keys else ""
        return f"{self.window.over(self.time)}{keys}"

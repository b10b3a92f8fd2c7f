"""``window-aggregate``: a group aggregate of the rows of each window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, cast

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.plans.declarations.fields import Changelog, Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Column, Function
from hintplan.plans.declarations.windows import WALL_TIME, Window, WindowColumns
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.calls import (
    check_calls,
    depend_on_order,
    describe_calls,
    needs_every_row,
    rows_taken,
    users_functions,
)
from hintplan.plans.operators.contract.columns import check_known, check_names, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import NO_FUNCTIONS
from hintplan.plans.operators.contract.stateful import TimedStates
from hintplan.plans.operators.contract.timed import Timed, check_rowtime, check_window, check_window_columns
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.phases import PHASES, STRATEGY, PhaseStrategy


@frozen
class WindowAggregate(Timed):
    """Aggregates the rows of each window and group, and emits the results when the watermark passes the window.

    The windows are over the rowtime ``time``, or the input has them in the columns ``attached``. The output columns are
    ``keys`` in order, the calls, then the columns of the window that have a name.
    """

    op = "window-aggregate"
    title = "window aggregate"
    description = "A group aggregate of the rows of each window; keeps a state row for each open window and group."
    groups = (PHASES, CACHED)
    state_names = ("windowAggregateState",)
    state_holds = "groups"
    state_grows_by = "key"

    id: OperatorId
    inputs: OneInput
    keys: Annotated[Names, "The grouping columns, without the columns of the window.", {"uniqueItems": True}]
    time: Annotated[Name | None, "The rowtime; absent if the input has the windows."] = None
    window: Annotated[Window, "The windows."]
    attached: Annotated[WindowColumns | None, "The columns of the input with the window; absent with 'time'."] = None
    aggregates: Annotated[tuple[AggregateCall, ...], "The aggregate functions."]
    start: Annotated[Name | None, "The name of the column with the start of the window; absent if nobody reads it."] = (
        None
    )
    end: Annotated[Name | None, "The name of the column with its end; absent if nobody reads it."] = None
    window_time: Annotated[Name | None, "The name of the column with its time; absent if nobody reads it."] = None
    changelog: Changelog
    state: Annotated[TimedStates, "windowAggregateState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def strategy(self) -> PhaseStrategy:
        """The setting that decides between one and two phases."""
        phases = self.settings.get(PHASES.name)
        return "AUTO" if phases is None else cast(PhaseStrategy, phases.values[STRATEGY])

    @property
    def functions(self) -> tuple[str, ...]:
        return users_functions(self.aggregates)

    @property
    def windowing(self) -> tuple[str, Window] | None:
        return None if self.time is None else (self.time, self.window)

    @property
    def reads_order(self) -> bool:
        return depend_on_order(self.aggregates)

    def output_columns(self, inputs: Inputs) -> Columns:
        types = types_of(inputs.only)
        keys = tuple(Column(name=key, type=types[key]) for key in self.keys)
        calls = tuple(Column(name=call.name, type=call.type) for call in self.aggregates)
        of_window = ((self.start, WALL_TIME), (self.end, WALL_TIME), (self.window_time, self.window.time_type))
        return keys + calls + tuple(Column(name=name, type=kind) for name, kind in of_window if name is not None)

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_window(self.window, self.path)
        if (self.time is None) == (self.attached is None):
            message = "a window aggregate has either 'time' or 'attached'"
            yield Diagnostic(message=message, path=self.path, hint="compile the SQL again")
        if self.time is not None:
            yield from check_rowtime(self.time, types, f"{self.path}.time", self.window)
        if self.attached is not None:
            yield from check_window_columns(self.attached, types, f"{self.path}.attached")
        yield from check_known(self.keys, types, f"{self.path}.keys", "key column")
        yield from check_calls(self.aggregates, types, inputs.plan, self.path)
        named = [name for name in (self.start, self.end, self.window_time) if name is not None]
        yield from check_names([*self.keys, *(call.name for call in self.aggregates), *named], self.path, "aggregates")

    def takes(self, plan: Declared) -> RowKinds | None:
        return INSERT_ONLY if self.window.type == "session" else rows_taken(self.aggregates, plan)

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        # The names of calls and of the columns of the window do not affect the layout of state.
        calls = [{key: value for key, value in call.items() if key != "name"} for call in facts.get("aggregates", [])]
        kept = {key: value for key, value in facts.items() if key not in ("start", "end", "window-time")}
        return {**kept, "aggregates": calls}

    def one_phase_because(
        self, *, insert_only: bool, in_order: bool = False, functions: Mapping[str, Function] = NO_FUNCTIONS
    ) -> str | None:
        """Return the reason why the aggregate always runs in one phase, or None if it can run in two."""
        reason = needs_every_row(
            self.aggregates,
            insert_only=insert_only,
            functions=functions,
            values_merge=self.window.type == "session",
        )
        if reason is not None:
            return reason
        return "changes of a source stay in their order" if in_order else None

    def names_above(self, place: int, column: str) -> tuple[str, ...]:
        return (column,) if column in self.keys else ()

    def own_windows(self) -> Mapping[WindowColumns, Window]:
        if self.start is None or self.end is None:
            return {}
        return {WindowColumns(start=self.start, end=self.end): self.window}

    def own_rowtimes(self) -> tuple[str, ...]:
        return () if self.window_time is None else (self.window_time,)

    def attached_windows(self) -> Iterator[tuple[int, str, WindowColumns, Window]]:
        if self.attached is not None:
            yield 0, "attached", self.attached, self.window

    def describe(self, plan: Declared) -> str:
        columns = self.attached
        over = self.window.over(self.time or "") if columns is None else f"WINDOW {columns.start}, {columns.end}"
        calls = describe_calls(self.aggregates)
        groups = f"GROUP BY {', '.join(self.keys)}" if self.keys else "one group"
        if not calls:
            return f"{over}, DISTINCT {', '.join(self.keys)}" if self.keys else over
        return f"{over}, {groups}: {calls}"

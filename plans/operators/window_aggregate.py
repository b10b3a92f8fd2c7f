"""``window-aggregate``: a group aggregate of the rows of each window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Literal, cast

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.declarations.fields import Changelog, Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, RowKinds
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
from hintplan.plans.operators.contract.stateful import KeysUpserted, TimedStates
from hintplan.plans.operators.contract.timed import Timed, check_rowtime, check_window, check_window_columns
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.emit import EMIT, LATENESS
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.phases import PHASES, STRATEGY, PhaseStrategy


@frozen
class WindowAggregate(Timed):
    """Aggregates the rows of each window and group, and emits the results when the watermark passes the window.

    The windows are over the rowtime ``time``, or the input has them in the columns ``attached``. Windows of processing
    time have neither: their rows have the time of their micro-batch. The output columns are ``keys`` in order, the
    calls, then the columns of the window that have a name. A group window may have early and late fire: then it also
    emits its result before and after, and takes back what it emitted before.
    """

    op = "window-aggregate"
    title = "window aggregate"
    description = "A group aggregate of the rows of each window; keeps a state row for each open window and group."
    groups = (PHASES, EMIT, CACHED)
    state_names = ("windowAggregateState",)
    state_holds = "groups"
    state_grows_by = "key"

    id: OperatorId
    inputs: OneInput
    keys: Annotated[Names, "The grouping columns, without the columns of the window.", {"uniqueItems": True}]
    time: Annotated[Name | None, "The rowtime; absent if the input has the windows, or with processing time."] = None
    window: Annotated[Window, "The windows."]
    style: Annotated[
        Literal["group"] | None, "'group' for a window in GROUP BY, Flink's older syntax; otherwise absent."
    ] = None
    early_fire: Annotated[bool, "true: a group window also emits results before it closes."] = False
    late_fire: Annotated[bool, "true: a group window also emits results for rows that come after it has closed."] = (
        False
    )
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
    def windowing(self) -> tuple[str | None, Window] | None:
        return None if self.attached is not None else (self.time, self.window)

    @property
    def goes_by_clock(self) -> bool:
        return self.window.processing_time

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
        yield from check_window(self.window, self.path, any_slide=self.style is not None)
        yield from self._check_emit()
        if self.window.processing_time:
            yield from self._check_processing_time()
        elif (self.time is None) == (self.attached is None):
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

    def _check_emit(self) -> Iterator[Diagnostic]:
        """Yield the problems of early and late fire."""
        fires = [name for name, on in (("early-fire", self.early_fire), ("late-fire", self.late_fire)) if on]
        if EMIT.name in self.settings and not fires:
            message = "the settings of early and late results need 'early-fire' or 'late-fire'"
            yield Diagnostic(message=message, path=f"{self.path}.{EMIT.name}", hint=f"remove '{EMIT.name}'")
        if fires and self.style is None:
            message = f"only a window in GROUP BY has '{fires[0]}'"
            yield Diagnostic(message=message, path=f"{self.path}.{fires[0]}", hint=f"remove '{fires[0]}'")
        if fires and self.window.type == "session":
            message = f"sessions have no '{fires[0]}', in Flink neither"
            yield Diagnostic(message=message, path=f"{self.path}.{fires[0]}", hint=f"remove '{fires[0]}'")

    def heeds(self, group: Group) -> bool:
        return group is not EMIT or self.emits_updates

    @property
    def emits_updates(self) -> bool:
        """True if it emits results more than once."""
        return self.early_fire or self.late_fire

    @property
    def wakes(self) -> bool:
        # Also without a delay: a delay may be set later, and the sources of a query do not change then.
        return self.goes_by_clock or self.emits_updates

    def emit_ms(self, name: str) -> int:
        """Return the setting ``name`` of early and late results in milliseconds."""
        settings = self.settings.get(EMIT.name)
        return 0 if settings is None else parse_duration(str(settings.values[name]))

    @property
    def lateness_ms(self) -> int:
        """The time for which a closed window takes rows, in milliseconds."""
        return self.emit_ms(LATENESS) if self.late_fire else 0

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        if not self.emits_updates:
            return INSERT_ONLY
        kinds = {"+I", "+U"}
        if inputs != INSERT_ONLY:
            kinds.add("-D")
        of_window = (name for name in (self.start, self.end, self.window_time) if name is not None)
        if not any(upserted((*self.keys, name)) for name in of_window):
            kinds.add("-U")
        return tuple(kind for kind in ALL_KINDS if kind in kinds)

    def changes_for(self, ttls: Sequence[float], inputs: Sequence[RowKinds]) -> float:
        return float(self.window.size_ms + self.lateness_ms) if self.emits_updates else 0.0

    def _check_processing_time(self) -> Iterator[Diagnostic]:
        for name in ("time", "attached"):
            if getattr(self, name) is not None:
                message = f"windows of processing time have no '{name}': a row has the time of its batch"
                yield Diagnostic(message=message, path=f"{self.path}.{name}", hint=f"remove '{name}'")

    def takes(self, plan: Declared) -> RowKinds | None:
        is_of_rows = self.window.type == "session" or self.window.processing_time
        return INSERT_ONLY if is_of_rows else rows_taken(self.aggregates, plan)

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        # The names of calls and of the columns of the window do not affect the layout of state, nor does the syntax.
        calls = [{key: value for key, value in call.items() if key != "name"} for call in facts.get("aggregates", [])]
        kept = {key: value for key, value in facts.items() if key not in ("style", "start", "end", "window-time")}
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
        # As in Flink, the columns of a group window are no window of the rows above it.
        if self.start is None or self.end is None or self.style is not None:
            return {}
        return {WindowColumns(start=self.start, end=self.end): self.window}

    def own_rowtimes(self) -> tuple[str, ...]:
        return () if self.window_time is None or self.window.processing_time else (self.window_time,)

    def kept_until(self, state: str) -> str:
        lateness = self.lateness_ms
        if lateness:
            return f"until the watermark is {format_duration(lateness)} past the window"
        return Timed.kept_until(self, state)  # super() does not know a class with slots

    def attached_windows(self) -> Iterator[tuple[int, str, WindowColumns, Window]]:
        if self.attached is not None:
            yield 0, "attached", self.attached, self.window

    def describe(self, plan: Declared) -> str:
        columns = self.attached
        over = self.window.over(self.time or "") if columns is None else f"WINDOW {columns.start}, {columns.end}"
        calls = describe_calls(self.aggregates)
        fires = " AND ".join(name for name, on in (("EARLY", self.early_fire), ("LATE", self.late_fire)) if on)
        over = f"{over}, {fires} FIRE" if fires else over
        groups = f"GROUP BY {', '.join(self.keys)}" if self.keys else "one group"
        if not calls:
            return f"{over}, DISTINCT {', '.join(self.keys)}" if self.keys else over
        return f"{over}, {groups}: {calls}"

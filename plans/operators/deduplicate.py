"""``deduplicate``: passes on the first or the last row of each key.

With ``emit``, the first row of a key by its rowtime is emitted when the watermark passes it, and never changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Literal

from hintplan.plans.declarations.fields import Changelog, Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKind, RowKinds
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, parse, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.stateful import KeysUpserted, MixedStates, Stateful
from hintplan.plans.operators.contract.timed import check_rowtime
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.state import UNTIL_ROW_PASSED

STATE, WAITING = "deduplicateState", "waitingState"
"""The names of the states: the keys with their rows, and the rows that the watermark has not passed yet."""


@frozen
class Deduplicate(Stateful):
    """Passes on the first or the last row of each ``key`` (Flink's Deduplicate), by ``time`` or else by arrival.

    Among rows with the same time, the order of arrival decides. NULL precedes all times. With ``emit``, the first row
    by rowtime waits until the watermark passes it, and late rows are dropped; deduplicateState then has the keys only.
    """

    op = "deduplicate"
    title = "deduplicate"
    description = "Passes on the first or the last row of each key; keeps a row for each."
    passes_columns = True
    state_holds = "rows"
    state_grows_by = "key"

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The columns of PARTITION BY.", {"minItems": 1, "uniqueItems": True}]
    time: Annotated[Name | None, "The column with the time of a row; absent for the order of arrival."] = None
    keep: Annotated[Literal["first", "last"], "The row of a key that is passed on."]
    emit: Annotated[
        Literal["at-watermark"] | None,
        "at-watermark: when the watermark passes the first row; absent: at once.",
    ] = None
    changelog: Changelog
    state: Annotated[MixedStates, "deduplicateState; with 'emit' also waitingState, which has no TTL."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def state_names(self) -> tuple[str, ...]:  # type: ignore[override]
        return (STATE, WAITING) if self.goes_by_time else (STATE,)

    @property
    def goes_by_time(self) -> bool:  # type: ignore[override]
        return self.emit is not None

    @property
    def passes_watermark(self) -> bool:  # type: ignore[override]
        return self.goes_by_time or (self.keep == "last" and self.time is not None)

    @property
    def reads_order(self) -> bool:
        return True

    def output_columns(self, inputs: Inputs) -> Columns:
        return inputs.only

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_known(self.key, types, f"{self.path}.key", "key column")
        if self.goes_by_time:
            if self.keep == "last" or self.time is None:
                message = "only the first row by a rowtime is emitted at the watermark"
                hint = "remove 'emit', or write \"keep\": \"first\" and the rowtime as 'time'"
                yield Diagnostic(message=message, path=f"{self.path}.emit", hint=hint)
            else:
                yield from check_rowtime(self.time, types, f"{self.path}.time")
        elif self.time is not None:
            unknown = list(check_known([self.time], types, f"{self.path}.time", "column of the input"))
            yield from unknown
            if not unknown and parse(types[self.time]).root not in ("TIMESTAMP", "TIMESTAMP_LTZ"):
                message = f"expected a TIMESTAMP or TIMESTAMP_LTZ column, but '{self.time}' is {types[self.time]}"
                yield Diagnostic(message=message, path=f"{self.path}.time")

    def check_mode(self, plan: Declared) -> Iterator[Diagnostic]:
        if plan.mode == "batch" and self.time is None:
            hint = "order by a column with the time of a row"
            yield Diagnostic(message="rows of a batch job have no order of arrival", path=self.path, hint=hint)
        elif plan.mode == "batch" and self.goes_by_time:
            message, path = "a batch job has no watermark", f"{self.path}.emit"
            yield Diagnostic(message=message, path=path, hint="remove 'emit'")

    def rowtimes_read(self) -> Iterator[tuple[int, str, str]]:
        if self.goes_by_time and self.time is not None:
            yield 0, "time", self.time

    def takes(self, plan: Declared) -> Collection[RowKind]:
        return INSERT_ONLY

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        if self.is_final:
            return INSERT_ONLY
        return ("+I", "+U") if upserted(self.key) else ("+I", "-U", "+U")

    def changes_for(self, ttls: Sequence[float], inputs: Sequence[RowKinds]) -> float:
        return 0.0 if self.is_final else ttls[0]

    @property
    def is_final(self) -> bool:
        """True if no later row replaces a row that it has emitted."""
        return self.goes_by_time or (self.keep == "first" and self.time is None)

    def has_ttl(self, state: str) -> bool:
        return state == STATE

    def kept_until(self, state: str) -> str:
        return UNTIL_ROW_PASSED

    def describe(self, plan: Declared) -> str:
        order = "BY ARRIVAL" if self.time is None else f"BY {self.time}"
        when = " AT THE WATERMARK" if self.goes_by_time else ""
        return f"{self.keep.upper()} ROW OF EACH {', '.join(self.key)} {order}{when}"

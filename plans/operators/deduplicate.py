"""``deduplicate``: passes on the first or the last row of each key."""

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
from hintplan.plans.operators.contract.stateful import KeysUpserted, Stateful, States
from hintplan.plans.settings.layers import Settings


@frozen
class Deduplicate(Stateful):
    """Passes on the first or the last row of each ``key`` (Flink's Deduplicate), by ``time`` or else by arrival.

    Among rows with the same time, the order of arrival decides. NULL precedes all times.
    """

    op = "deduplicate"
    title = "deduplicate"
    description = "Passes on the first or the last row of each key; keeps a row for each."
    passes_columns = True
    state_names = ("deduplicateState",)
    state_holds = "rows"
    state_grows_by = "key"

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The columns of PARTITION BY.", {"minItems": 1, "uniqueItems": True}]
    time: Annotated[Name | None, "The column with the time of a row; absent for the order of arrival."] = None
    keep: Annotated[Literal["first", "last"], "The row of a key that is passed on."]
    changelog: Changelog
    state: Annotated[States, "deduplicateState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def passes_watermark(self) -> bool:  # type: ignore[override]
        return self.keep == "last" and self.time is not None

    @property
    def reads_order(self) -> bool:
        return True

    def output_columns(self, inputs: Inputs) -> Columns:
        return inputs.only

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_known(self.key, types, f"{self.path}.key", "key column")
        if self.time is not None:
            unknown = list(check_known([self.time], types, f"{self.path}.time", "column of the input"))
            yield from unknown
            if not unknown and parse(types[self.time]).root not in ("TIMESTAMP", "TIMESTAMP_LTZ"):
                message = f"expected a TIMESTAMP or TIMESTAMP_LTZ column, but '{self.time}' is {types[self.time]}"
                yield Diagnostic(message=message, path=f"{self.path}.time")

    def check_mode(self, plan: Declared) -> Iterator[Diagnostic]:
        if plan.mode == "batch" and self.time is None:
            hint = "order by a column with the time of a row"
            yield Diagnostic(message="rows of a batch job have no order of arrival", path=self.path, hint=hint)

    def takes(self, plan: Declared) -> Collection[RowKind]:
        return INSERT_ONLY

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        if self.keep == "first" and self.time is None:
            return INSERT_ONLY
        return ("+I", "+U") if upserted(self.key) else ("+I", "-U", "+U")

    def changes_for(self, ttls: Sequence[float], inputs: Sequence[RowKinds]) -> float:
        # The first row of a key by arrival never changes.
        never = self.keep == "first" and self.time is None
        return 0.0 if never else ttls[0]

    def describe(self, plan: Declared) -> str:
        order = "BY ARRIVAL" if self.time is None else f"BY {self.time}"
        return f"{self.keep.upper()} ROW OF EACH {', '.join(self.key)} {order}"

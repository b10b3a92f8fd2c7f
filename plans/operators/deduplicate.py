"""``deduplicate``: passes on the first or the last row of each key."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Literal

from hintplan.plans.declarations.fields import Changelog, Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKind, RowKinds
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.spec.columns import check_known, parse, types_of
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.kind import OperatorKind, WithSettings, in_order, of_input
from hintplan.plans.operators.spec.state import (
    KeysUpserted,
    StateKind,
    States,
    all_facts,
    its_own_ttl,
    stated,
    unbounded,
    waits_for_none,
)
from hintplan.plans.settings.layers import Settings


@frozen
class Deduplicate(WithSettings):
    """Passes on the first or the last row of each ``key`` (Flink's Deduplicate), by ``time`` or else by arrival.

    Among rows with the same time, the order of arrival decides. NULL precedes all times.
    """

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The columns of PARTITION BY.", {"minItems": 1, "uniqueItems": True}]
    time: Annotated[Name | None, "The column with the time of a row; absent for the order of arrival."] = None
    keep: Annotated[Literal["first", "last"], "Which row of a key is passed on."]
    changelog: Changelog
    state: Annotated[States, "deduplicateState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)


def _check(operator: Deduplicate, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    types = types_of(inputs[0])
    yield from check_known(operator.key, types, f"{path}.key", "key column")
    if operator.time is not None:
        unknown = list(check_known([operator.time], types, f"{path}.time", "column of the input"))
        yield from unknown
        if not unknown and parse(types[operator.time]).root not in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            message = f"expected a TIMESTAMP or TIMESTAMP_LTZ column, but '{operator.time}' is {types[operator.time]}"
            yield Diagnostic(message=message, path=f"{path}.time")


def _check_mode(operator: Deduplicate, plan: Declared, path: str) -> Iterator[Diagnostic]:
    if plan.mode == "batch" and operator.time is None:
        hint = "order by a column with the time of a row"
        yield Diagnostic(message="rows of a batch job have no order of arrival", path=path, hint=hint)


def _changelog(operator: Deduplicate, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
    if operator.keep == "first" and operator.time is None:
        return INSERT_ONLY
    return ("+I", "+U") if upserted(operator.key) else ("+I", "-U", "+U")


def _takes(operator: Deduplicate, plan: Declared) -> Collection[RowKind]:
    return INSERT_ONLY


def _changes_for(operator: Deduplicate, lasts: Sequence[float], inputs: Sequence[RowKinds]) -> float:
    # The first row of a key by arrival never changes.
    never = operator.keep == "first" and operator.time is None
    return 0.0 if never else its_own_ttl(operator, lasts, inputs)


def _describe(operator: Deduplicate, plan: Declared) -> str:
    order = "BY ARRIVAL" if operator.time is None else f"BY {operator.time}"
    return f"{operator.keep.upper()} ROW OF EACH {', '.join(operator.key)} {order}"


DEDUPLICATE = OperatorKind(
    op="deduplicate",
    cls=Deduplicate,
    title="deduplicate",
    description="Passes on the first or the last row of each key; keeps a row for each.",
    state=StateKind(
        names=("deduplicateState",),
        changelog=_changelog,
        facts=all_facts,
        holds="rows",
        grows_by="key",
        bounded=unbounded,
        changes_for=_changes_for,
        added_rows_find="what they change",
        waits_as=waits_for_none,
    ),
    columns=of_input,
    check=_check,
    check_mode=_check_mode,
    row_kinds=stated,
    takes=_takes,
    reads_order=in_order,
    describe=_describe,
)

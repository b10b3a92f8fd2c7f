"""``rank``: passes on the first N rows of each key in an order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Literal, Protocol

from hintplan.plans.declarations.computations import SortKey
from hintplan.plans.declarations.fields import Changelog, Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, check_names, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.stateful import KeysUpserted, Stateful, States
from hintplan.plans.operators.sort import check_order, describe_order
from hintplan.plans.settings.layers import Settings

NUMBER_TYPE = "BIGINT NOT NULL"


@frozen
class Rank(Stateful):
    """Numbers the rows of each ``key`` by ``order``, and passes on the rows from ``rank_start`` to ``rank_end``.

    A ``rank_end`` that is a name is a column of ``key``, whose value is the last number for this key. Among rows that
    are equal in the order, the row that arrived first has the lowest number; with ``arrival`` last, the row that
    arrived last. ``number`` is an additional column, BIGINT NOT NULL, with the number of a row. Flink's Rank with
    ROW_NUMBER, SortLimit and Limit.
    """

    op = "rank"
    title = "rank"
    description = "Passes on the first N rows of each key in an order; keeps the rows that can become one of them."
    state_names = ("rankState",)
    state_holds = "rows"
    state_grows_by = "row"

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The columns of PARTITION BY; empty for all rows together.", {"uniqueItems": True}]
    order: Annotated[tuple[SortKey, ...], "The sort keys, most significant first; empty for the order of arrival."]
    arrival: Annotated[
        Literal["first", "last"],
        "The row with the lower number among rows with equal sort keys: the first or the last to arrive.",
    ] = "first"
    rank_start: Annotated[int, "The number of the first row of a key that is passed on.", {"minimum": 1}]
    rank_end: Annotated[
        int | str,
        "The largest row number that passes, or the column of the key that holds it.",
        {"minimum": 1, "minLength": 1},
    ]
    number: Annotated[Name | None, "The name of the column with a row's number; absent if nobody reads it."] = None
    changelog: Changelog
    state: Annotated[States, "rankState."]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def keeps_what_came(self) -> bool:
        """True if rows that are added later never displace a row that was passed on."""
        return not self.order and self.arrival == "first"

    @property
    def reads_order(self) -> bool:
        return True

    def output_columns(self, inputs: Inputs) -> Columns:
        return inputs.only if self.number is None else (*inputs.only, Column(name=self.number, type=NUMBER_TYPE))

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_known(self.key, types, f"{self.path}.key", "key column")
        yield from check_order(self.order, types, self.path)
        if isinstance(self.rank_end, str):
            yield from _check_end(self, self.rank_end, types, f"{self.path}.rank-end")
        elif self.rank_end < self.rank_start:
            message = f"no row has a number from {self.rank_start} to {self.rank_end}"
            yield Diagnostic(message=message, path=f"{self.path}.rank-end", hint="compile the SQL again")
        if self.number is not None:
            yield from check_names([*types, self.number], self.path, "number")

    def check_mode(self, plan: Declared) -> Iterator[Diagnostic]:
        if plan.mode == "batch" and (not self.order or self.arrival == "last"):
            message, hint = "rows of a batch job have no order of arrival", "order by a column"
            yield Diagnostic(message=message, path=f"{self.path}.{'arrival' if self.order else 'order'}", hint=hint)

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        if self.keeps_what_came and inputs == INSERT_ONLY:
            return INSERT_ONLY  # the first rows by arrival never change
        if self.number is None and self.rank_start != self.rank_end:
            return ("+I", "-D")
        kinds = {"+I", "+U"} if inputs == INSERT_ONLY else {"+I", "+U", "-D"}
        if not upserted(self.key if self.number is None else (*self.key, self.number)):
            kinds.add("-U")
        return tuple(kind for kind in ALL_KINDS if kind in kinds)

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        # State does not depend on the name of the number column.
        return {**facts, "number": self.number is not None}

    def changes_for(self, ttls: Sequence[float], inputs: Sequence[RowKinds]) -> float:
        only_adds = self.keeps_what_came and all(kinds == INSERT_ONLY for kinds in inputs)
        return 0.0 if only_adds else ttls[0]

    def describe(self, plan: Declared) -> str:
        return describe_rank(self)


class Ranked(Protocol):
    """The facts of an operator that numbers rows."""

    @property
    def key(self) -> tuple[str, ...]: ...

    @property
    def order(self) -> tuple[SortKey, ...]: ...

    @property
    def arrival(self) -> Literal["first", "last"]: ...

    @property
    def rank_start(self) -> int: ...

    @property
    def rank_end(self) -> int | str: ...

    @property
    def number(self) -> str | None: ...


def describe_rank(rank: Ranked) -> str:
    """Return the rows that are passed on, and their order, in words of SQL."""
    start, end = rank.rank_start, rank.rank_end
    rows = f"FIRST {end}" if start == 1 else f"ROW {end}" if start == end else f"ROWS {start} TO {end}"
    per_key = f" OF EACH {', '.join(rank.key)}" if rank.key else ""
    keys = [describe_order(rank.order)] if rank.order else []
    if rank.arrival == "last":
        keys.append("ARRIVAL DESC")
    order = f" BY {', '.join(keys) or 'ARRIVAL'}"
    number = "" if rank.number is None else f" AS {rank.number}"
    return f"{rows}{per_key}{order}{number}"


def _check_end(rank: Rank, end: str, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    hint = "compile the SQL again"
    if end not in rank.key:
        yield Diagnostic(message=f"'{end}' is no column of the key", path=path, hint=hint)
    elif end in types and not parse_type(types[end]).is_integer:
        yield Diagnostic(message=f"'{end}' is {types[end]}, no whole number", path=path, hint=hint)

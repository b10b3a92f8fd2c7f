"""``rank``: passes on the first N rows of each key in an order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Literal

from hintplan.plans.declarations.computations import SortKey
from hintplan.plans.declarations.fields import Changelog, Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.sort import check_order, describe_order
from hintplan.plans.operators.spec.columns import check_known, check_names, types_of
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.kind import OperatorKind, WithSettings, in_order
from hintplan.plans.operators.spec.state import (
    KeysUpserted,
    StateKind,
    States,
    its_own_ttl,
    stated,
    unbounded,
    waits_for_none,
)
from hintplan.plans.settings.layers import Settings

NUMBER_TYPE = "BIGINT NOT NULL"


@frozen
class Rank(WithSettings):
    """Numbers the rows of each ``key`` by ``order``, and passes on the rows from ``rank_start`` to ``rank_end``.

    A ``rank_end`` that is a name is a column of ``key``, whose value is the last number for this key. Among rows that
    are equal in the order, the row that arrived first has the lowest number; with ``arrival`` last, the row that
    arrived last. ``number`` is an additional column, BIGINT NOT NULL, with the number of a row. Flink's Rank with
    ROW_NUMBER, SortLimit and Limit.
    """

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The columns of PARTITION BY; empty for all rows together.", {"uniqueItems": True}]
    order: Annotated[
        tuple[SortKey, ...], "What rows are numbered by, first the most significant; empty for the order of arrival."
    ]
    arrival: Annotated[
        Literal["first", "last"],
        "Which of rows that the order does not tell apart has the lower number: the one that arrived first or last.",
    ] = "first"
    rank_start: Annotated[int, "The number of the first row of a key that is passed on.", {"minimum": 1}]
    rank_end: Annotated[
        int | str,
        "The number of the last row of a key that is passed on, or the column of the key that holds it.",
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


def _columns(rank: Rank, inputs: Sequence[Columns], plan: Declared) -> Columns:
    return inputs[0] if rank.number is None else (*inputs[0], Column(name=rank.number, type=NUMBER_TYPE))


def _check(rank: Rank, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    types = types_of(inputs[0])
    yield from check_known(rank.key, types, f"{path}.key", "key column")
    yield from check_order(rank.order, types, path)
    if isinstance(rank.rank_end, str):
        yield from _check_end(rank, rank.rank_end, types, f"{path}.rank-end")
    elif rank.rank_end < rank.rank_start:
        message = f"no row has a number from {rank.rank_start} to {rank.rank_end}"
        yield Diagnostic(message=message, path=f"{path}.rank-end", hint="compile the SQL again")
    if rank.number is not None:
        yield from check_names([*types, rank.number], path, "number")


def _check_end(rank: Rank, end: str, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    hint = "compile the SQL again"
    if end not in rank.key:
        yield Diagnostic(message=f"'{end}' is no column of the key", path=path, hint=hint)
    elif end in types and not parse_type(types[end]).is_integer:
        yield Diagnostic(message=f"'{end}' is {types[end]}, no whole number", path=path, hint=hint)


def _check_mode(rank: Rank, plan: Declared, path: str) -> Iterator[Diagnostic]:
    if plan.mode == "batch" and (not rank.order or rank.arrival == "last"):
        message, hint = "rows of a batch job have no order of arrival", "order by a column"
        yield Diagnostic(message=message, path=f"{path}.{'arrival' if rank.order else 'order'}", hint=hint)


def _changelog(rank: Rank, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
    if rank.keeps_what_came and inputs == INSERT_ONLY:
        return INSERT_ONLY  # the first rows by arrival never change
    if rank.number is None and rank.rank_start != rank.rank_end:
        return ("+I", "-D")
    kinds = {"+I", "+U"} if inputs == INSERT_ONLY else {"+I", "+U", "-D"}
    if not upserted(rank.key if rank.number is None else (*rank.key, rank.number)):
        kinds.add("-U")
    return tuple(kind for kind in ALL_KINDS if kind in kinds)


def _state_facts(rank: Rank, facts: dict[str, Any]) -> dict[str, Any]:
    # State does not depend on the name of the number column.
    return {**facts, "number": rank.number is not None}


def _changes_for(rank: Rank, lasts: Sequence[float], inputs: Sequence[RowKinds]) -> float:
    only_adds = rank.keeps_what_came and all(kinds == INSERT_ONLY for kinds in inputs)
    return 0.0 if only_adds else its_own_ttl(rank, lasts, inputs)


def _describe(rank: Rank, plan: Declared) -> str:
    start, end = rank.rank_start, rank.rank_end
    rows = f"FIRST {end}" if start == 1 else f"ROW {end}" if start == end else f"ROWS {start} TO {end}"
    per_key = f" OF EACH {', '.join(rank.key)}" if rank.key else ""
    keys = [describe_order(rank.order)] if rank.order else []
    if rank.arrival == "last":
        keys.append("ARRIVAL DESC")
    order = f" BY {', '.join(keys) or 'ARRIVAL'}"
    number = "" if rank.number is None else f" AS {rank.number}"
    return f"{rows}{per_key}{order}{number}"


RANK = OperatorKind(
    op="rank",
    cls=Rank,
    title="rank",
    description="Passes on the rows of each key that have the first numbers in an order; keeps those that can have.",
    state=StateKind(
        names=("rankState",),
        changelog=_changelog,
        facts=_state_facts,
        holds="rows",
        grows_by="row",
        bounded=unbounded,
        changes_for=_changes_for,
        added_rows_find="what they change",
        waits_as=waits_for_none,
    ),
    columns=_columns,
    check=_check,
    check_mode=_check_mode,
    row_kinds=stated,
    reads_order=in_order,
    describe=_describe,
)

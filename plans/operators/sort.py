"""``sort``: ORDER BY, OFFSET and LIMIT of a batch job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated

from hintplan.plans.declarations.computations import SortKey
from hintplan.plans.declarations.fields import OneInput, OperatorId
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.spec.columns import check_known, parse, types_of
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.kind import OperatorKind, WithSettings, any_order, of_input, unchanged
from hintplan.plans.settings.layers import Settings

UNSORTABLE = ("ARRAY", "MAP", "MULTISET", "ROW")
MOST_ROWS = 2**31 - 1
"""The maximum of LIMIT and OFFSET: Spark counts the rows of a result in 32 bits."""


@frozen
class Sort(WithSettings):
    """Sorts by ``order``, skips ``offset`` rows and passes on up to ``limit`` of the remaining rows. Batch only.

    An empty ``order`` passes on any rows; without ``limit`` all rows pass. The columns are the columns of the input.
    """

    id: OperatorId
    inputs: OneInput
    order: Annotated[tuple[SortKey, ...], "What is sorted by, first the most significant; empty for any order."]
    offset: Annotated[int, "The number of rows to skip.", {"minimum": 0}]
    limit: Annotated[int | None, "The largest number of rows to pass on; null for all.", {"minimum": 0}]
    settings: Mapping[str, Settings] = field(default_factory=dict)


def _check(sort: Sort, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    yield from check_order(sort.order, types_of(inputs[0]), path)


def check_order(order: Sequence[SortKey], types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    """Yield the problems of an ``order`` over columns of these types; ``path`` is the operator's path."""
    seen = set[str]()
    for index, key in enumerate(order):
        here = f"{path}.order[{index}].column"
        unknown = list(check_known([key.column], types, here, "column of the input"))
        yield from unknown
        if not unknown and parse(types[key.column]).root in UNSORTABLE:
            yield Diagnostic(message=f"'{key.column}' is {types[key.column]}, which has no order", path=here)
        if key.column in seen:
            yield Diagnostic(message=f"'{key.column}' is sorted by twice", path=here, hint="remove the second")
        seen.add(key.column)


def _check_mode(sort: Sort, plan: Declared, path: str) -> Iterator[Diagnostic]:
    if plan.mode != "batch":
        message = "a stream of changes has no order and no end: it cannot be sorted or cut off"
        yield Diagnostic(message=message, path=path, hint="compile the SQL with -c execution.runtime-mode=batch")
    elif not sort.order and not sort.offset and sort.limit is None:
        hint = "remove the operator, or give it an order, an offset or a limit"
        yield Diagnostic(message="this sort does nothing", path=path, hint=hint)
    elif max(sort.offset, sort.limit or 0) > MOST_ROWS:
        message = f"'offset' and 'limit' are at most {MOST_ROWS}"
        yield Diagnostic(message=message, path=path, hint="write less; null is no limit")


def _describe(sort: Sort, plan: Declared) -> str:
    parts = [f"ORDER BY {describe_order(sort.order)}"] if sort.order else []
    parts += [f"OFFSET {sort.offset}"] if sort.offset else []
    parts += [f"LIMIT {sort.limit}"] if sort.limit is not None else []
    return " · ".join(parts)


def describe_order(order: Sequence[SortKey]) -> str:
    """Return an order in words of SQL."""
    return ", ".join(f"{key.column} {key.direction.upper()} NULLS {key.nulls.upper()}" for key in order)


SORT = OperatorKind(
    op="sort",
    cls=Sort,
    title="sort",
    description="Sorts, skips 'offset' rows and passes on up to 'limit' of the rest. Batch only.",
    columns=of_input,
    check=_check,
    row_kinds=unchanged,
    reads_order=any_order,
    check_mode=_check_mode,
    describe=_describe,
)

"""``sort``: ORDER BY, OFFSET and LIMIT of a batch job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated

from hintplan.plans.declarations.computations import SortKey
from hintplan.plans.declarations.fields import OneInput, OperatorId
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, parse, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Operator
from hintplan.plans.settings.layers import Settings

UNSORTABLE = ("ARRAY", "MAP", "MULTISET", "ROW")
MOST_ROWS = 2**31 - 1
"""The maximum of LIMIT and OFFSET: Spark counts the rows of a result in 32 bits."""


@frozen
class Sort(Operator):
    """Sorts by ``order``, skips ``offset`` rows and passes on up to ``limit`` of the remaining rows. Batch only.

    An empty ``order`` passes on any rows; without ``limit`` all rows pass. The columns are the columns of the input.
    """

    op = "sort"
    title = "sort"
    description = "Sorts, skips 'offset' rows and passes on up to 'limit' of the rest. Batch only."

    id: OperatorId
    inputs: OneInput
    order: Annotated[tuple[SortKey, ...], "The sort keys, most significant first; empty for any order."]
    offset: Annotated[int, "The number of rows to skip.", {"minimum": 0}]
    limit: Annotated[int | None, "The largest number of rows to pass on; null for all.", {"minimum": 0}]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        return inputs.only

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        yield from check_order(self.order, types_of(inputs.only), self.path)

    def check_mode(self, plan: Declared) -> Iterator[Diagnostic]:
        if plan.mode != "batch":
            message = "a stream of changes has no order and no end: it cannot be sorted or cut off"
            yield Diagnostic(
                message=message, path=self.path, hint="compile the SQL with -c execution.runtime-mode=batch"
            )
        elif not self.order and not self.offset and self.limit is None:
            hint = "remove the operator, or give it an order, an offset or a limit"
            yield Diagnostic(message="this sort does nothing", path=self.path, hint=hint)
        elif max(self.offset, self.limit or 0) > MOST_ROWS:
            message = f"'offset' and 'limit' are at most {MOST_ROWS}"
            yield Diagnostic(message=message, path=self.path, hint="write less; null is no limit")

    def describe(self, plan: Declared) -> str:
        parts = [f"ORDER BY {describe_order(self.order)}"] if self.order else []
        parts += [f"OFFSET {self.offset}"] if self.offset else []
        parts += [f"LIMIT {self.limit}"] if self.limit is not None else []
        return " · ".join(parts)


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


def describe_order(order: Sequence[SortKey]) -> str:
    """Return an order in words of SQL."""
    return ", ".join(f"{key.column} {key.direction.upper()} NULLS {key.nulls.upper()}" for key in order)

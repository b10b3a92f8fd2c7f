"""Typed expressions over rows, which evaluate no more than SQL allows.

An operand that can fail is evaluated only for the rows that reach it behind CASE, COALESCE, AND or OR. In ``g <> 0 AND
x div g > 1``, rows whose ``g`` is zero never divide. An operand that cannot fail is evaluated for all rows, which is
faster.

An expression is a tree of nodes that travels to the workers. A node has a type, and returns an array, or a scalar if
all rows have the same value. This module knows no SQL text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.errors import RunError
from hintplan.runtime.kernels.conversion import Value
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s


class EvaluatedRows:
    """Columns by name; each is fetched on its first use."""

    def __init__(self, column: Callable[[str], pa.Array], size: int) -> None:
        self._column = column
        self._taken: dict[str, pa.Array] = {}
        self.size = size

    def column(self, name: str) -> pa.Array:
        column = self._taken.get(name)
        if column is None:
            column = self._taken[name] = self._column(name)
        return column

    def at(self, places: Int64s) -> EvaluatedRows:
        """Return the rows at ``places``."""
        chosen = pa.array(places)
        return EvaluatedRows(lambda name: self.column(name).take(chosen), len(places))


def _inherit(node: Node, parts: Sequence[Node], *, fails: bool = False, slow: bool = False) -> None:
    """Set the properties that ``node`` inherits from its parts: whether it can fail, and whether it runs row by row."""
    object.__setattr__(node, "may_fail", fails or any(part.may_fail for part in parts))
    object.__setattr__(node, "by_row", slow or any(part.by_row for part in parts))


def as_array(value: Value, size: int) -> pa.Array:
    return pa.repeat(value, size) if isinstance(value, pa.Scalar) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The column ``name``."""

    name: str
    kind: pa.DataType
    may_fail: bool = False
    by_row: bool = False

    def on(self, rows: EvaluatedRows) -> Value:
        return rows.column(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    value: pa.Scalar
    may_fail: bool = False
    by_row: bool = False

    @property
    def kind(self) -> pa.DataType:
        return self.value.type

    def on(self, rows: EvaluatedRows) -> Value:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """A function of all ``args``. Most functions return NULL for a NULL.

    ``fails`` is True if the function raises ArithmeticError for some values; the error then names ``text``. ``slow`` is
    True if it runs row by row.
    """

    function: Callable[..., Value]
    args: tuple[Node, ...]
    kind: pa.DataType
    text: str
    fails: bool = False
    slow: bool = False
    may_fail: bool = field(init=False)
    by_row: bool = field(init=False)

    def __post_init__(self) -> None:
        _inherit(self, self.args, fails=self.fails, slow=self.slow)

    def on(self, rows: EvaluatedRows) -> Value:
        values = [arg.on(rows) for arg in self.args]
        try:
            return self.function(*values)
        except ArithmeticError as error:
            raise RunError(f"{self.text}: {error}", hint="let CASE WHEN choose the rows that it fits") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    """``AND`` of all parts if ``every``, else ``OR``; once a part settles the result, later parts are not evaluated.

    ``chooses`` is True if the caller only needs to know whether an AND is true. Then NULL settles it too, and the
    result may be false instead of NULL.
    """

    every: bool
    parts: tuple[Node, ...]
    chooses: bool = False
    may_fail: bool = field(init=False)
    by_row: bool = field(init=False)

    @property
    def kind(self) -> pa.DataType:
        return pa.bool_()

    def __post_init__(self) -> None:
        _inherit(self, self.parts)

    def on(self, rows: EvaluatedRows) -> Value:
        join = pc.and_kleene if self.every else pc.or_kleene
        value = self.parts[0].on(rows)
        for part in self.parts[1:]:
            value = join(value, self._unsettled(part, value, rows) if part.may_fail else part.on(rows))
        return value

    def _unsettled(self, part: Node, value: Value, rows: EvaluatedRows) -> Value:
        settled = pa.scalar(not self.every)
        unsettled = pc.fill_null(pc.not_equal(as_array(value, rows.size), settled), not self.chooses)
        places = np.flatnonzero(unsettled)
        if len(places) == rows.size:
            return part.on(rows)
        if not len(places):
            return settled
        values = as_array(part.on(rows.at(places)), len(places))
        return pc.replace_with_mask(pa.repeat(settled, rows.size), unsettled, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """``CASE WHEN``: the value of the first branch whose condition is true; all values have one type."""

    branches: tuple[tuple[Node, Node], ...]
    default: Node
    may_fail: bool = field(init=False)
    by_row: bool = field(init=False)

    @property
    def kind(self) -> pa.DataType:
        return self.default.kind

    def __post_init__(self) -> None:
        _inherit(self, (*(node for branch in self.branches for node in branch), self.default))

    def on(self, rows: EvaluatedRows) -> Value:
        if self.may_fail:
            return self._in_turn(rows)
        value = self.default.on(rows)
        for condition, chosen in reversed(self.branches):
            value = pc.if_else(pc.fill_null(condition.on(rows), False), chosen.on(rows), value)
        return value

    def _in_turn(self, rows: EvaluatedRows) -> pa.Array:
        places: list[Int64s] = []
        values = []
        remaining, left = rows, np.arange(rows.size, dtype=np.int64)

        def take(node: Node, chosen: Mask) -> None:
            rows_of_branch = np.flatnonzero(chosen)
            if len(rows_of_branch):
                places.append(left[rows_of_branch])
                branch_rows = remaining if len(rows_of_branch) == remaining.size else remaining.at(rows_of_branch)
                values.append(as_array(node.on(branch_rows), len(rows_of_branch)))

        for condition, chosen in self.branches:
            if not remaining.size:
                break
            holds = np.asarray(pc.fill_null(as_array(condition.on(remaining), remaining.size), False))
            take(chosen, holds)
            left = left[~holds]
            remaining = remaining.at(np.flatnonzero(~holds))
        take(self.default, np.ones(remaining.size, np.bool_))
        order = np.argsort(np.concatenate(places))
        return pa.concat_arrays(values).take(pa.array(order))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coalesce:
    """The first value that is not NULL, all of one type; later parts are not evaluated."""

    parts: tuple[Node, ...]
    may_fail: bool = field(init=False)
    by_row: bool = field(init=False)

    @property
    def kind(self) -> pa.DataType:
        return self.parts[0].kind

    def __post_init__(self) -> None:
        _inherit(self, self.parts)

    def on(self, rows: EvaluatedRows) -> Value:
        value = self.parts[0].on(rows)
        for part in self.parts[1:]:
            if not part.may_fail:
                value = pc.coalesce(value, part.on(rows))
                continue
            value = as_array(value, rows.size)
            lacking = pc.is_null(value)
            places = np.flatnonzero(lacking)
            if len(places):
                substitutes = as_array(part.on(rows.at(places)), len(places))
                value = pc.replace_with_mask(value, lacking, substitutes)
        return value


Node = Read | Constant | Apply | Connect | Choose | Coalesce

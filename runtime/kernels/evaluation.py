"""A typed expression over rows, which computes no more than SQL says that it does.

What CASE, COALESCE, AND or OR guard is computed only for the rows that get there, if it can fail: of ``g <> 0 AND x
div g > 1``, rows whose ``g`` is zero never divide. What cannot fail is computed for all rows, which is faster. An
expression is a tree of nodes that travels to the workers; a node has a type, and gives an array, or a scalar if it is
the same for all rows. Knows no SQL text.
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


class Rows:
    """Columns by name, each taken when it is asked for first."""

    def __init__(self, column: Callable[[str], pa.Array], size: int) -> None:
        self._column = column
        self._taken: dict[str, pa.Array] = {}
        self.size = size

    def column(self, name: str) -> pa.Array:
        found = self._taken.get(name)
        if found is None:
            found = self._taken[name] = self._column(name)
        return found

    def at(self, places: Int64s) -> Rows:
        """The rows at ``places``."""
        chosen = pa.array(places)
        return Rows(lambda name: self.column(name).take(chosen), len(places))


def _inherit(node: Node, parts: Sequence[Node], *, fails: bool = False, slow: bool = False) -> None:
    """Set what ``node`` has from its parts: whether it can fail, and whether it takes one row after the other."""
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

    def on(self, rows: Rows) -> Value:
        return rows.column(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    value: pa.Scalar
    may_fail: bool = False
    by_row: bool = False

    @property
    def kind(self) -> pa.DataType:
        return self.value.type

    def on(self, rows: Rows) -> Value:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """A function of all of ``args``: NULL for a NULL unless it says otherwise.

    ``fails`` says that it raises ArithmeticError for some values; ``text`` is what to name then. ``slow`` says that it
    takes one row after the other.
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

    def on(self, rows: Rows) -> Value:
        values = [arg.on(rows) for arg in self.args]
        try:
            return self.function(*values)
        except ArithmeticError as error:
            raise RunError(f"{self.text}: {error}", hint="let CASE WHEN choose the rows that it fits") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    """``AND`` of all parts if ``every``, else ``OR``; what follows a part that settles it is not computed.

    ``chooses`` says of an AND that it only matters whether it is true: then NULL settles it, too, and may be false.
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

    def on(self, rows: Rows) -> Value:
        join = pc.and_kleene if self.every else pc.or_kleene
        value = self.parts[0].on(rows)
        for part in self.parts[1:]:
            value = join(value, self._unsettled(part, value, rows) if part.may_fail else part.on(rows))
        return value

    def _unsettled(self, part: Node, value: Value, rows: Rows) -> Value:
        settled = pa.scalar(not self.every)
        unsettled = pc.fill_null(pc.not_equal(as_array(value, rows.size), settled), not self.chooses)
        places = np.flatnonzero(unsettled)
        if len(places) == rows.size:
            return part.on(rows)
        if not len(places):
            return settled
        found = as_array(part.on(rows.at(places)), len(places))
        return pc.replace_with_mask(pa.repeat(settled, rows.size), unsettled, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """``CASE WHEN``: the value of the first branch whose condition is true; all values are of one type."""

    branches: tuple[tuple[Node, Node], ...]
    default: Node
    may_fail: bool = field(init=False)
    by_row: bool = field(init=False)

    @property
    def kind(self) -> pa.DataType:
        return self.default.kind

    def __post_init__(self) -> None:
        _inherit(self, (*(node for branch in self.branches for node in branch), self.default))

    def on(self, rows: Rows) -> Value:
        if self.may_fail:
            return self._in_turn(rows)
        value = self.default.on(rows)
        for condition, chosen in reversed(self.branches):
            value = pc.if_else(pc.fill_null(condition.on(rows), False), chosen.on(rows), value)
        return value

    def _in_turn(self, rows: Rows) -> pa.Array:
        places: list[Int64s] = []
        values = []
        rest, left = rows, np.arange(rows.size, dtype=np.int64)

        def take(node: Node, chosen: Mask) -> None:
            which = np.flatnonzero(chosen)
            if len(which):
                places.append(left[which])
                some = rest if len(which) == rest.size else rest.at(which)
                values.append(as_array(node.on(some), len(which)))

        for condition, chosen in self.branches:
            if not rest.size:
                break
            holds = np.asarray(pc.fill_null(as_array(condition.on(rest), rest.size), False))
            take(chosen, holds)
            left = left[~holds]
            rest = rest.at(np.flatnonzero(~holds))
        take(self.default, np.ones(rest.size, np.bool_))
        order = np.argsort(np.concatenate(places))
        return pa.concat_arrays(values).take(pa.array(order))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coalesce:
    """The first value that is not NULL, all of one type; what follows it is not computed."""

    parts: tuple[Node, ...]
    may_fail: bool = field(init=False)
    by_row: bool = field(init=False)

    @property
    def kind(self) -> pa.DataType:
        return self.parts[0].kind

    def __post_init__(self) -> None:
        _inherit(self, self.parts)

    def on(self, rows: Rows) -> Value:
        value = self.parts[0].on(rows)
        for part in self.parts[1:]:
            if not part.may_fail:
                value = pc.coalesce(value, part.on(rows))
                continue
            value = as_array(value, rows.size)
            lacking = pc.is_null(value)
            places = np.flatnonzero(lacking)
            if len(places):
                found = as_array(part.on(rows.at(places)), len(places))
                value = pc.replace_with_mask(value, lacking, found)
        return value


Node = Read | Constant | Apply | Connect | Choose | Coalesce

"""Calls of user-defined aggregate functions: they accumulate rows, merge accumulators, and return values.

Between calls, accumulators are values of their declared type in Arrow columns. During the calls for a batch they are
Python values, in which a ROW is a list. Accumulators are checked against their type when they go back to Arrow. This
module knows neither state nor operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.functions.api import AggregateFunction
from hintplan.runtime.functions.call import Blame, call_text, short_text
from hintplan.runtime.functions.rows import ReturnedRows, returned_rows
from hintplan.runtime.functions.spec import CalledFunction
from hintplan.runtime.functions.worker import OpenFunction, shared_function
from hintplan.runtime.kernels.accumulators import GivenRows
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.types import to_arrow
from hintplan.runtime.worker.values import row_values

_IN_PLACE = ("ROW", "ARRAY", "MAP", "MULTISET")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAggregate:
    """An aggregate function as kernels call it; picklable, and opened at its first call."""

    called: CalledFunction

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of an accumulator."""
        return to_arrow(self.called.accumulator or "")

    @property
    def merges(self) -> bool:
        """True if the function can merge accumulators."""
        return "merge" in self.called.methods

    def folded(self, rows: GivenRows, old: pa.Array, live: Mask) -> pa.Array:
        """Return the accumulators of all groups after ``rows``; ``old`` ones are valid for groups that are ``live``."""
        arguments = rows.tuples()
        place = 0
        with self._function(lambda: call_text(self.called.policy, arguments[place])) as opened:
            function: Any = opened.function
            held = self._held(function, old, live)
            signs = [1] * len(arguments) if rows.weights is None else rows.weights.tolist()
            calls = zip(rows.groups.tolist(), signs, rows.used.tolist(), strict=True)
            for place, (group, sign, used) in enumerate(calls):
                if not used:
                    continue
                call = function.accumulate if sign > 0 else function.retract
                held[group] = self._kept(held[group], call(held[group], *arguments[place]), call)
        return self._stored(held)

    def merged(self, groups: Int64s, parts: pa.Array, old: pa.Array, live: Mask) -> pa.Array:
        """Return the accumulators of all groups after a merge with ``parts``, of which ``groups`` has the groups."""
        parts_by_group: list[list[Any]] = [[] for _ in live]
        for group, part in zip(groups.tolist(), self._read(parts), strict=True):
            parts_by_group[group].append(part)
        with self._function(
            lambda: f"{self._where()}: merging accumulators of {self.called.policy.function}"
        ) as opened:
            function: Any = opened.function
            held = self._held(function, old, live)
            for group, group_parts in enumerate(parts_by_group):
                if group_parts:
                    held[group] = self._kept(held[group], function.merge(held[group], group_parts), function.merge)
        return self._stored(held)

    def values(self, accumulators: pa.Array, wanted: Mask) -> pa.Array:
        """Return the results of the groups that are ``wanted``, NULL for the others."""
        places = np.flatnonzero(wanted)
        held = self._read(accumulators.take(pa.array(places)))

        def where(place: int) -> str:
            return f"{self._where()}: {self.called.policy.function} of the accumulator {short_text(held[place])}"

        result_rows: list[list[Any]] = []
        with self._function(lambda: where(len(result_rows))) as opened:
            function: Any = opened.function
            for accumulator in held:
                result_rows.append([function.get_value(accumulator)])
            results = opened.returned.arrow(result_rows, where).table.column(0).combine_chunks()
        spread = np.full(len(wanted), -1, np.int64)
        spread[places] = np.arange(len(places))
        return results.take(pa.array(spread, mask=~wanted))

    @contextmanager
    def _function(self, what: Callable[[], str]) -> Iterator[OpenFunction[CalledFunction]]:
        with shared_function(self.called) as opened, opened.lock, Blame(what):
            yield opened

    def _where(self) -> str:
        return f"operator {self.called.policy.operator}"

    def _created(self, function: AggregateFunction, number: int) -> list[Any]:
        """Return new accumulators, in the same form as accumulators from state."""
        return self._read(self._stored([function.create_accumulator() for _ in range(number)])) if number else []

    def _held(self, function: AggregateFunction, old: pa.Array, live: Mask) -> list[Any]:
        live_groups = np.flatnonzero(live)
        held: list[Any] = [None] * len(live)
        for group, accumulator in zip(live_groups.tolist(), self._read(old.take(pa.array(live_groups))), strict=True):
            held[group] = accumulator
        new_groups = np.flatnonzero(~live)
        for group, accumulator in zip(new_groups.tolist(), self._created(function, len(new_groups)), strict=True):
            held[group] = accumulator
        return held

    def _kept(self, accumulator: object, returned: object, method: Callable[..., object]) -> object:
        kind = _forms(self.called.accumulator or "").kind
        if kind.root not in _IN_PLACE:
            return returned
        if returned is not None and returned is not accumulator:
            raise RunError(
                f"{self._where()}: {method.__name__} of {self.called.policy.function} returned {short_text(returned)}, "
                f"but an accumulator of type {kind.root} is changed in place",
                hint="change the accumulator that it is given, and return nothing",
            )
        return accumulator

    def _read(self, stored: pa.Array) -> list[Any]:
        return [*map(_forms(self.called.accumulator or "").read, stored.to_pylist(maps_as_pydicts="strict"))]

    def _stored(self, held: Sequence[Any]) -> pa.Array:
        where = f"{self._where()}: accumulating with {self.called.policy.function}"
        forms = _forms(self.called.accumulator or "")
        rows = forms.rows.arrow([[accumulator] for accumulator in held], lambda _: where)
        return rows.table.column(0).combine_chunks()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Forms:
    """Conversions of accumulators of type ``kind``: ``rows`` to Arrow, ``read`` to the values that methods get."""

    kind: DataType
    rows: ReturnedRows
    read: Callable[[Any], Any]


@cache
def _forms(declared: str) -> _Forms:
    kind = parse_type(declared)
    return _Forms(kind=kind, rows=returned_rows(declared, "aggregate", ("accumulator",)), read=_reader(kind))


def _reader(kind: DataType) -> Callable[[Any], Any]:
    """Return a function that turns each ROW in a value from pyarrow into a list."""
    if not _has_rows(kind):
        return lambda value: value
    inside = [_reader(child) for child in kind.children]

    def read(value: Any) -> Any:
        if value is None:
            return None
        if kind.root == "ROW":
            return [read_part(item) for read_part, item in zip(inside, row_values(value, kind.names), strict=True)]
        if kind.root == "ARRAY":
            return [inside[0](item) for item in value]
        return {inside[0](key): inside[1](item) for key, item in value.items()}

    return read


def _has_rows(kind: DataType) -> bool:
    return kind.root == "ROW" or any(map(_has_rows, kind.children))

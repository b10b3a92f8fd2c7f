"""Calls of an aggregate function of the user's: rows are added to accumulators, these are merged, values are taken.

Accumulators stand in Arrow columns of their declared type between calls; for the calls of a batch they are Python
values, a ROW being a list. What a method leaves in them is checked against the type when they go back. Knows neither
state nor operators.
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
from hintplan.runtime.functions.failures import Blame, call_text, shown
from hintplan.runtime.functions.rows import ReturnedRows, returned_rows
from hintplan.runtime.functions.spec import CalledFunction
from hintplan.runtime.functions.worker import OpenFunction, acquired
from hintplan.runtime.kernels.accumulators import GivenRows
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.types import to_arrow
from hintplan.runtime.worker.values import row_values

_IN_PLACE = ("ROW", "ARRAY", "MAP", "MULTISET")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAggregate:
    """An aggregate function as kernels call it; picklable, and open where it is called first."""

    called: CalledFunction

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of an accumulator."""
        return to_arrow(self.called.accumulator or "")

    @property
    def merges(self) -> bool:
        """Whether accumulators can be put together."""
        return "merge" in self.called.methods

    def folded(self, rows: GivenRows, old: pa.Array, live: Mask) -> pa.Array:
        """The accumulators of all groups with ``rows``, from the ``old`` ones of groups that are ``live``."""
        arguments = rows.tuples()
        place = 0
        with self._function(lambda: call_text(self.called.policy, arguments[place])) as opened:
            function: Any = opened.function
            held = self._held(function, old, live)
            signs = [1] * len(arguments) if rows.weights is None else rows.weights.tolist()
            given = zip(rows.groups.tolist(), signs, rows.used.tolist(), strict=True)
            for place, (group, sign, used) in enumerate(given):
                if not used:
                    continue
                call = function.accumulate if sign > 0 else function.retract
                held[group] = self._kept(held[group], call(held[group], *arguments[place]), call)
        return self._stored(held)

    def merged(self, groups: Int64s, parts: pa.Array, old: pa.Array, live: Mask) -> pa.Array:
        """The accumulators of all groups with those in ``parts``, each of one of ``groups``."""
        others: list[list[Any]] = [[] for _ in live]
        for group, part in zip(groups.tolist(), self._read(parts), strict=True):
            others[group].append(part)
        with self._function(
            lambda: f"{self._where()}: merging accumulators of {self.called.policy.function}"
        ) as opened:
            function: Any = opened.function
            held = self._held(function, old, live)
            for group, found in enumerate(others):
                if found:
                    held[group] = self._kept(held[group], function.merge(held[group], found), function.merge)
        return self._stored(held)

    def values(self, accumulators: pa.Array, wanted: Mask) -> pa.Array:
        """The results of the groups that are ``wanted``, NULL for the others."""
        places = np.flatnonzero(wanted)
        held = self._read(accumulators.take(pa.array(places)))

        def where(place: int) -> str:
            return f"{self._where()}: {self.called.policy.function} of the accumulator {shown(held[place])}"

        found: list[list[Any]] = []
        with self._function(lambda: where(len(found))) as opened:
            function: Any = opened.function
            for accumulator in held:
                found.append([function.get_value(accumulator)])
            results = opened.returned.arrow(found, where).table.column(0).combine_chunks()
        spread = np.full(len(wanted), -1, np.int64)
        spread[places] = np.arange(len(places))
        return results.take(pa.array(spread, mask=~wanted))

    @contextmanager
    def _function(self, what: Callable[[], str]) -> Iterator[OpenFunction[CalledFunction]]:
        with acquired(self.called) as opened, opened.lock, Blame(what):
            yield opened

    def _where(self) -> str:
        return f"operator {self.called.policy.operator}"

    def _created(self, function: AggregateFunction, number: int) -> list[Any]:
        """New accumulators, in the form that those have which come from state."""
        return self._read(self._stored([function.create_accumulator() for _ in range(number)])) if number else []

    def _held(self, function: AggregateFunction, old: pa.Array, live: Mask) -> list[Any]:
        there = np.flatnonzero(live)
        held: list[Any] = [None] * len(live)
        for group, accumulator in zip(there.tolist(), self._read(old.take(pa.array(there))), strict=True):
            held[group] = accumulator
        new = np.flatnonzero(~live)
        for group, accumulator in zip(new.tolist(), self._created(function, len(new)), strict=True):
            held[group] = accumulator
        return held

    def _kept(self, accumulator: Any, returned: Any, method: Callable[..., Any]) -> Any:
        kind = _forms(self.called.accumulator or "").kind
        if kind.root not in _IN_PLACE:
            return returned
        if returned is not None and returned is not accumulator:
            raise RunError(
                f"{self._where()}: {method.__name__} of {self.called.policy.function} returned {shown(returned)}, "
                f"but an accumulator of type {kind.root} is changed in place",
                hint="change the accumulator that it is given, and return nothing",
            )
        return accumulator

    def _read(self, stored: pa.Array) -> list[Any]:
        return [*map(_forms(self.called.accumulator or "").read, stored.to_pylist(maps_as_pydicts="strict"))]

    def _stored(self, held: Sequence[Any]) -> pa.Array:
        where = f"{self._where()}: accumulating with {self.called.policy.function}"
        forms = _forms(self.called.accumulator or "")
        rows = forms.rows.arrow([[accumulator] for accumulator in held], lambda place: where)
        return rows.table.column(0).combine_chunks()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Forms:
    """How accumulators of type ``kind`` become Arrow values, and what ``read`` makes of those for the methods."""

    kind: DataType
    rows: ReturnedRows
    read: Callable[[Any], Any]


@cache
def _forms(declared: str) -> _Forms:
    kind = parse_type(declared)
    return _Forms(kind=kind, rows=returned_rows(declared, "aggregate", ("accumulator",)), read=_reader(kind))


def _reader(kind: DataType) -> Callable[[Any], Any]:
    """What makes lists of the rows in a value as pyarrow gives it."""
    if not _has_rows(kind):
        return lambda value: value
    inside = [_reader(child) for child in kind.children]

    def read(value: Any) -> Any:
        if value is None:
            return None
        if kind.root == "ROW":
            return [one(each) for one, each in zip(inside, row_values(value, kind.names), strict=True)]
        if kind.root == "ARRAY":
            return [inside[0](each) for each in value]
        return {inside[0](key): inside[1](each) for key, each in value.items()}

    return read


def _has_rows(kind: DataType) -> bool:
    return kind.root == "ROW" or any(map(_has_rows, kind.children))

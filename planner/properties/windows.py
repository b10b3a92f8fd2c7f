"""Finds the fields of a relation that hold the start, the end and the time of a window of event time.

A window passes through calcs, lookups, unions, and aggregates, joins and row numbers of each window. All other
relations lose it: their rows do not come when the watermark passes the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import assert_never

from hintplan.planner.expressions.typed import Call, Field, FieldRef
from hintplan.planner.relations import (
    Attached,
    Item,
    LogicalAggregate,
    LogicalCache,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalPassthrough,
    LogicalRowNumber,
    LogicalScan,
    LogicalUnion,
    LogicalUnnest,
    LogicalValues,
    LogicalWatermark,
    LogicalWindow,
    LogicalWindowAggregate,
    Relation,
)
from hintplan.plans.declarations.windows import Window

Ids = frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFields:
    """The ids of the fields that hold the start, the end and the time of one window; a session has ``keys``.

    ``keys`` is None for other windows, and for a session whose keys are no longer all there. A window ``in_groups`` is
    a window in GROUP BY. Above its aggregate it is no window, and its results may have ``updates``.
    """

    window: Window
    starts: Ids
    ends: Ids
    times: Ids
    keys: tuple[Ids, ...] | None = None
    in_groups: bool = False
    updates: bool = False

    @property
    def ids(self) -> Ids:
        return self.starts | self.ends | self.times

    @property
    def is_session(self) -> bool:
        return self.window.type == "session"

    def mapped(self, change: Callable[[Ids], Ids]) -> WindowFields:
        """Return the window under other fields: ``change`` returns the fields that have the value of some field."""
        keys = None if self.keys is None else tuple(map(change, self.keys))
        return replace(
            self,
            starts=change(self.starts),
            ends=change(self.ends),
            times=change(self.times),
            keys=keys if keys is not None and all(keys) else None,
        )

    def attached(self, fields: tuple[Field, ...]) -> Attached | None:
        """Return the first of ``fields`` with the start and the end, or None if one is missing."""
        start = next((f for f in fields if f.id in self.starts), None)
        end = next((f for f in fields if f.id in self.ends), None)
        return None if start is None or end is None else Attached(window=self.window, start=start, end=end)


Windows = tuple[WindowFields, ...]
Pairs = tuple[tuple[Field, Field], ...]


def windows_of(relation: Relation) -> Windows:
    """Return the windows that fields of ``relation`` hold."""
    match relation:
        case LogicalScan() | LogicalValues():
            return ()
        case LogicalCalc() | LogicalLookupJoin() | LogicalCorrelate() | LogicalUnnest():
            return _shown(windows_of(relation.input), relation.items)
        case LogicalJoin():
            return _of_join(relation)
        case LogicalExpand():
            passed = frozenset(f.id for f in relation.passed)
            return _present(windows_of(relation.input), lambda ids: ids & passed)
        case LogicalAggregate():
            keys = frozenset(f.id for f in relation.keys)
            grouped = grouped_window(relation)
            if grouped is None or grouped.in_groups:
                return ()
            return (grouped.mapped(lambda ids: ids & keys),)
        case LogicalWindowAggregate():
            return _of_aggregate(relation)
        case LogicalUnion():
            return reduce(_common, (_by_position(relation, branch) for branch in relation.inputs))
        case LogicalRowNumber():
            below = windows_of(relation.input)
            return below if _ranked(relation, below) is not None else ()
        case LogicalWindow():
            own = WindowFields(
                window=relation.window,
                starts=frozenset((relation.start.id,)),
                ends=frozenset((relation.end.id,)),
                times=frozenset((relation.window_time.id,)),
                keys=tuple(frozenset((f.id,)) for f in relation.keys) if relation.is_session else None,
                in_groups=relation.fire is not None,
                updates=relation.fire is not None and relation.fire.updates,
            )
            return (own,) if relation.is_session else (*windows_of(relation.input), own)
        case LogicalCache() | LogicalWatermark():
            return windows_of(relation.input)
        case LogicalPassthrough():
            return ()
        case _:
            assert_never(relation)


def grouped_window(aggregate: LogicalAggregate) -> WindowFields | None:
    """Return the window of each group of ``aggregate``, or None if its groups belong to no window.

    The groups of a session have exactly the keys of the session.
    """
    keys = frozenset(f.id for f in aggregate.keys)
    for window in reversed(windows_of(aggregate.input)):
        if not (keys & window.starts and keys & window.ends):
            continue
        if not window.is_session:
            return window
        others = keys - window.ids
        own = window.keys
        if own is not None and all(others & each for each in own) and others <= frozenset[int]().union(*own):
            return window
    return None


def ranked_window(numbered: LogicalRowNumber) -> WindowFields | None:
    """Return the window in which the rows are numbered, or None if they are not numbered in each window."""
    return _ranked(numbered, windows_of(numbered.input))


def _ranked(numbered: LogicalRowNumber, windows: Windows) -> WindowFields | None:
    partition = frozenset(f.id for f in numbered.partition)
    both = (w for w in reversed(windows) if not w.is_session and partition & w.starts and partition & w.ends)
    return next(both, None)


def joined_windows(join: LogicalJoin) -> tuple[Attached, Attached] | None:
    """Return the equal windows of both sides that the equalities of ``join`` compare, or None."""
    if join.windows is not None or join.as_of is not None:
        return join.windows
    pairs = tuple(equal_fields(join))
    return _joined(pairs, windows_of(join.left), windows_of(join.right)) if pairs else None


def _joined(pairs: Pairs, left: Windows, right: Windows) -> tuple[Attached, Attached] | None:
    for a in left:
        for b in right:
            if a.window != b.window or a.is_session:
                continue
            starts = next(((x, y) for x, y in pairs if x.id in a.starts and y.id in b.starts), None)
            ends = next(((x, y) for x, y in pairs if x.id in a.ends and y.id in b.ends), None)
            if starts is not None and ends is not None:
                return (
                    Attached(window=a.window, start=starts[0], end=ends[0]),
                    Attached(window=b.window, start=starts[1], end=ends[1]),
                )
    return None


def equal_fields(join: LogicalJoin) -> Iterator[tuple[Field, Field]]:
    """Yield the pairs of a left and a right field that the join compares by equality."""
    yield from join.keys
    left = {f.id for f in join.left.fields}
    for part in join.on:
        if isinstance(part, Call) and part.function == "=":
            a, b = part.args
            if isinstance(a, FieldRef) and isinstance(b, FieldRef):
                yield (a.field, b.field) if a.field.id in left else (b.field, a.field)


def _of_join(join: LogicalJoin) -> Windows:
    """Return the windows of the sides whose rows are never padded, if only rows of the same window meet."""
    left, right = windows_of(join.left), windows_of(join.right)
    if join.windows is None and _joined(tuple(equal_fields(join)), left, right) is None:
        return ()
    kept = {"inner": (*left, *right), "right": right, "full": ()}.get(join.join_type, left)
    return _shown(kept, join.items)


def _of_aggregate(aggregate: LogicalWindowAggregate) -> Windows:
    if aggregate.fire is not None:
        return ()
    start, end, time = (
        frozenset[int]() if f is None else frozenset((f.id,))
        for f in (aggregate.start, aggregate.end, aggregate.window_time)
    )
    keys = tuple(frozenset((f.id,)) for f in aggregate.keys) if aggregate.window.type == "session" else None
    return (WindowFields(window=aggregate.window, starts=start, ends=end, times=time, keys=keys),)


def _shown(windows: Windows, items: tuple[Item, ...]) -> Windows:
    """Return the windows under the fields of ``items``."""
    named: dict[int, set[int]] = {}
    for item in items:
        if isinstance(item.expr, FieldRef):
            named.setdefault(item.expr.field.id, set()).add(item.field.id)
    return _present(windows, lambda ids: frozenset(new for each in ids for new in named.get(each, ())))


def _by_position(union: LogicalUnion, branch: Relation) -> Windows:
    """Return the windows of a branch under the fields of ``union``."""
    new = {b.id: u.id for b, u in zip(branch.fields, union.fields, strict=True)}
    return _present(windows_of(branch), lambda ids: frozenset(new[each] for each in ids if each in new))


def _common(a: Windows, b: Windows) -> Windows:
    """Return the windows that two branches have in the same fields."""
    return tuple(
        replace(x, starts=x.starts & y.starts, ends=x.ends & y.ends, times=x.times & y.times, keys=None)
        for x in a
        for y in b
        if x.window == y.window and x.ids & y.ids
    )


def _present(windows: Windows, change: Callable[[Ids], Ids]) -> Windows:
    """Return the windows of which a field remains after ``change``."""
    return tuple(changed for window in windows if (changed := window.mapped(change)).ids)

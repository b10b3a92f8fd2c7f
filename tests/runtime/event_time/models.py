"""Reference kernels of operators that go by windows: each is a few lines over lists, a batch at a time.

All models judge the rows of a batch by the watermark ``before`` it, then move the watermark to ``after``, and put out
what it closes. A result is a row with its sign, +1 or -1; times are milliseconds. ``lateness`` has the input of
each late row, and the time by which the watermark had passed its last window. The models know nothing of our kernels.
tests/runtime/event_time/test_models.py holds them to Flink's recording.

>>> from tests.runtime.event_time.times import NEVER
>>> model = WindowAggregate(Windows("tumble", 5000))
>>> model.batch([Row(1000, "a", 1), Row(4000, "a", 2)], NEVER, 3000)
[]
>>> model.batch([Row(2000, "a", 4)], 3000, 6000)
[(1, ('a', 0, 5000, 3, 7))]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from tests.runtime.event_time.times import Zone

Result = tuple[int, tuple[Any, ...]]
Span = tuple[int, int]
JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]


class Row(NamedTuple):
    """A row of an input: its rowtime, two columns, its sign, and the input of a join that it is of."""

    time: int
    key: Any
    value: Any
    sign: int = 1
    side: int = 0


class Model(Protocol):
    """An operator that gets its rows batch by batch."""

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]: ...


class Windows(NamedTuple):
    """The windows of TUMBLE, HOP and CUMULATE, in milliseconds of wall clocks."""

    type: Literal["tumble", "hop", "cumulate"]
    size: int
    step: int | None = None
    offset: int = 0

    def of(self, wall: int) -> list[Span]:
        """Start and end of each window that a time is in.

        >>> Windows("hop", 10, 5).of(7), Windows("cumulate", 15, 5).of(7)
        ([(0, 10), (5, 15)], [(0, 10), (0, 15)])
        >>> Windows("hop", 10, 4).of(7), Windows("hop", 3, 7).of(5)
        ([(0, 10), (4, 14)], [])
        """
        step = self.step or self.size
        slice_start = (wall - self.offset) // step * step + self.offset
        if self.type == "hop":
            starts = range(slice_start, wall - self.size, -step)
            return [(start, start + self.size) for start in reversed(starts)]
        start = (wall - self.offset) // self.size * self.size + self.offset
        return [(start, end) for end in range(slice_start + step, start + self.size + 1, step)]


class WindowAggregate:
    """Count and sum by key and window. A row counts in its open windows."""

    def __init__(self, windows: Windows, zone: Zone = Zone(), *, is_keyed: bool = True) -> None:  # noqa: B008
        self.windows, self.zone, self.is_keyed = windows, zone, is_keyed
        self.open: dict[tuple[Span, Any], list[int]] = defaultdict(lambda: [0, 0])
        self.late, self.lateness = 0, list[Span]()

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        for row in rows:
            of_row = self.windows.of(self.zone.wall(row.time))
            windows = [w for w in of_row if self.zone.closes(w[1]) > before]
            if of_row and not windows:
                last = max(w[1] for w in of_row)
                self.late += 1
                self.lateness.append((row.side, before - self.zone.closes(last)))
            for window in windows:
                totals = self.open[window, row.key if self.is_keyed else None]
                totals[0] += row.sign
                totals[1] += row.sign * (row.value or 0)
        due = [place for place in self.open if self.zone.closes(place[0][1]) <= after]
        closed = [(window, key, self.open.pop((window, key))) for window, key in due]
        return [(1, (*self.shown(key), *window, *totals)) for window, key, totals in closed if totals[0]]

    def shown(self, key: Any) -> tuple[Any, ...]:
        return (key,) if self.is_keyed else ()


class FiredWindows:
    """Count and sum by key and window, put out early and late: None is no such fire, a number its delay.

    ``emitted`` has what was put out last. ``since`` has, of groups that have changed after that, when the first change
    came. ``now`` is the time of a batch.
    """

    def __init__(self, windows: Windows, early: int | None, late: int | None = None, lateness: int = 0) -> None:
        self.windows, self.delays, self.kept = windows, (early, late), lateness
        self.totals: dict[tuple[Span, Any], list[int]] = defaultdict(lambda: [0, 0])
        self.emitted: dict[tuple[Span, Any], tuple[int, ...]] = {}
        self.since: dict[tuple[Span, Any], int] = {}
        self.late, self.lateness = 0, list[Span]()

    def batch(self, rows: Sequence[Row], before: int, after: int, now: int = 0) -> list[Result]:
        for row in rows:
            of_row = self.windows.of(row.time)
            windows = [w for w in of_row if w[1] - 1 + self.kept > before]
            if of_row and not windows:
                self.late += 1
                self.lateness.append((row.side, before - self.kept - (max(w[1] for w in of_row) - 1)))
            for window in windows:
                totals = self.totals[window, row.key]
                totals[0] += row.sign
                totals[1] += row.sign * (row.value or 0)
                self.since.setdefault((window, row.key), now)
        due = [place for place, since in self.since.items() if self._fires(place, before, after, now - since)]
        out = [each for place in due for each in self._put_out(place)]
        for place in [place for place in self.totals if place[0][1] - 1 + self.kept <= after]:
            del self.totals[place]
            self.emitted.pop(place, None)
        return out

    def _is_closed(self, place: tuple[Span, Any], watermark: int) -> bool:
        return place[0][1] - 1 <= watermark

    def _fires(self, place: tuple[Span, Any], before: int, after: int, waited: int) -> bool:
        closed = self._is_closed(place, before)
        delay = self.delays[closed]
        if delay is not None and waited >= delay:
            return True
        if closed:
            return place not in self.emitted or place[0][1] - 1 + self.kept <= after
        return self._is_closed(place, after)

    def _put_out(self, place: tuple[Span, Any]) -> list[Result]:
        (start, end), key = place
        del self.since[place]
        last = self.emitted.pop(place, None)
        new = tuple(self.totals[place]) if self.totals[place][0] else None
        if new is not None:
            self.emitted[place] = new
        both = [(-1, last), (1, new)] if last != new else []
        return [(sign, (key, start, end, *totals)) for sign, totals in both if totals is not None]


class Sessions:
    """Count and sum by key and session. Rows and open sessions that touch are one session.

    A session that is closed by ``before`` as a whole, after merging, holds late rows only.
    """

    def __init__(self, gap: int, zone: Zone = Zone(), *, is_keyed: bool = True) -> None:  # noqa: B008
        self.gap, self.zone, self.is_keyed = gap, zone, is_keyed
        self.open: dict[Any, list[list[int]]] = defaultdict(list)  # start, end, count, sum, rows
        self.late, self.lateness = 0, list[Span]()

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        added: dict[Any, list[list[int]]] = defaultdict(list)
        for row in rows:
            wall = self.zone.wall(row.time)
            session = [wall, wall + self.gap, row.sign, row.sign * (row.value or 0), 1]
            added[row.key if self.is_keyed else None].append(session)
        for key, sessions in added.items():
            self.open[key] = self.open_of(merged(sorted(self.open[key] + sessions)), before)
        return [(1, row) for key in self.open for row in self.closed(key, after)]

    def open_of(self, sessions: list[list[int]], before: int) -> list[list[int]]:
        still = [each for each in sessions if self.zone.closes(each[1]) > before]
        for each in sessions:
            if each not in still:
                self.late += each[4]
                self.lateness += [(0, before - self.zone.closes(each[1]))] * each[4]
        return still

    def closed(self, key: Any, after: int) -> list[tuple[Any, ...]]:
        due = [each for each in self.open[key] if self.zone.closes(each[1]) <= after]
        self.open[key] = [each for each in self.open[key] if each not in due]
        return [(*((key,) if self.is_keyed else ()), *session[:4]) for session in due if session[2]]


def merged(sessions: Sequence[list[int]]) -> list[list[int]]:
    """Sessions in order of their starts; sessions that touch become one.

    >>> merged([[0, 5, 1, 1, 1], [5, 10, 1, 2, 1], [11, 16, 1, 4, 1]])
    [[0, 10, 2, 3, 2], [11, 16, 1, 4, 1]]
    """
    result: list[list[int]] = []
    for start, end, *counts in sessions:
        if result and start <= result[-1][1]:
            last = result[-1]
            sums = [one + other for one, other in zip(last[2:], counts, strict=True)]
            result[-1] = [last[0], max(last[1], end), *sums]
        else:
            result.append([start, end, *counts])
    return result


class WindowJoin:
    """A join of the rows of a window: key and value of both sides, and the start. Rows wait until the window closes."""

    def __init__(self, kind: JoinKind, size: int) -> None:
        self.kind, self.size, self.late, self.lateness = kind, size, 0, list[Span]()
        self.open: dict[int, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        for row in rows:
            start = row.time // self.size * self.size
            if start + self.size - 1 <= before:
                self.late += 1
                self.lateness.append((row.side, before - (start + self.size - 1)))
            else:
                self.open[start][row.side].append(row)
        due = sorted(start for start in self.open if start + self.size - 1 <= after)
        return [(1, (*row, start)) for start in due for row in self.joined(*self.open.pop(start))]

    def joined(self, left: list[Row], right: list[Row]) -> list[tuple[Any, ...]]:
        pairs = [(a, b) for a in left for b in right if a.key is not None and a.key == b.key]
        met = {id(row) for pair in pairs for row in pair}
        alone = [[row for row in rows if id(row) not in met] for rows in (left, right)]
        if self.kind == "anti":
            return [(a.key, a.value) for a in alone[0]]
        if self.kind == "semi":
            return [(a.key, a.value) for a in left if id(a) in met]
        result = [(a.key, a.value, b.key, b.value) for a, b in pairs]
        result += [(a.key, a.value, None, None) for a in alone[0] if self.kind in ("left", "full")]
        return result + [(None, None, b.key, b.value) for b in alone[1] if self.kind in ("right", "full")]


class WindowTop:
    """The rows of a window, by key or all, with numbers in a range. Equal rows have numbers in order of arrival."""

    def __init__(
        self,
        windows: Windows,
        order: Callable[[Row], Any],
        numbers: Span = (1, 1),
        *,
        is_keyed: bool = True,
        is_numbered: bool = False,
    ) -> None:
        self.windows, self.order, self.numbers = windows, order, numbers
        self.is_keyed, self.is_numbered = is_keyed, is_numbered
        self.open: dict[tuple[Span, Any], list[Row]] = defaultdict(list)
        self.late, self.lateness = 0, list[Span]()

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        for row in rows:
            for window in self.windows.of(row.time):
                if window[1] - 1 <= before:
                    self.late += 1
                    self.lateness.append((0, before - (window[1] - 1)))
                else:
                    self.add(self.open[window, row.key if self.is_keyed else None], row)
        due = [place for place in self.open if place[0][1] - 1 <= after]
        return [row for place in due for row in self.chosen(place[0], self.open.pop(place))]

    def add(self, rows: list[Row], row: Row) -> None:
        rows.append(row)

    def chosen(self, window: Span, rows: list[Row]) -> list[Result]:
        low, high = self.numbers
        return [
            (1, (row.key, row.value, row.time, *window, *((number,) if self.is_numbered else ())))
            for number, row in enumerate(sorted(rows, key=self.order), 1)
            if low <= number <= high
        ]


class LastOfWindow(WindowTop):
    """The last row of each key and window: of equal times, the last to come."""

    def __init__(self, windows: Windows) -> None:
        super().__init__(windows, lambda row: row.time)

    def add(self, rows: list[Row], row: Row) -> None:
        if not rows or rows[0].time <= row.time:
            rows[:] = [row]

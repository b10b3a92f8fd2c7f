"""Reference kernels of operators that go by single rows: joins by time, OVER, sorting and first rows.

They have the rule of tests/runtime/event_time/models.py. Rows that wait come out when the watermark passes their time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.runtime.event_time.models import JoinKind, Result, Row, Span
from tests.runtime.event_time.times import NEVER


class CurrentWatermark:
    """CURRENT_WATERMARK of a row is the watermark before its batch."""

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        return [(1, (row.key, row.value, row.time, None if before == NEVER else before)) for row in rows]


@dataclass
class Waiting:
    """A row that an interval join keeps, or that came too late to be kept, and whether it has met another."""

    row: Row
    is_kept: bool = True
    has_met: bool = False


class IntervalJoin:
    """A join of rows with ``left.time`` from ``right.time - low`` to ``right.time + high``.

    A row lives until the watermark is beyond the times that it can meet. Late rows are not dropped: they meet what
    lives. A row that meets nothing and cannot be kept is padded at once; it counts as late. Two rows of a batch meet if
    one of them can be kept. If no two times are within the bounds, every row is padded at once.
    """

    def __init__(
        self, kind: JoinKind, low: int, high: int, condition: Callable[[Row, Row], bool] = lambda left, right: True
    ) -> None:
        self.kind, self.condition = kind, condition
        self.low, self.high = low, high
        self.reach = (low, high)  # by side: how much later than a row its partner may be
        self.rows: tuple[list[Waiting], list[Waiting]] = ([], [])
        self.late, self.lateness = 0, list[Span]()

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        if self.low + self.high < 0:
            return [result for row in rows for result in self.padded(row)]
        result: list[Result] = []
        came: tuple[list[Waiting], list[Waiting]] = ([], [])
        for row in rows:
            last = row.time + self.reach[row.side]
            came[row.side].append(Waiting(row, is_kept=last > before))
            if max(row.time, last) <= before:
                self.late += 1
                self.lateness.append((row.side, before - max(row.time, last)))
        stored = [[entry for entry in entries if self.lives(entry.row, before)] for entries in self.rows]
        for lefts, rights in ((came[0], stored[1]), (stored[0], came[1]), (came[0], came[1])):
            for left in lefts:
                for right in rights:
                    if (left.is_kept or right.is_kept) and self.match(left.row, right.row):
                        left.has_met = right.has_met = True
                        result.append((1, (left.row.key, left.row.value, right.row.key, right.row.value)))
        for entries, new in zip(self.rows, came, strict=True):
            for entry in (*entries, *new):
                ends = not entry.is_kept or not self.lives(entry.row, after)
                result += self.padded(entry.row) if ends and not entry.has_met else []
            entries[:] = [each for each in (*entries, *new) if each.is_kept and self.lives(each.row, after)]
        return result

    def lives(self, row: Row, watermark: int) -> bool:
        return row.time + self.reach[row.side] >= watermark

    def match(self, left: Row, right: Row) -> bool:
        is_near = right.time - self.low <= left.time <= right.time + self.high
        return left.key is not None and left.key == right.key and is_near and self.condition(left, right)

    def padded(self, row: Row) -> list[Result]:
        if row.side == 0 and self.kind in ("left", "full"):
            return [(1, (row.key, row.value, None, None))]
        if row.side == 1 and self.kind in ("right", "full"):
            return [(1, (None, None, row.key, row.value))]
        return []


class TemporalJoin:
    """A join of left rows with the version of their ``key`` at their time. A left row waits for the watermark.

    Right rows are versions of their key; a retraction ends the version. Of versions with equal times, the last counts.
    If they are ``ascending``, a row that is earlier than one before it is none.
    """

    late, lateness = 0, ()

    def __init__(
        self, *, is_outer: bool, ascending: bool = False, key: Callable[[Row], Any] = lambda row: row.value
    ) -> None:
        self.is_outer, self.ascending, self.key = is_outer, ascending, key
        self.latest: dict[Any, int] = defaultdict(lambda: NEVER)
        self.waiting: list[Row] = []
        self.versions: dict[Any, dict[int, Row | None]] = defaultdict(dict)

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        for row in rows:
            if row.side == 0:
                self.waiting.append(row)
            elif not self.ascending or row.time >= self.latest[row.key]:
                self.latest[row.key] = row.time
                self.versions[row.key][row.time] = row if row.sign > 0 else None
        if after == before:
            return []
        due = [row for row in self.waiting if row.time <= after]
        self.waiting = [row for row in self.waiting if row.time > after]
        result = [joined for row in due for joined in self.joined(row)]
        for known in self.versions.values():
            for time in sorted(time for time in known if time <= after)[:-1]:
                del known[time]
        return result

    def joined(self, row: Row) -> list[Result]:
        key = self.key(row)
        known = self.versions.get(key, {}) if key is not None else {}
        time = max((time for time in known if time <= row.time), default=None)
        version = None if time is None else known[time]
        if version is not None:
            return [(row.sign, (row.key, row.value, row.time, version.value, version.time))]
        return [(row.sign, (row.key, row.value, row.time, None, None))] if self.is_outer else []


class InOrderOfTime:
    """Rows that wait for the watermark, and come out in order of their times; a row behind it is late."""

    def __init__(self) -> None:
        self.waiting: list[Row] = []
        self.late, self.lateness = 0, list[tuple[int, int]]()

    def due(self, rows: Sequence[Row], before: int, after: int) -> list[Row]:
        """The rows that the watermark passes; rows with equal times in the order in which they came."""
        self.late += sum(row.time <= before for row in rows)
        self.lateness += [(row.side, before - row.time) for row in rows if row.time <= before]
        self.waiting += [row for row in rows if row.time > before]
        due = sorted((row for row in self.waiting if row.time <= after), key=lambda row: row.time)
        self.waiting = [row for row in self.waiting if row.time > after]
        return due


class Sort(InOrderOfTime):
    """ORDER BY a rowtime."""

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        return [(1, (row.key, row.value, row.time)) for row in self.due(rows, before, after)]


class FirstByTime(InOrderOfTime):
    """The first row of each key by rowtime."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[Any] = set()

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        result: list[Result] = []
        for row in self.due(rows, before, after):
            if row.key not in self.seen:
                self.seen.add(row.key)
                result.append((1, (row.key, row.value, row.time)))
        return result


class Over(InOrderOfTime):
    """A sum by key over the ``amount`` of rows or milliseconds before a row, or over all.

    RANGE has all rows of the time of a row, ROWS none after the row.
    """

    def __init__(self, frame: Literal["rows", "range"], amount: int | None = None) -> None:
        super().__init__()
        self.frame, self.amount = frame, amount
        self.rows: dict[Any, list[Row]] = defaultdict(list)

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        due = self.due(rows, before, after)
        places = []
        for row in due:
            places.append(len(self.rows[row.key]))
            self.rows[row.key].append(row)
        return [
            (1, (row.key, row.value, row.time, sum(each.value for each in self.frame_of(row, place))))
            for row, place in zip(due, places, strict=True)
        ]

    def frame_of(self, row: Row, place: int) -> list[Row]:
        rows = self.rows[row.key]
        if self.frame == "rows":
            return rows[0 if self.amount is None else max(0, place - self.amount) : place + 1]
        first = NEVER if self.amount is None else row.time - self.amount
        return [each for each in rows if first <= each.time <= row.time]

"""Reference kernels of operators that go by single rows: joins by time, OVER, sorting and first rows.

They have the rule of tests/runtime/event_time/models.py. Rows that wait come out when the watermark passes their time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.runtime.event_time.models import JoinKind, Result, Row
from tests.runtime.event_time.times import NEVER


class CurrentWatermark:
    """CURRENT_WATERMARK of a row is the watermark before its batch."""

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        return [(1, (row.key, row.value, row.time, None if before == NEVER else before)) for row in rows]


@dataclass
class Waiting:
    """A row that an interval join keeps, and whether it has met another."""

    row: Row
    has_met: bool = False


class IntervalJoin:
    """A join of rows with ``left.time`` from ``right.time - low`` to ``right.time + high``.

    A row lives until the watermark is beyond the times that it can meet. Late rows are not dropped: they meet what
    lives. A row that meets nothing and cannot be kept is padded at once.
    """

    def __init__(
        self, kind: JoinKind, low: int, high: int, condition: Callable[[Row, Row], bool] = lambda left, right: True
    ) -> None:
        self.kind, self.condition = kind, condition
        self.low, self.high = low, high
        self.reach = (low, high)  # by side: how much later than a row its partner may be
        self.rows: tuple[list[Waiting], list[Waiting]] = ([], [])

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        result: list[Result] = []
        for row in rows:
            entry = Waiting(row)
            for other in self.rows[1 - row.side]:
                left, right = (entry, other) if row.side == 0 else (other, entry)
                if self.lives(other.row, before) and self.match(left.row, right.row):
                    left.has_met = right.has_met = True
                    result.append((1, (left.row.key, left.row.value, right.row.key, right.row.value)))
            if row.time + self.reach[row.side] > before:
                self.rows[row.side].append(entry)
            elif not entry.has_met:
                result += self.padded(row)
        for entries in self.rows:
            for entry in entries:
                result += [] if entry.has_met or self.lives(entry.row, after) else self.padded(entry.row)
            entries[:] = [entry for entry in entries if self.lives(entry.row, after)]
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
    """A join of left rows with the version of their ``value`` at their time. A left row waits for the watermark.

    Right rows are versions of their key; a retraction ends the version. Of versions with equal times, the last counts.
    """

    def __init__(self, *, is_outer: bool) -> None:
        self.is_outer = is_outer
        self.waiting: list[Row] = []
        self.versions: dict[Any, dict[int, Row | None]] = defaultdict(dict)

    def batch(self, rows: Sequence[Row], before: int, after: int) -> list[Result]:
        for row in rows:
            if row.side == 0:
                self.waiting.append(row)
            else:
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
        known = self.versions.get(row.value, {}) if row.value is not None else {}
        time = max((time for time in known if time <= row.time), default=None)
        version = None if time is None else known[time]
        if version is not None:
            return [(row.sign, (row.key, row.value, row.time, version.value, version.time))]
        return [(row.sign, (row.key, row.value, row.time, None, None))] if self.is_outer else []


class InOrderOfTime:
    """Rows that wait for the watermark, and come out in order of their times; a row behind it is late."""

    def __init__(self) -> None:
        self.waiting: list[Row] = []
        self.late = 0

    def due(self, rows: Sequence[Row], before: int, after: int) -> list[Row]:
        """The rows that the watermark passes; rows with equal times in the order in which they came."""
        self.late += sum(row.time <= before for row in rows)
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

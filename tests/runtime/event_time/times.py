"""Times of models: milliseconds since 1970, their texts in Flink's recording, and wall clocks of a zone.

>>> milliseconds("2024-01-01T00:00:05"), text(1704067205000)
(1704067205000, '2024-01-01T00:00:05')
>>> Zone("Europe/Berlin").closes(milliseconds("2024-10-27T03:00")) - milliseconds("2024-10-27T02:00")
-1
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

NEVER, FOREVER = -(1 << 63), (1 << 63) - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def milliseconds(time: str) -> int:
    """A time as Flink writes it; with or without ``Z``, it is a time of UTC or a wall clock."""
    return (datetime.fromisoformat(time.removesuffix("Z")).replace(tzinfo=UTC) - EPOCH) // MILLISECOND


def text(time: int) -> str:
    """A time as Java writes a LocalDateTime: without seconds if they are zero."""
    at = (EPOCH + time * MILLISECOND).replace(tzinfo=None)
    shown = at.strftime("%Y-%m-%dT%H:%M:%S" if at.second or at.microsecond else "%Y-%m-%dT%H:%M")
    return shown + (f".{at.microsecond // 1000:03}" if at.microsecond else "")


class Zone:
    """The wall clocks in which the windows of TIMESTAMP_LTZ are counted; without a name, the clock of UTC."""

    def __init__(self, name: str | None = None) -> None:
        self.zone = ZoneInfo(name) if name else None

    def wall(self, time: int) -> int:
        """The wall clock at a time."""
        if self.zone is None:
            return time
        local = (EPOCH + time * MILLISECOND).astimezone(self.zone).replace(tzinfo=UTC)
        return (local - EPOCH) // MILLISECOND

    def closes(self, end: int) -> int:
        """The lowest watermark that closes a window whose end is the wall clock ``end``.

        An hour that the clock shows twice is one window. It closes when the second hour ends. A window whose last
        millisecond the clock skips closes with the first time after the gap (TimeWindowUtil.toEpochMillsForTimer).
        """
        if self.zone is None:
            return end - 1
        last = self._instant(end - 1, fold=1)
        if self.wall(last) == end - 1:
            return last
        around = range(last, self._instant(end - 1, fold=0) + 1)  # fold 1 is a time before a gap, and fold 0 one after
        return around[bisect_left(around, end, key=self.wall)]

    def window_time(self, end: int) -> int:
        """The rowtime of a window: its last millisecond, in the first of two equal hours."""
        return end - 1 if self.zone is None else self._instant(end - 1, fold=0)

    def _instant(self, wall: int, fold: int) -> int:
        local = (EPOCH + wall * MILLISECOND).replace(tzinfo=self.zone, fold=fold)
        return (local - EPOCH) // MILLISECOND

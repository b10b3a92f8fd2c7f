"""The two standard triggers that load a full cache again: periodically, or at a time of day.

Both get the time from their context, and know no clock, no thread and no cache.

>>> zone = ZoneInfo("UTC")
>>> reload_time("10:15", zone) == reload_time("12:15+02:00", zone)
True
>>> next_time(0, time(10, 15, tzinfo=zone)) == (10 * 60 + 15) * 60_000
True
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from hintplan.runtime.lookup.api import CacheReloadTrigger, ReloadContext


class PeriodicReloadTrigger(CacheReloadTrigger):
    """A reload every ``interval`` ms: from the end of a load to the start of the next (FIXED_DELAY), or start to start.

    With FIXED_RATE, the trigger makes up for each start that fell into a slow load, one right after the other, as in
    Flink. Setting the system clock has no effect.
    """

    def __init__(self, interval: int, mode: Literal["FIXED_DELAY", "FIXED_RATE"]) -> None:
        self._interval = interval
        self._mode = mode
        self._cancel: Callable[[], None] = _nothing
        self._closed = False

    def open(self, context: ReloadContext) -> None:
        self._context = context
        self._next(context.elapsed() + self._interval)

    def close(self) -> None:
        self._closed = True
        self._cancel()

    def _next(self, due: int) -> None:
        if not self._closed:
            left = max(0, due - self._context.elapsed())
            self._cancel = self._context.call_after(left, lambda: self._fire(due))

    def _fire(self, due: int) -> None:
        def loaded(_: Future[None]) -> None:
            start = due if self._mode == "FIXED_RATE" else self._context.elapsed()
            self._next(start + self._interval)

        if not self._closed:
            self._context.trigger_reload().add_done_callback(loaded)


class TimedReloadTrigger(CacheReloadTrigger):
    """A reload at ``at``, a time of day with a zone, and then every ``days`` days at that time."""

    def __init__(self, at: time, days: int) -> None:
        self._at = at
        self._days = days
        self._cancel: Callable[[], None] = _nothing
        self._closed = False

    def open(self, context: ReloadContext) -> None:
        self._context = context
        self._register(next_time(context.current_processing_time(), self._at))

    def close(self) -> None:
        self._closed = True
        self._cancel()

    def _register(self, due: int) -> None:
        def fire() -> None:
            if not self._closed:
                self._context.trigger_reload()
                self._register(_days_later(due, self._at, self._days))

        self._cancel = self._context.call_at(due, fire)


def reload_time(text: str, zone: ZoneInfo) -> time:
    """Parse a time of day in ISO 8601 (``10:15``, ``10:15Z``, ``10:15+07:00``); without a zone, it is in ``zone``."""
    parsed = time.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=zone)


def next_time(now: int, at: time) -> int:
    """Return the first ms, not before ``now``, at which a clock in the zone of ``at`` shows that time of day."""
    today = datetime.fromtimestamp(now / 1000, at.tzinfo).date()
    # Days with a daylight saving change are not 24 h long, so the loop counts dates, not hours.
    due = (_milliseconds(datetime.combine(today + timedelta(days=days), at)) for days in range(3))
    return next(time for time in due if time >= now)


def _days_later(due: int, at: time, days: int) -> int:
    day = datetime.fromtimestamp(due / 1000, at.tzinfo).date()
    return _milliseconds(datetime.combine(day + timedelta(days=days), at))


def _milliseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _nothing() -> None:
    pass

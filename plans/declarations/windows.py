"""The windows of a query: their type, size and zone, and the columns of an input that hold a window.

Kernels on workers use these classes, so this module imports no operators.

>>> hop = Window(type="hop", size="10 s", slide="2 s", offset="-500 ms")
>>> hop.size_ms, hop.step_ms, hop.offset_ms
(10000, 2000, -500)
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.declarations.fields import Name, Ref
from hintplan.plans.frozen import frozen

WindowType = Literal["tumble", "hop", "cumulate", "session"]

WINDOW_DURATIONS: dict[WindowType, tuple[str, ...]] = {
    "tumble": ("size",),
    "hop": ("size", "slide"),
    "cumulate": ("size", "step"),
    "session": ("gap",),
}
"""The durations that each type of window has; all types except ``session`` may also have an offset."""
LTZ_TIME = "TIMESTAMP_LTZ(3) NOT NULL"
WALL_TIME = "TIMESTAMP(3) NOT NULL"


def signed_duration(text: str) -> int:
    """Return the milliseconds of a duration that may have a minus sign; raise DurationError if it is invalid."""
    digits = text.removeprefix("-")
    milliseconds = parse_duration(digits, require_unit=True)
    return milliseconds if digits == text else -milliseconds


def signed_text(milliseconds: int) -> str:
    """Print milliseconds as a duration in its shortest form, with a minus sign if they are negative.

    >>> signed_text(-3000)
    '-3 s'
    """
    return ("-" if milliseconds < 0 else "") + format_duration(abs(milliseconds))


@frozen
class Window:
    """A kind of windows ``[start, end)`` over a time; durations are texts such as ``10 s``.

    A window has a ``zone``, by its IANA name, if and only if its time is a TIMESTAMP_LTZ: then its start and end are
    wall clock times in the zone. The processing time is one.
    """

    type: Annotated[WindowType, "The type of the windows."]
    size: Annotated[str | None, "The length of a window; of cumulate, of the longest.", Ref("duration")] = None
    slide: Annotated[str | None, "hop: the time between the starts of two windows.", Ref("duration")] = None
    step: Annotated[str | None, "cumulate: the time between the ends of two windows.", Ref("duration")] = None
    gap: Annotated[str | None, "session: the time without rows after which a session ends.", Ref("duration")] = None
    offset: Annotated[str | None, "The time by which all windows start later; may be negative.", Ref("offset")] = None
    zone: Annotated[str | None, "The time zone of a TIMESTAMP_LTZ rowtime.", {"examples": ["Europe/Berlin"]}] = None
    processing_time: Annotated[
        bool, "true: the time of a row is the time of its micro-batch, and the clock closes windows."
    ] = False

    @property
    def size_ms(self) -> int:
        """The length of a window in milliseconds; not of sessions."""
        return parse_duration(self.size or "")

    @property
    def step_ms(self) -> int:
        """The time between the ends of two windows, in milliseconds; not of sessions."""
        return parse_duration(self.slide or self.step or self.size or "")

    @property
    def slice_ms(self) -> int:
        """The length of a slice, the part of windows that no start or end divides, in milliseconds; not of sessions.

        >>> Window(type="hop", size="10 s", slide="4 s").slice_ms
        2000
        """
        return math.gcd(self.size_ms, self.step_ms)

    @property
    def gap_ms(self) -> int:
        """The gap that ends a session, in milliseconds."""
        return parse_duration(self.gap or "")

    @property
    def offset_ms(self) -> int:
        """The offset in milliseconds."""
        return signed_duration(self.offset) if self.offset is not None else 0

    @property
    def words(self) -> str:
        """The type of the windows with its durations, in words of SQL."""
        words = {
            "tumble": f"TUMBLE {self.size}",
            "hop": f"HOP {self.size} EVERY {self.slide}",
            "cumulate": f"CUMULATE {self.size} BY {self.step}",
            "session": f"SESSION {self.gap}",
        }
        return words[self.type] + ("" if self.offset is None else f" OFFSET {self.offset}")

    @property
    def time_type(self) -> str:
        """The type of ``window_time``, the last millisecond of a window as a rowtime."""
        return WALL_TIME if self.zone is None else LTZ_TIME

    def over(self, time: str) -> str:
        """Return the windows over a time in words of SQL, such as ``HOP 10 s EVERY 2 s OF ts``."""
        time = "PROCTIME()" if self.processing_time else time
        return f"{self.words} OF {time}" + ("" if self.zone is None else f" IN {self.zone}")


@frozen
class WindowColumns:
    """The columns of an input that hold the start and the end of the window of each row."""

    start: Annotated[Name, "The column with the start of the window."]
    end: Annotated[Name, "The column with its end."]

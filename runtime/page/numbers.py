"""Numbers of a run as text for people: rates, ages, sizes and times.

>>> rate_text(0.01), rate_text(0.27), rate_text(41.7), rate_text(1204.4), rate_text(2_340_000)
('<0.1/s', '0.3/s', '42/s', '1,204/s', '2.3 M/s')
>>> age_text(0.4), age_text(185), age_text(100_000)
('0.4 s', '3 min 5 s', '1 d 3 h')
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

from hintplan.plans.text.counts import human_bytes
from hintplan.runtime.metrics import table
from hintplan.runtime.metrics.table import Metric

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_SHORT_SECONDS = 60
_TIMES = (table.STATE_OLDEST, table.WATERMARK)
"""The metrics of operators that are times since 1970; other seconds are durations."""


def rate_text(rate: float) -> str:
    """Return rows per second; a rate below ten has a decimal."""
    if rate >= 1_000_000:
        return f"{rate / 1_000_000:.1f} M/s"
    if 0 < rate < 0.05:
        return "<0.1/s"
    return f"{rate:.1f}/s" if 0 < rate < 9.95 else f"{rate:,.0f}/s"


def rows_text(rows: float) -> str:
    """Return a number of rows.

    >>> rows_text(41_702), rows_text(3_120_000_000)
    ('41,702', '3,120 M')
    """
    return f"{rows / 1_000_000:,.0f} M" if rows >= 1_000_000_000 else f"{rows:,.0f}"


def age_text(seconds: float) -> str:
    """Return a time span in its two largest units."""
    if seconds < _SHORT_SECONDS:
        return f"{max(seconds, 0):.1f} s"
    whole = int(seconds)
    for (large, name), (small, next_name) in pairwise(_UNITS):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large:,} {name}" + (f" {rest} {next_name}" if rest else "")
    raise AssertionError(seconds)


def time_text(seconds: float) -> str:
    """Return a time in UTC.

    >>> time_text(1_700_000_000.5)
    '2023-11-14 22:13:20 UTC'
    """
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):  # an event time far outside the calendar
        return f"{seconds:,.0f} s since 1970"


def value_text(metric: Metric, value: float) -> str:
    """Return a value of ``metric`` with its unit.

    >>> value_text(table.STATE_SIZE, 2048), value_text(table.STATE_OLDEST, 0), value_text(table.STATE_TTL, 90)
    ('2.0 KiB', '1970-01-01 00:00:00 UTC', '1 min 30 s')
    """
    if metric.unit == "By":
        return human_bytes(int(value))
    if metric.unit == "s":
        return time_text(value) if metric in _TIMES else age_text(value)
    return rows_text(value)

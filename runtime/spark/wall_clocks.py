"""Conversions between TIMESTAMP and TIMESTAMP_LTZ columns in a given time zone, which may differ from the session's.

A wall clock that comes twice is converted to its first instant. A wall clock that is skipped moves by the length of the
gap, as in Java and Flink.

    wall_clock_column(F.col("ts"), "Europe/Berlin")
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

UTC = "UTC"
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


def instant_column(wall_clock: Column, zone: str) -> Column:
    """Return the instant of a TIMESTAMP in ``zone``."""
    seconds = (wall_clock - F.expr(_EPOCH)).cast("interval second").cast("decimal(20, 6)")
    in_utc = F.timestamp_micros((seconds * F.lit(1_000_000)).cast("bigint"))
    return in_utc if zone == UTC else F.to_utc_timestamp(in_utc, zone)


def wall_clock_column(instant: Column, zone: str) -> Column:
    """Return the TIMESTAMP of an instant in ``zone``."""
    in_utc = instant if zone == UTC else F.from_utc_timestamp(instant, zone)
    return F.expr(_EPOCH) + F.unix_micros(in_utc) * F.expr("INTERVAL '0.000001' SECOND")

"""Windows of TIMESTAMP_LTZ in time zones with and without daylight saving time."""

from __future__ import annotations

from .tables import AGGREGATE, SESSION, TVF, WINDOW, ZONED_ROWTIME, Program

BERLIN = {"table.local-time-zone": "Europe/Berlin"}
DAYS = TVF.format("TUMBLE", "INTERVAL '1' DAY")
SPRING = """
s +I a 1 2024-03-30T22:59:59Z  -- 23:59:59 in Berlin
s +I a 2 2024-03-30T23:00:00Z  -- midnight
s +I a 3 2024-03-31T00:30:00Z  -- 01:30, before the hour that is skipped
s +I a 4 2024-03-31T01:30:00Z  -- 03:30
s +I a 5 2024-03-31T21:59:59Z  -- 23:59:59
s +I a 6 2024-03-31T22:00:00Z  -- midnight
s +I a 7 2024-04-01T22:00:00Z
"""
AUTUMN = """
s +I a 1 2024-10-26T22:00:00Z  -- midnight in Berlin
s +I a 2 2024-10-27T00:30:00Z  -- 02:30, the first time
s +I a 3 2024-10-27T01:30:00Z  -- 02:30, the second time
s +I a 4 2024-10-27T22:59:59Z  -- 23:59:59
s +I a 5 2024-10-27T23:00:00Z  -- midnight
s +I a 6 2024-10-28T23:00:00Z
"""
HOURS = TVF.format("TUMBLE", "INTERVAL '1' HOUR")

ZONES: dict[str, Program] = {
    "LTZ, days in Berlin, spring": Program(
        tables=ZONED_ROWTIME,
        config=BERLIN,
        steps=SPRING,
        with_plan=True,
        query=AGGREGATE.format(w=WINDOW + ", window_time", t=DAYS),
    ),
    "LTZ, hours in Berlin, spring": Program(
        tables=ZONED_ROWTIME,
        config=BERLIN,
        steps=SPRING,
        query=AGGREGATE.format(w=WINDOW + ", window_time", t=HOURS),
    ),
    "LTZ, hours in Berlin, autumn": Program(
        about="two hours of one name are one window, which closes after the second",
        tables=ZONED_ROWTIME,
        config=BERLIN,
        steps=AUTUMN,
        query=AGGREGATE.format(w=WINDOW + ", window_time", t=HOURS),
    ),
    "LTZ, four hours in Berlin, autumn": Program(
        tables=ZONED_ROWTIME,
        config=BERLIN,
        steps=AUTUMN,
        query=AGGREGATE.format(w=WINDOW, t=TVF.format("TUMBLE", "INTERVAL '4' HOUR")),
    ),
    "LTZ, hop of days in Berlin, autumn": Program(
        tables=ZONED_ROWTIME,
        config=BERLIN,
        steps=AUTUMN,
        query=AGGREGATE.format(w=WINDOW, t=TVF.format("HOP", "INTERVAL '12' HOUR, INTERVAL '1' DAY")),
    ),
    "LTZ, session in Berlin, autumn": Program(
        tables=ZONED_ROWTIME,
        config=BERLIN,
        steps=AUTUMN,
        query=AGGREGATE.format(w=WINDOW, t=SESSION.replace("'5' SECOND", "'90' MINUTE")),
    ),
    "TIMESTAMP, days in Berlin": Program(
        about="the zone changes nothing",
        tables={"s": "k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"},
        config=BERLIN,
        steps=SPRING.replace("Z", ""),
        query=AGGREGATE.format(w=WINDOW, t=DAYS),
    ),
    "LTZ, days in Shanghai": Program(
        tables=ZONED_ROWTIME,
        config={"table.local-time-zone": "Asia/Shanghai"},
        steps=SPRING,
        query=AGGREGATE.format(w=WINDOW + ", window_time", t=DAYS),
    ),
    "LTZ, days in Shanghai, one phase": Program(
        about="with two phases a day is lost: the local aggregate flushes by days of UTC where a zone has no DST",
        tables=ZONED_ROWTIME,
        config={"table.local-time-zone": "Asia/Shanghai", "table.optimizer.agg-phase-strategy": "ONE_PHASE"},
        steps=SPRING,
        query=AGGREGATE.format(w=WINDOW + ", window_time", t=DAYS),
    ),
    "LTZ, hours in Kolkata": Program(
        about="a zone of half an hour",
        tables=ZONED_ROWTIME,
        config={"table.local-time-zone": "Asia/Kolkata", "table.optimizer.agg-phase-strategy": "ONE_PHASE"},
        steps=SPRING,
        query=AGGREGATE.format(w=WINDOW, t=HOURS),
    ),
    "LTZ, hours in Kolkata, watermark between": Program(
        about="an hour there ends at half past: FLINK-38075, its rows are lost if the watermark stops between",
        tables=ZONED_ROWTIME,
        config={"table.local-time-zone": "Asia/Kolkata"},
        steps="""
s +I a 1 2024-03-30T23:00:00Z  -- 04:30
s +I a 2 2024-03-30T23:40:00Z  -- 05:10: closes [04:00, 05:00), which ends at 23:30
s +I a 4 2024-03-31T00:10:00Z
s +I a 8 2024-03-31T02:00:00Z
""",
        query=AGGREGATE.format(w=WINDOW, t=HOURS),
    ),
    "LTZ, hours in Kolkata, watermark between, one phase": Program(
        tables=ZONED_ROWTIME,
        config={"table.local-time-zone": "Asia/Kolkata", "table.optimizer.agg-phase-strategy": "ONE_PHASE"},
        steps="""
s +I a 1 2024-03-30T23:00:00Z
s +I a 2 2024-03-30T23:40:00Z
s +I a 4 2024-03-31T00:10:00Z
s +I a 8 2024-03-31T02:00:00Z
""",
        query=AGGREGATE.format(w=WINDOW, t=HOURS),
    ),
}

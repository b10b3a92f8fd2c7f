"""Windows of SESSION by rowtime."""

from __future__ import annotations

from .tables import AGGREGATE, DELAY, ROWS, ROWTIME, SESSION, WINDOW, Program

SESSIONS: dict[str, Program] = {
    "session, no aggregate": Program(
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query="SELECT k, v, ts, window_start, window_end, window_time FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND))",
    ),
    "session": Program(
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=AGGREGATE.format(w=WINDOW, t=SESSION),
    ),
    "session, bridged": Program(
        about="a row between two sessions makes them one; windows that touch are one",
        tables=ROWTIME,
        steps="""
s +I a 1 00:00:01
s +I a 2 00:00:09      -- watermark 7 s: [1, 6) has fired
s +I a 3 00:00:14      -- touches [9, 14)
s +I a 4 00:00:24
s +I a 5 00:00:19      -- touches both, watermark 22 s
s +I a 6 00:00:40
""",
        query=AGGREGATE.format(w=WINDOW, t=SESSION),
    ),
    "session, late rows": Program(
        about="a row behind the watermark counts if its session, merged, is still open",
        tables=ROWTIME,
        steps="""
s +I a 1 00:00:10
s +I a 2 00:00:14      -- watermark 12 s
s +I a 4 00:00:06      -- [6, 11) alone is late, but it touches what is open
s +I b 8 00:00:06      -- late: of b there is nothing
s +I b 16 00:00:07.001 -- [7.001, 12.001) is open
s +I a 32 00:00:30
""",
        query=AGGREGATE.format(w=WINDOW, t=SESSION),
    ),
    "session, without PARTITION BY": Program(
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=f"SELECT {WINDOW}, COUNT(*) AS n, SUM(v) AS s FROM TABLE(SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY {WINDOW}",
    ),
    "session, grouped by more than its key": Program(
        about="two keys in GROUP BY, one in PARTITION BY",
        tables={"s": f"k STRING, l STRING, v BIGINT, ts TIMESTAMP(3), {DELAY}"},
        steps="""
s +I a x 1 00:00:01
s +I a y 2 00:00:04
s +I a x 3 00:00:08
s +I a x 4 00:00:30
""",
        query=f"SELECT k, l, {WINDOW}, SUM(v) AS s FROM {SESSION} GROUP BY k, l, {WINDOW}",
        with_plan=True,
    ),
}

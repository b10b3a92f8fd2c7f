"""Group windows, the older syntax, with early and late fire."""

from __future__ import annotations

from .processing_time import ALIGNED
from .tables import CHANGED, CHANGELOG, EARLY, LATE, PROCTIME, ROWS, ROWTIME, ZONED_ROWTIME, Program
from .zones import BERLIN, SPRING

GROUP_WINDOW = "SELECT k, TUMBLE_START(ts, INTERVAL '5' SECOND) AS ws, COUNT(*) AS n, SUM(v) AS s FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND)"

GROUP_WINDOWS: dict[str, Program] = {
    "group window, tumble": Program(
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query="SELECT k, TUMBLE_START(ts, INTERVAL '5' SECOND) AS ws, TUMBLE_END(ts, INTERVAL '5' SECOND) AS we, TUMBLE_ROWTIME(ts, INTERVAL '5' SECOND) AS rt, COUNT(*) AS n, SUM(v) AS s FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND)",
    ),
    "group window, hop with a size that is no multiple": Program(
        tables=ROWTIME,
        steps=ROWS,
        query="SELECT k, HOP_START(ts, INTERVAL '3' SECOND, INTERVAL '10' SECOND) AS ws, HOP_END(ts, INTERVAL '3' SECOND, INTERVAL '10' SECOND) AS we, COUNT(*) AS n FROM s GROUP BY k, HOP(ts, INTERVAL '3' SECOND, INTERVAL '10' SECOND)",
    ),
    "group window, session": Program(
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query="SELECT k, SESSION_START(ts, INTERVAL '5' SECOND) AS ws, SESSION_END(ts, INTERVAL '5' SECOND) AS we, COUNT(*) AS n, SUM(v) AS s FROM s GROUP BY k, SESSION(ts, INTERVAL '5' SECOND)",
    ),
    "group window, early and late fire": Program(
        tables=ROWTIME,
        steps=ROWS,
        config={**EARLY, **LATE},
        query=GROUP_WINDOW,
    ),
    "group window, late fire": Program(
        tables=ROWTIME,
        steps=ROWS,
        config=LATE,
        query=GROUP_WINDOW,
    ),
    "group window, late fire, without a state TTL or lateness": Program(
        tables=ROWTIME,
        steps=ROWS,
        config={"table.exec.emit.late-fire.enabled": "true", "table.exec.emit.late-fire.delay": "0 ms"},
        query=GROUP_WINDOW,
    ),
    "group window over changes": Program(
        tables=CHANGED,
        steps=CHANGELOG,
        query=GROUP_WINDOW,
    ),
    "group window, session over changes": Program(
        tables=CHANGED,
        steps=CHANGELOG,
        query="SELECT k, SESSION_START(ts, INTERVAL '5' SECOND) AS ws, COUNT(*) AS n, SUM(v) AS s FROM s GROUP BY k, SESSION(ts, INTERVAL '5' SECOND)",
    ),
    "group window, early fire, delay": Program(
        about="changed results after a delay of processing time",
        tables=ROWTIME,
        config={"table.exec.emit.early-fire.enabled": "true", "table.exec.emit.early-fire.delay": "400 ms"},
        steps="""
s +I a 1 00:00:01
s +I a 2 00:00:02
sleep 700
s +I a 4 00:00:03
sleep 700
s +I a 8 00:00:09
""",
        query=GROUP_WINDOW,
    ),
    "group window, allowed lateness only": Program(
        tables=ROWTIME,
        steps=ROWS,
        config={"table.exec.emit.allow-lateness": "20 s"},
        query=GROUP_WINDOW,
    ),
    "group window, early fire, allowed lateness": Program(
        about="without late fire, does a late row of an open window come out?",
        tables=ROWTIME,
        steps=ROWS,
        config={**EARLY, "table.exec.emit.allow-lateness": "20 s"},
        query=GROUP_WINDOW,
    ),
    "group window, late fire, state TTL": Program(
        about="the TTL is the lateness",
        tables=ROWTIME,
        steps=ROWS,
        config={
            "table.exec.emit.late-fire.enabled": "true",
            "table.exec.emit.late-fire.delay": "0 ms",
            "table.exec.state.ttl": "20 s",
        },
        query=GROUP_WINDOW,
    ),
    "group window, late fire, delay": Program(
        tables=ROWTIME,
        config={**LATE, "table.exec.emit.late-fire.delay": "400 ms"},
        steps="""
s +I a 1 00:00:01
s +I a 2 00:00:09
s +I a 4 00:00:02
s +I b 8 00:00:03
sleep 700
s +I a 16 00:00:04
sleep 700
s +I a 32 00:00:30
""",
        query=GROUP_WINDOW,
    ),
    "group window, hop, early and late fire": Program(
        tables=ROWTIME,
        steps=ROWS,
        config={**EARLY, **LATE},
        query="SELECT k, HOP_START(ts, INTERVAL '3' SECOND, INTERVAL '6' SECOND) AS ws, COUNT(*) AS n, SUM(v) AS s FROM s GROUP BY k, HOP(ts, INTERVAL '3' SECOND, INTERVAL '6' SECOND)",
    ),
    "group window over changes, early and late fire": Program(
        tables=CHANGED,
        steps=CHANGELOG,
        config={**EARLY, **LATE},
        query=GROUP_WINDOW,
    ),
    "group window, session, early fire": Program(
        tables=ROWTIME,
        steps=ROWS,
        config=EARLY,
        query="SELECT k, SESSION_START(ts, INTERVAL '5' SECOND) AS ws, COUNT(*) AS n FROM s GROUP BY k, SESSION(ts, INTERVAL '5' SECOND)",
    ),
    "group window, hop with a slide longer than the size": Program(
        tables=ROWTIME,
        steps=ROWS,
        query="SELECT k, HOP_START(ts, INTERVAL '7' SECOND, INTERVAL '3' SECOND) AS ws, COUNT(*) AS n FROM s GROUP BY k, HOP(ts, INTERVAL '7' SECOND, INTERVAL '3' SECOND)",
    ),
    "group window, grouping sets": Program(
        tables=ROWTIME,
        steps=ROWS,
        query="SELECT k, TUMBLE_START(ts, INTERVAL '5' SECOND) AS ws, COUNT(*) AS n FROM s GROUP BY GROUPING SETS ((k, TUMBLE(ts, INTERVAL '5' SECOND)), (TUMBLE(ts, INTERVAL '5' SECOND)))",
    ),
    "group window, rollup beside it": Program(
        tables=ROWTIME,
        steps=ROWS,
        query="SELECT k, TUMBLE_START(ts, INTERVAL '5' SECOND) AS ws, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '5' SECOND), ROLLUP (k)",
    ),
    "group window, expressions and HAVING": Program(
        tables=ROWTIME,
        steps=ROWS,
        query="SELECT UPPER(k) AS u, TUMBLE_END(ts, INTERVAL '5' SECOND) AS e, SUM(v) / COUNT(*) AS a FROM s WHERE v <> 4 GROUP BY UPPER(k), TUMBLE(ts, INTERVAL '5' SECOND) HAVING COUNT(*) > 1 OR TUMBLE_START(ts, INTERVAL '5' SECOND) >= TIMESTAMP '2024-01-01 00:00:15'",
    ),
    "group window, session of an expression": Program(
        tables=ROWTIME,
        steps=ROWS,
        query="SELECT v / 4 AS part, SESSION_START(ts, INTERVAL '5' SECOND) AS ws, SESSION_END(ts, INTERVAL '5' SECOND) AS we, COUNT(*) AS n FROM s WHERE k = 'a' GROUP BY v / 4, SESSION(ts, INTERVAL '5' SECOND)",
    ),
    "group window above a group window": Program(
        tables=ROWTIME,
        views=(
            "CREATE VIEW q AS SELECT k, TUMBLE_ROWTIME(ts, INTERVAL '5' SECOND) AS rt, COUNT(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND)",
        ),
        steps=ROWS,
        query="SELECT TUMBLE_START(rt, INTERVAL '10' SECOND) AS ws, SUM(n) AS n, COUNT(*) AS g FROM q GROUP BY TUMBLE(rt, INTERVAL '10' SECOND)",
    ),
    "group window above early results": Program(
        tables=ROWTIME,
        views=(
            "CREATE VIEW q AS SELECT k, TUMBLE_ROWTIME(ts, INTERVAL '5' SECOND) AS rt, COUNT(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND)",
        ),
        steps=ROWS,
        config=EARLY,
        query="SELECT TUMBLE_START(rt, INTERVAL '10' SECOND) AS ws, SUM(n) AS n, COUNT(*) AS g FROM q GROUP BY TUMBLE(rt, INTERVAL '10' SECOND)",
    ),
    "group window, LTZ, days in Berlin": Program(
        tables=ZONED_ROWTIME,
        config=BERLIN,
        steps=SPRING,
        query="SELECT k, TUMBLE_START(ts, INTERVAL '1' DAY) AS ws, TUMBLE_END(ts, INTERVAL '1' DAY) AS we, TUMBLE_ROWTIME(ts, INTERVAL '1' DAY) AS rt, COUNT(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '1' DAY)",
    ),
    "group window, auxiliary function of another window": Program(
        tables=ROWTIME,
        steps=ROWS,
        query="SELECT k, TUMBLE_START(ts, INTERVAL '6' SECOND) AS ws, COUNT(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND)",
    ),
    "group window, two of them": Program(
        tables=ROWTIME,
        steps=ROWS,
        query="SELECT k, COUNT(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND), TUMBLE(ts, INTERVAL '10' SECOND)",
    ),
    "group window of a column that is no time attribute": Program(
        tables={"s": "k STRING, v BIGINT, ts TIMESTAMP(3)"},
        steps=ROWS,
        query=GROUP_WINDOW,
    ),
    "group window, selected, but not grouped": Program(
        tables=ROWTIME,
        steps=ROWS,
        query="SELECT TUMBLE_START(ts, INTERVAL '5' SECOND) AS ws, ts, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '5' SECOND)",
    ),
    "group window, COUNT DISTINCT and FILTER": Program(
        tables=ROWTIME,
        steps=ROWS,
        query="SELECT TUMBLE_START(ts, INTERVAL '5' SECOND) AS ws, COUNT(DISTINCT k) AS d, SUM(v) FILTER (WHERE k = 'a') AS s, MAX(v) AS m FROM s GROUP BY TUMBLE(ts, INTERVAL '5' SECOND)",
    ),
    "group window, processing time": Program(
        tables=PROCTIME,
        steps=ALIGNED,
        query="SELECT k, COUNT(*) AS n, SUM(v) AS s FROM s GROUP BY k, TUMBLE(pt, INTERVAL '2' SECOND)",
    ),
    "group window, processing time, early fire": Program(
        tables=PROCTIME,
        config=EARLY,
        steps=ALIGNED,
        query="SELECT k, COUNT(*) AS n, SUM(v) AS s FROM s GROUP BY k, TUMBLE(pt, INTERVAL '2' SECOND)",
    ),
    "group window, processing time, session": Program(
        tables=PROCTIME,
        steps=ALIGNED,
        query="SELECT k, COUNT(*) AS n, SUM(v) AS s FROM s GROUP BY k, SESSION(pt, INTERVAL '1' SECOND)",
    ),
    "group window, processing time, rowtime of a window": Program(
        tables=PROCTIME,
        steps=ALIGNED,
        query="SELECT k, TUMBLE_ROWTIME(pt, INTERVAL '2' SECOND) AS rt FROM s GROUP BY k, TUMBLE(pt, INTERVAL '2' SECOND)",
    ),
    "group window, grouped again": Program(
        about="the start and the end of a group window are plain columns",
        tables=ROWTIME,
        steps=ROWS,
        query="SELECT ws, SUM(n) AS n, COUNT(*) AS g FROM (SELECT k, TUMBLE_START(ts, INTERVAL '5' SECOND) AS ws, TUMBLE_END(ts, INTERVAL '5' SECOND) AS we, COUNT(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND)) GROUP BY ws, we",
    ),
}

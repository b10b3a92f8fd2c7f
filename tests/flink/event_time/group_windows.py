"""Group windows, the older syntax, with early and late fire."""

from __future__ import annotations

from .tables import CHANGED, CHANGELOG, EARLY, LATE, ROWS, ROWTIME, Program

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
}

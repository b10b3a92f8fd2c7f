"""Settings that change the windows of group windows, but not the windows of table functions."""

from __future__ import annotations

from .tables import AGGREGATE, EARLY, LATE, ROWS, ROWTIME, TUMBLE, WINDOW, Program

SETTINGS: dict[str, Program] = {
    "tumble, early fire": Program(
        about="refused, or ignored, for a window of a table function",
        tables=ROWTIME,
        steps=ROWS,
        config=EARLY,
        with_plan=True,
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "tumble, late fire": Program(
        about="refused, or ignored, for a window of a table function",
        tables=ROWTIME,
        steps=ROWS,
        config=LATE,
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "tumble, state TTL": Program(
        about="table.exec.state.ttl does not change windows",
        tables=ROWTIME,
        config={"table.exec.state.ttl": "1 s"},
        with_plan=True,
        steps="""
s +I a 1 00:00:01
sleep 1500
s +I b 2 00:00:02
s +I b 2 00:00:09
""",
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "tumble, STATE_TTL hint": Program(
        tables=ROWTIME,
        is_run=False,
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE).replace("SELECT k", "SELECT /*+ STATE_TTL('s' = '1 d') */ k"),
    ),
    "tumble, mini-batch": Program(
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
        config={
            "table.exec.mini-batch.enabled": "true",
            "table.exec.mini-batch.allow-latency": "200 ms",
            "table.exec.mini-batch.size": "100",
        },
    ),
    "tumble, allowed lateness only": Program(
        about="refused, or ignored, for a window of a table function",
        tables=ROWTIME,
        steps=ROWS,
        config={"table.exec.emit.allow-lateness": "20 s"},
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
}

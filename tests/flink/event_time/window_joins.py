"""Joins of windows."""

from __future__ import annotations

from .tables import CHANGED, PROCTIME, TUMBLE, TWO_TABLES, Program

SIDES = """
a +I x 1 00:00:01
b +I x 10 00:00:02
a +I y 2 00:00:03
b +I z 20 00:00:04
a +I x 3 00:00:04
a +I NULL 4 00:00:02
b +I NULL 40 00:00:02
a +I x 5 00:00:08     -- watermark of a 6 s
b +I x 50 00:00:07.5  -- of b 5.5 s: closes [0, 5) for both
b +I x 60 00:00:01    -- late
a +I w 6 00:00:02     -- late
a +I q 7 00:00:20
b +I q 70 00:00:30
"""
WINDOW_JOIN = "SELECT l.k AS lk, l.v AS lv, r.k AS rk, r.v AS rv, COALESCE(l.window_start, r.window_start) AS ws FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '5' SECOND)) AS l {} JOIN TABLE(TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '5' SECOND)) AS r ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end"
TUMBLE_OF = "TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '5' SECOND))"

WINDOW_JOINS: dict[str, Program] = {
    "window join over changes": Program(
        tables={"s": CHANGED["s"], "t": CHANGED["s"]},
        is_run=False,
        with_plan=True,
        query=f"SELECT a.k, a.v, b.v AS v2, a.window_start FROM {TUMBLE} AS a JOIN {TUMBLE.replace('TABLE s', 'TABLE t')} AS b ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end",
    ),
    **{
        f"window join, {kind.lower()}": Program(
            tables=TWO_TABLES,
            steps=SIDES,
            with_plan=kind == "FULL",
            query=WINDOW_JOIN.format(kind),
        )
        for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    },
    "window join, with a condition": Program(
        tables=TWO_TABLES,
        steps=SIDES,
        query=WINDOW_JOIN.format("LEFT") + " AND l.v * 10 <> r.v",
    ),
    "window join, semi": Program(
        tables=TWO_TABLES,
        steps=SIDES,
        with_plan=True,
        query=f"SELECT k, v, window_start FROM {TUMBLE_OF.format('a')} AS l WHERE EXISTS (SELECT * FROM {TUMBLE_OF.format('b')} AS r WHERE l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end)",
    ),
    "window join, only window_start is compared": Program(
        about="a regular join",
        tables=TWO_TABLES,
        is_run=False,
        with_plan=True,
        query=WINDOW_JOIN.format("INNER").replace(" AND l.window_end = r.window_end", ""),
    ),
    "window join of window aggregates": Program(
        about="Nexmark's q8 in small",
        tables=TWO_TABLES,
        steps=SIDES,
        with_plan=True,
        query="SELECT l.k, l.n AS n1, r.n AS n2, l.window_start FROM (SELECT k, window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end) AS l JOIN (SELECT k, window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end) AS r ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end",
    ),
    "window join, different windows": Program(
        tables=TWO_TABLES,
        is_run=False,
        with_plan=True,
        query=WINDOW_JOIN.format("INNER").replace(
            "TABLE b, DESCRIPTOR(ts), INTERVAL '5'", "TABLE b, DESCRIPTOR(ts), INTERVAL '10'"
        ),
    ),
    "window join, processing time": Program(
        tables={"a": PROCTIME["s"], "b": PROCTIME["s"]},
        is_run=False,
        with_plan=True,
        query=WINDOW_JOIN.format("INNER").replace("DESCRIPTOR(ts)", "DESCRIPTOR(pt)"),
    ),
}

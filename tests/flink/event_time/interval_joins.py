"""Joins of two streams whose times are at most an interval apart."""

from __future__ import annotations

from .tables import CHANGED, TWO_TABLES, Program

INTERVAL_JOIN = "SELECT l.k AS lk, l.v AS lv, r.k AS rk, r.v AS rv FROM a AS l {} JOIN b AS r ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '3' SECOND AND r.ts + INTERVAL '5' SECOND"
PAIRS = """
a +I x 1 00:00:10
b +I x 10 00:00:05     -- lower edge: 10 <= 5 + 5
b +I x 20 00:00:13     -- upper edge: 10 >= 13 - 3
b +I x 30 00:00:04.999 -- just outside
b +I x 40 00:00:13.001 -- just outside
a +I y 2 00:00:11      -- never a partner
b +I z 50 00:00:11     -- never a partner
a +I NULL 3 00:00:11
b +I NULL 60 00:00:11
a +I x 4 00:00:20      -- watermark of a 18 s
b +I x 70 00:00:20     -- of b 18 s
a +I x 5 00:00:10      -- late for the watermark
b +I x 80 00:00:08     -- late for the watermark
a +I x 6 00:00:40
b +I x 90 00:00:40     -- 38 s for both
a +I x 7 00:00:12      -- far too late
b +I x 99 00:00:12     -- far too late
"""
TWO_OF_PROCESSING_TIME = {"a": "k STRING, v BIGINT, pt AS PROCTIME()", "b": "k STRING, v BIGINT, pt AS PROCTIME()"}

INTERVAL_JOINS: dict[str, Program] = {
    **{
        f"interval join, {kind.lower()}": Program(
            tables=TWO_TABLES,
            steps=PAIRS,
            with_plan=kind == "INNER",
            query=INTERVAL_JOIN.format(kind),
        )
        for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    },
    "interval join, with a condition": Program(
        tables=TWO_TABLES,
        steps=PAIRS,
        query=INTERVAL_JOIN.format("LEFT") + " AND l.v <> 1",
    ),
    "interval join, one side only moves": Program(
        about="the watermark of the other side holds padding back",
        tables=TWO_TABLES,
        steps="""
a +I x 1 00:00:10
a +I x 2 00:00:40
a +I x 3 00:01:20
b +I y 9 00:00:05
b +I y 9 00:01:20
""",
        query=INTERVAL_JOIN.format("LEFT"),
    ),
    "interval join, open bounds": Program(
        about="l.ts > r.ts - 3 s AND l.ts < r.ts",
        tables=TWO_TABLES,
        is_run=False,
        with_plan=True,
        query="SELECT l.k, l.v, r.v AS rv FROM a AS l JOIN b AS r ON l.k = r.k AND l.ts > r.ts - INTERVAL '3' SECOND AND l.ts < r.ts",
    ),
    "interval join, one bound only": Program(
        about="a regular join",
        tables=TWO_TABLES,
        is_run=False,
        with_plan=True,
        query="SELECT l.k, l.v, r.v AS rv FROM a AS l JOIN b AS r ON l.k = r.k AND l.ts > r.ts - INTERVAL '3' SECOND",
    ),
    "interval join, without an equality": Program(
        tables=TWO_TABLES,
        steps=PAIRS,
        with_plan=True,
        query="SELECT l.k, l.v, r.v AS rv FROM a AS l JOIN b AS r ON l.ts BETWEEN r.ts - INTERVAL '1' SECOND AND r.ts",
    ),
    "interval join, an impossible interval": Program(
        tables=TWO_TABLES,
        steps=PAIRS,
        with_plan=True,
        query="SELECT l.k, l.v, r.v AS rv FROM a AS l LEFT JOIN b AS r ON l.k = r.k AND l.ts BETWEEN r.ts + INTERVAL '3' SECOND AND r.ts",
    ),
    "interval join, how much the watermark is held back": Program(
        about="by the larger bound; a window of 1 s above the join shows it",
        tables=TWO_TABLES,
        steps="""
a +I x 1 00:00:10
b +I x 2 00:00:10
a +I x 3 00:00:13.001
b +I x 4 00:00:13.001
a +I x 3 00:00:14.001
b +I x 4 00:00:14.001
a +I x 3 00:00:16
b +I x 4 00:00:16
a +I x 5 00:00:18.001
b +I x 6 00:00:18.001
a +I x 5 00:00:19.001
b +I x 6 00:00:19.001
a +I x 5 00:01:00
b +I x 6 00:01:00
""",
        views=(
            "CREATE VIEW q AS SELECT l.k, l.ts AS lts, r.ts AS rts FROM a AS l JOIN b AS r ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '3' SECOND AND r.ts + INTERVAL '5' SECOND",
        ),
        query="SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE q, DESCRIPTOR(lts), INTERVAL '1' SECOND)) GROUP BY window_start, window_end",
    ),
    "interval join, semi": Program(
        about="EXISTS with bounds",
        tables=TWO_TABLES,
        is_run=False,
        with_plan=True,
        query="SELECT k, v FROM a AS l WHERE EXISTS (SELECT * FROM b AS r WHERE l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '3' SECOND AND r.ts)",
    ),
    "interval join over changes": Program(
        tables={"a": CHANGED["s"], "b": TWO_TABLES["b"]},
        is_run=False,
        with_plan=True,
        query=INTERVAL_JOIN.format("INNER"),
    ),
    "interval join, state TTL": Program(
        tables=TWO_TABLES,
        config={"table.exec.state.ttl": "1 s"},
        steps="a +I x 1 00:00:10\nsleep 1500\nb +I x 2 00:00:10",
        query=INTERVAL_JOIN.format("INNER"),
    ),
    **{
        f"interval join, processing time, {kind.lower()}": Program(
            tables=TWO_OF_PROCESSING_TIME,
            with_plan=kind == "INNER",
            steps="""
a +I x 1
sleep 300
b +I x 10
a +I y 2
b +I z 20
sleep 2500
b +I x 30
a +I x 3
sleep 2500
""",
            query=f"SELECT l.k AS lk, l.v AS lv, r.k AS rk, r.v AS rv FROM a AS l {kind} JOIN b AS r ON l.k = r.k AND l.pt BETWEEN r.pt - INTERVAL '1' SECOND AND r.pt + INTERVAL '1' SECOND",
        )
        for kind in ("INNER", "LEFT", "FULL")
    },
    "interval join, semi, run": Program(
        tables=TWO_TABLES,
        steps=PAIRS,
        query="SELECT k, v FROM a AS l WHERE EXISTS (SELECT * FROM b AS r WHERE l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '3' SECOND AND r.ts)",
    ),
}

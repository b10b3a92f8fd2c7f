"""Windows of TUMBLE, HOP and CUMULATE by rowtime, and their aggregates."""

from __future__ import annotations

from .tables import AGGREGATE, CUMULATE, DELAY, HOP, ROWS, ROWTIME, TUMBLE, TUMBLE_OF_VIEW, TVF, WINDOW, Program

WINDOWS: dict[str, Program] = {
    "tumble": Program(
        about="late rows are dropped; rows behind the watermark whose window is open are not",
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=AGGREGATE.format(w=WINDOW + ", window_time", t=TUMBLE),
    ),
    "tumble, one phase": Program(
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        config={"table.optimizer.agg-phase-strategy": "ONE_PHASE"},
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "tumble, offset": Program(
        about="an offset of 2 s",
        tables=ROWTIME,
        steps=ROWS,
        query=AGGREGATE.format(w=WINDOW, t=TVF.format("TUMBLE", "INTERVAL '5' SECOND, INTERVAL '2' SECOND")),
        with_plan=True,
    ),
    "tumble, negative offset": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=AGGREGATE.format(w=WINDOW, t=TVF.format("TUMBLE", "INTERVAL '5' SECOND, INTERVAL '-2' SECOND")),
    ),
    "tumble, boundaries": Program(
        about="WATERMARK AS ts: 4.999 closes [0, 5)",
        tables={"s": "k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"},
        steps="""
s +I a 1 00:00:04.998
s +I a 2 00:00:04.999
s +I a 3 00:00:04.999
s +I a 4 00:00:05
s +I a 5 00:00:04.999
s +I a 6 00:00:09.998
s +I a 7 00:00:10
""",
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "tumble, before the epoch": Program(
        tables={"s": "k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"},
        steps="""
s +I a 1 1969-12-31T23:59:51
s +I a 2 1969-12-31T23:59:55
s +I a 3 1969-12-31T23:59:59.999
s +I a 4 1970-01-01T00:00:00
""",
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "tumble, all rows": Program(
        about="GROUP BY the window only",
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=f"SELECT {WINDOW}, COUNT(*) AS n, SUM(v) AS s FROM {TUMBLE} GROUP BY {WINDOW}",
    ),
    "tumble, grouping sets": Program(
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=f"SELECT k, {WINDOW}, GROUPING(k) AS g, COUNT(*) AS n FROM {TUMBLE} GROUP BY {WINDOW}, GROUPING SETS ((k), ())",
    ),
    "tumble, cube": Program(
        tables={"s": f"k STRING, l STRING, v BIGINT, ts TIMESTAMP(3), {DELAY}"},
        steps="""
s +I a x 1 00:00:01
s +I a y 2 00:00:02
s +I b x 3 00:00:03
s +I b x 4 00:00:08
""",
        query=f"SELECT k, l, {WINDOW}, SUM(v) AS s FROM {TUMBLE} GROUP BY {WINDOW}, CUBE (k, l)",
    ),
    "tumble, rollup": Program(
        tables={"s": f"k STRING, l STRING, v BIGINT, ts TIMESTAMP(3), {DELAY}"},
        steps="""
s +I a x 1 00:00:01
s +I a y 2 00:00:02
s +I b x 3 00:00:03
s +I b x 4 00:00:08
""",
        query=f"SELECT k, l, {WINDOW}, SUM(v) AS s FROM {TUMBLE} GROUP BY {WINDOW}, ROLLUP (k, l)",
    ),
    "tumble, NULL keys": Program(
        tables=ROWTIME,
        steps="""
s +I NULL 1 00:00:01
s +I NULL NULL 00:00:02
s +I a NULL 00:00:03
s +I a 1 00:00:09
""",
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "tumble, NULL time": Program(
        about="a NULL in the rowtime fails the job",
        tables=ROWTIME,
        steps="s +I a 1 00:00:01\ns +I a 2 NULL\ns +I a 3 00:00:09",
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "hop": Program(
        about="a row that is late for one of its windows counts in the others",
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=AGGREGATE.format(w=WINDOW, t=HOP),
    ),
    "hop, one phase": Program(
        tables=ROWTIME,
        steps=ROWS,
        config={"table.optimizer.agg-phase-strategy": "ONE_PHASE"},
        query=AGGREGATE.format(w=WINDOW, t=HOP),
    ),
    "hop, late for some windows": Program(
        about="the watermark 12 s closes [0, 10); then 6 s is late for it, but not for [5, 15)",
        tables={"s": "k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"},
        steps="""
s +I a 1 00:00:04
s +I a 10 00:00:12
s +I a 100 00:00:06
s +I b 1000 00:00:07   -- a key that has nothing yet
s +I a 10000 00:00:03  -- late for all
s +I a 1 00:00:30
""",
        query=AGGREGATE.format(w=WINDOW, t=HOP),
    ),
    "hop, offset": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=AGGREGATE.format(
            w=WINDOW, t=TVF.format("HOP", "INTERVAL '5' SECOND, INTERVAL '10' SECOND, INTERVAL '1' SECOND")
        ),
    ),
    "hop, size is no multiple of the slide": Program(
        tables=ROWTIME,
        steps=ROWS,
        is_run=False,
        with_plan=True,
        query=AGGREGATE.format(w=WINDOW, t=TVF.format("HOP", "INTERVAL '3' SECOND, INTERVAL '10' SECOND")),
    ),
    "hop, slide larger than size": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=AGGREGATE.format(w=WINDOW, t=TVF.format("HOP", "INTERVAL '10' SECOND, INTERVAL '5' SECOND")),
    ),
    "hop, distinct and average": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=f"SELECT k, {WINDOW}, COUNT(DISTINCT v) AS d, AVG(v) AS a, MIN(v) AS m FROM {HOP} GROUP BY k, {WINDOW}",
    ),
    "cumulate": Program(
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=AGGREGATE.format(w=WINDOW, t=CUMULATE),
    ),
    "cumulate, late for some windows": Program(
        tables={"s": "k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"},
        steps="""
s +I a 1 00:00:01
s +I a 10 00:00:06      -- closes [0, 5)
s +I a 100 00:00:02     -- late for [0, 5), not for [0, 10) and [0, 15)
s +I b 1000 00:00:03
s +I a 10000 00:00:16
s +I a 100000 00:00:14  -- late for all
""",
        query=AGGREGATE.format(w=WINDOW, t=CUMULATE),
    ),
    "cumulate, gaps": Program(
        about="windows without rows of their own repeat the result, once there is one",
        tables=ROWTIME,
        steps="""
s +I a 1 00:00:01
s +I b 1 00:00:13
s +I a 2 00:00:40
""",
        query=AGGREGATE.format(w=WINDOW, t=CUMULATE),
    ),
    "cumulate, offset": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=AGGREGATE.format(
            w=WINDOW, t=TVF.format("CUMULATE", "INTERVAL '5' SECOND, INTERVAL '15' SECOND, INTERVAL '1' SECOND")
        ),
    ),
    "tumble, named arguments": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=AGGREGATE.format(
            w=WINDOW, t="TABLE(TUMBLE(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '5' SECOND))"
        ),
    ),
    "tumble, grouped by window_start only": Program(
        about="a regular aggregate: a changelog, and state without end",
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=f"SELECT k, window_start, COUNT(*) AS n, SUM(v) AS s FROM {TUMBLE} GROUP BY k, window_start",
    ),
    "tumble of a sub-query": Program(
        about="a sub-query inside TABLE() is no syntax of Flink's",
        tables=ROWTIME,
        is_run=False,
        query=f"SELECT {WINDOW}, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE (SELECT k, ts FROM s), DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY {WINDOW}",
    ),
    "tumble of a column that is no time attribute": Program(
        tables={"s": "k STRING, v BIGINT, ts TIMESTAMP(3)"},
        steps=ROWS,
        is_run=False,
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "tumble, grouped again by the same window": Program(
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=f"SELECT {WINDOW}, MAX(n) AS m FROM (SELECT k, {WINDOW}, COUNT(*) AS n FROM {TUMBLE} GROUP BY k, {WINDOW}) GROUP BY {WINDOW}",
    ),
    "tumble, by minute of a computed time": Program(
        tables={
            "s": "k STRING, v BIGINT, t STRING, ts AS TO_TIMESTAMP(t), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"
        },
        steps="""
s +I a 1 2024-01-01_00:00:01
s +I a 2 2024-01-01_00:00:59
s +I a 3 2024-01-01_00:01:10
""".replace("_2", "2"),
        query=f"SELECT k, {WINDOW}, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY k, {WINDOW}",
        with_plan=True,
    ),
    "rowtime with microseconds": Program(
        tables={"s": "k STRING, v BIGINT, ts TIMESTAMP(6), WATERMARK FOR ts AS ts"},
        is_run=False,
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "tumble, two-phase, what flushes": Program(
        about="the watermark of a row that is filtered counts",
        tables=ROWTIME,
        steps="""
s +I a 1 00:00:01
s +I x 2 00:00:30
s +I a 3 00:00:02
""",
        views=("CREATE VIEW q AS SELECT * FROM s WHERE k <> 'x'",),
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE_OF_VIEW),
    ),
    "first and last values in windows": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=f"SELECT k, {WINDOW}, FIRST_VALUE(v) AS f, LAST_VALUE(v) AS l, LISTAGG(CAST(v AS STRING)) AS a FROM {TUMBLE} GROUP BY k, {WINDOW}",
    ),
    "tumble, offset, watermark between": Program(
        about="FLINK-36664: the same with an offset",
        tables={"s": "k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"},
        steps="""
s +I a 1 00:00:01
s +I a 2 00:00:03      -- 3 s: closes [-3, 2)
s +I a 4 00:00:04
s +I a 8 00:00:06
s +I a 16 00:00:08     -- closes [2, 7), between 5 and 10
s +I a 32 00:00:20
""",
        query=AGGREGATE.format(w=WINDOW, t=TVF.format("TUMBLE", "INTERVAL '5' SECOND, INTERVAL '2' SECOND")),
    ),
    "aggregate of tumble's columns": Program(
        about="a regular GROUP BY over a TVF's rows",
        tables=ROWTIME,
        steps=ROWS,
        query=f"SELECT k, SUM(v) AS s FROM {TUMBLE} GROUP BY k",
        with_plan=True,
    ),
    "tumble, key and window in another order, with an expression": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=f"SELECT {WINDOW}, UPPER(k) AS u, COUNT(*) AS n FROM {TUMBLE} GROUP BY UPPER(k), window_end, window_start",
    ),
}

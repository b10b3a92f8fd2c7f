"""Watermarks of unions, parallel and idle sources, and what keeps a time attribute."""

from __future__ import annotations

from .tables import AGGREGATE, OUT_OF_ORDER, ROWS, ROWTIME, TUMBLE, TUMBLE_OF_VIEW, TWO_TABLES, WINDOW, Program

UNITED = "CREATE VIEW q AS SELECT * FROM a UNION ALL SELECT * FROM b"
TWO_HALVES = """
s@0 +I a 1 00:00:01
s@1 +I b 2 00:00:02
s@0 +I a 3 00:00:20    -- the other half of the source is at 0 s
s@1 +I b 4 00:00:08    -- 6 s for both
s@0 +I a 5 00:00:04    -- late
s@1 +I b 6 00:00:03    -- late
s@1 +I b 7 00:00:30
"""
PUSHED = {"s": ROWTIME["s"] + " WITH 'push-down' = 'true'"}

WATERMARKS: dict[str, Program] = {
    "watermark that is NULL, or goes back": Program(
        about="rows whose watermark is NULL count, and move nothing",
        tables={"s": "k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS CASE WHEN k <> 'x' THEN ts END"},
        steps="""
s +I a 1 00:00:01
s +I x 2 00:00:30
s +I a 3 00:00:06
s +I a 4 00:00:02
""",
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "late rows, periodic watermarks": Program(
        about="a watermark every 200 ms, the default; a row that moves it by more sends it at once",
        tables=ROWTIME,
        steps=ROWS,
        config={"pipeline.auto-watermark-interval": "200 ms"},
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "current watermark": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        with_plan=True,
        query="SELECT k, v, ts, CURRENT_WATERMARK(ts) AS w FROM s",
    ),
    "current watermark, of a column that is no time attribute": Program(
        tables=ROWTIME,
        is_run=False,
        query="SELECT CURRENT_WATERMARK(CAST(ts AS TIMESTAMP(3))) FROM s",
    ),
    "current watermark, above an aggregate": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=f"SELECT k, window_end, CURRENT_WATERMARK(window_time) AS w FROM {TUMBLE} GROUP BY k, {WINDOW}, window_time",
    ),
    "union of two tables": Program(
        about="the watermark is the lower one",
        tables=TWO_TABLES,
        steps="""
a +I x 1 00:00:01
a +I x 2 00:00:20
b +I y 3 00:00:02
b +I y 4 00:00:09      -- of b 7 s
a +I x 5 00:00:04      -- late for all
b +I y 6 00:00:30
""",
        with_plan=True,
        query=f"SELECT k, {WINDOW}, COUNT(*) AS n FROM {TUMBLE_OF_VIEW} GROUP BY k, {WINDOW}",
        views=(UNITED,),
    ),
    "union, one table ends": Program(
        about="an input that has ended holds nothing back",
        tables=TWO_TABLES,
        steps="""
a +I x 1 00:00:01
b +I y 3 00:00:02
end b
a +I x 2 00:00:20
a +I x 5 00:00:22
""",
        query=f"SELECT k, {WINDOW}, COUNT(*) AS n FROM {TUMBLE_OF_VIEW} GROUP BY k, {WINDOW}",
        views=(UNITED,),
    ),
    "union, one table has no rows": Program(
        tables=TWO_TABLES,
        steps="a +I x 1 00:00:01\na +I x 2 00:00:20\na +I x 5 00:00:30",
        query=f"SELECT k, {WINDOW}, COUNT(*) AS n FROM {TUMBLE_OF_VIEW} GROUP BY k, {WINDOW}",
        views=(UNITED,),
    ),
    "union, one table is idle": Program(
        about="table.exec.source.idle-timeout: the idle table holds nothing back; when it comes back its rows may be late",
        tables=TWO_TABLES,
        config={"table.exec.source.idle-timeout": "500 ms"},
        steps="""
a +I x 1 00:00:01
b +I y 3 00:00:02
sleep 300
a +I x 2 00:00:20
sleep 1000
a +I x 4 00:00:30
b +I y 5 00:00:03      -- late: the table was idle
b +I y 6 00:00:31
sleep 1500
""",
        query=f"SELECT k, {WINDOW}, COUNT(*) AS n FROM {TUMBLE_OF_VIEW} GROUP BY k, {WINDOW}",
        views=(UNITED,),
    ),
    "idle, the only table": Program(
        about="nothing moves when all are idle",
        tables=ROWTIME,
        config={"table.exec.source.idle-timeout": "300 ms"},
        steps="s +I a 1 00:00:01\nsleep 1000\ns +I a 2 00:00:08",
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "two parallel sources": Program(
        about="the watermark of an operator is the lowest of its inputs",
        tables=ROWTIME,
        parallelism=2,
        steps=TWO_HALVES,
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "two parallel sources, one without rows": Program(
        tables=ROWTIME,
        parallelism=2,
        steps="s@0 +I a 1 00:00:01\ns@0 +I a 2 00:00:20",
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "two parallel sources, one idle": Program(
        tables=ROWTIME,
        parallelism=2,
        config={"table.exec.source.idle-timeout": "500 ms"},
        steps=TWO_HALVES.replace("s@1 +I b 4", "sleep 1200\ns@0 +I a 9 00:00:21\nsleep 200\ns@1 +I b 4"),
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "watermarks pushed into the source": Program(
        about="a watermark every 200 ms: rows that came every 40 ms lost one row, every 120 ms two",
        tables=PUSHED,
        steps=ROWS,
        with_plan=True,
        with_explain=True,
        config={"pipeline.auto-watermark-interval": "200 ms"},
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "watermarks pushed into the source, on event": Program(
        tables={
            "s": ROWTIME["s"]
            + " WITH 'push-down' = 'true', 'scan.watermark.emit.strategy' = 'on-event', 'scan.watermark.idle-timeout' = '1 s', 'scan.watermark.alignment.group' = 'g', 'scan.watermark.alignment.max-drift' = '1 min'"
        },
        steps=ROWS,
        with_plan=True,
        with_explain=True,
        config={"pipeline.auto-watermark-interval": "200 ms"},
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "watermarks not pushed down, on event": Program(
        about="Flink accepts scan.watermark.*, and ignores them",
        tables={
            "s": ROWTIME["s"]
            + " WITH 'scan.watermark.emit.strategy' = 'on-event', 'scan.watermark.idle-timeout' = '1 s'"
        },
        steps=ROWS,
        with_plan=True,
        with_explain=True,
        config={"pipeline.auto-watermark-interval": "200 ms"},
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "OPTIONS hint with scan.watermark": Program(
        tables=PUSHED,
        is_run=False,
        with_explain=True,
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE).replace("TABLE s", "TABLE q"),
        views=("CREATE VIEW q AS SELECT * FROM s /*+ OPTIONS('scan.watermark.emit.strategy' = 'on-event') */",),
    ),
    "window above a regular join": Program(
        about="the time is no longer an attribute",
        tables=TWO_TABLES,
        is_run=False,
        views=("CREATE VIEW q AS SELECT l.k, l.ts FROM a AS l JOIN b AS r ON l.k = r.k",),
        query=f"SELECT {WINDOW}, COUNT(*) AS n FROM {TUMBLE_OF_VIEW} GROUP BY {WINDOW}",
    ),
    "window above a regular aggregate's key": Program(
        about="a key of GROUP BY is no time attribute",
        tables=ROWTIME,
        is_run=False,
        views=("CREATE VIEW q AS SELECT k, ts, COUNT(*) AS c FROM s GROUP BY k, ts",),
        query=f"SELECT {WINDOW}, COUNT(*) AS n FROM {TUMBLE_OF_VIEW} GROUP BY {WINDOW}",
    ),
    "two rowtimes into a sink": Program(
        tables=TWO_TABLES,
        is_run=False,
        query="SELECT l.ts AS a, r.ts AS b FROM a AS l JOIN b AS r ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '3' SECOND AND r.ts",
    ),
    "rowtime that is computed anew": Program(
        about="ts + 1 s is no attribute",
        tables=ROWTIME,
        is_run=False,
        views=("CREATE VIEW q AS SELECT k, v, ts + INTERVAL '1' SECOND AS ts FROM s",),
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE_OF_VIEW),
    ),
    "rowtime cast": Program(
        about="CAST(ts AS TIMESTAMP(3)) is no time attribute",
        tables=ROWTIME,
        is_run=False,
        views=("CREATE VIEW q AS SELECT k, v, CAST(ts AS TIMESTAMP(3)) AS ts FROM s",),
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE_OF_VIEW),
    ),
    "WATERMARK of an upsert source, regular aggregate": Program(
        about="a regular aggregate ignores watermarks",
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        query="SELECT k, SUM(v) AS s FROM s GROUP BY k",
    ),
    "last watermark at the end": Program(
        about="everything that is open is put out at the end of the input",
        tables=ROWTIME,
        steps="s +I a 1 00:00:01\ns +I b 2 00:05:00",
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE),
    ),
    "lookup of rows that are late": Program(
        about="a filter by the watermark below a window",
        tables=ROWTIME,
        steps=ROWS,
        views=("CREATE VIEW q AS SELECT * FROM s WHERE CURRENT_WATERMARK(ts) IS NULL OR ts > CURRENT_WATERMARK(ts)",),
        query=AGGREGATE.format(w=WINDOW, t=TUMBLE_OF_VIEW),
    ),
}

"""Windows of processing time."""

from __future__ import annotations

from .tables import PROCTIME, WINDOW, Program

LENGTH = "TIMESTAMPDIFF(SECOND, window_start, window_end) AS seconds"
ALIGNED = """
align 2000 100
s +I a 1
s +I b 2
s +I a 3
align 2000 200
s +I a 4
sleep 4000
s +I b 5
"""

PROCESSING_TIME: dict[str, Program] = {
    "tumble, processing time": Program(
        about="the last window is open at the end of the input, and never comes",
        tables=PROCTIME,
        steps=ALIGNED,
        with_plan=True,
        query=f"SELECT k, {LENGTH}, COUNT(*) AS n, SUM(v) AS s FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND)) GROUP BY k, {WINDOW}",
    ),
    "hop, processing time": Program(
        tables=PROCTIME,
        steps=ALIGNED,
        query=f"SELECT k, {LENGTH}, COUNT(*) AS n, SUM(v) AS s FROM TABLE(HOP(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND, INTERVAL '4' SECOND)) GROUP BY k, {WINDOW}",
    ),
    "cumulate, processing time": Program(
        tables=PROCTIME,
        steps=ALIGNED.replace("2000", "4000"),
        query=f"SELECT k, {LENGTH}, COUNT(*) AS n, SUM(v) AS s FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND, INTERVAL '4' SECOND)) GROUP BY k, {WINDOW}",
    ),
    "session, processing time": Program(
        tables=PROCTIME,
        steps="""
align 2000 100
s +I a 1
s +I b 2
s +I a 3
sleep 2000
s +I a 4
""",
        query=f"SELECT k, COUNT(*) AS n, SUM(v) AS s FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(pt), INTERVAL '1' SECOND)) GROUP BY k, {WINDOW}",
    ),
    "tumble, processing time, of a view": Program(
        about="PROCTIME() of a view is a time attribute, too",
        tables={"s": "k STRING, v BIGINT"},
        views=("CREATE VIEW q AS SELECT *, PROCTIME() AS pt FROM s WHERE v > 1",),
        steps=ALIGNED,
        query=f"SELECT k, {LENGTH}, COUNT(*) AS n, SUM(v) AS s FROM TABLE(TUMBLE(TABLE q, DESCRIPTOR(pt), INTERVAL '2' SECOND)) GROUP BY k, {WINDOW}",
    ),
    "tumble, processing time, over changes": Program(
        about="a retraction counts in the window in which it comes",
        tables={"s": "k STRING, v BIGINT, pt AS PROCTIME() WITH 'changelog' = 'all'"},
        steps="""
align 2000 100
s +I a 1
s +I a 2
s +I b 3
s -D a 1
s -D b 3
sleep 2200
s -D a 2
sleep 2200
""",
        query=f"SELECT k, COUNT(*) AS n, SUM(v) AS s FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND)) GROUP BY k, {WINDOW}",
    ),
    "tumble, processing time, all rows": Program(
        tables=PROCTIME,
        steps=ALIGNED,
        query=f"SELECT COUNT(*) AS n, SUM(v) AS s FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND)) GROUP BY {WINDOW}",
    ),
    "tumble, processing time, without an aggregate": Program(
        tables=PROCTIME,
        steps=ALIGNED,
        query="SELECT k, v, TIMESTAMPDIFF(SECOND, window_start, window_end) AS seconds FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND))",
    ),
    "session, processing time, without an aggregate": Program(
        tables=PROCTIME,
        steps=ALIGNED,
        query="SELECT k, v FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(pt), INTERVAL '1' SECOND))",
    ),
    "tumble, processing time, grouped again": Program(
        about="an aggregate of the windows of an aggregate",
        tables=PROCTIME,
        steps=ALIGNED,
        query=f"SELECT COUNT(*) AS n, SUM(s) AS s FROM (SELECT k, window_start, window_end, SUM(v) AS s FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND)) GROUP BY k, {WINDOW}) GROUP BY {WINDOW}",
    ),
    "tumble, processing time, windows of windows": Program(
        about="window_time of a window of processing time is a processing time",
        tables=PROCTIME,
        views=(
            f"CREATE VIEW q AS SELECT k, window_time AS pt, SUM(v) AS s FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND)) GROUP BY k, {WINDOW}, window_time",
        ),
        steps=ALIGNED.replace("2000 100", "4000 2100"),
        query=f"SELECT k, COUNT(*) AS n, SUM(s) AS s FROM TABLE(TUMBLE(TABLE q, DESCRIPTOR(pt), INTERVAL '4' SECOND)) GROUP BY k, {WINDOW}",
    ),
    "tumble, processing time, grouped by window_start only": Program(
        tables=PROCTIME,
        steps=ALIGNED,
        query="SELECT k, COUNT(*) AS n, SUM(v) AS s FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND)) GROUP BY k, window_start",
    ),
    "window top-n, processing time, of an aggregate": Program(
        tables=PROCTIME,
        query=f"SELECT k, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS r FROM (SELECT k, window_start, window_end, SUM(v) AS s FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND)) GROUP BY k, {WINDOW})) WHERE r = 1",
    ),
}

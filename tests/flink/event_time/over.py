"""Windows of OVER by rowtime, by processing time and by other columns."""

from __future__ import annotations

from .tables import CHANGED, OUT_OF_ORDER, PROCTIME, ROWTIME, Program

OVER_COLUMN = "SELECT k, v, ts, {f} OVER (PARTITION BY k ORDER BY {o} {r}) AS x FROM s"
FRAMES = {
    "range unbounded": "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "rows unbounded": "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "range bounded": "RANGE BETWEEN INTERVAL '2' SECOND PRECEDING AND CURRENT ROW",
    "rows bounded": "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
}
BETWEEN = """
s +I a 5 00:00:01
s +I a 2 00:00:02      -- before the first
s +I a 5 00:00:03      -- equal to the first
s +I b 4 00:00:04
s +I a 3 00:00:05      -- between
s +I a 2 00:00:06      -- equal to the second
s +I a 9 00:00:07
"""

OVER: dict[str, Program] = {
    **{
        f"over, {name}": Program(
            tables=ROWTIME,
            steps=OUT_OF_ORDER,
            with_plan=True,
            query=OVER_COLUMN.format(f="SUM(v)", o="ts", r=frame),
        )
        for name, frame in FRAMES.items()
    },
    "over, without a frame": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        with_plan=True,
        query=OVER_COLUMN.format(f="SUM(v)", o="ts", r=""),
    ),
    "over, several calls of one window": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        query="SELECT k, v, COUNT(*) OVER w AS n, MIN(v) OVER w AS m, AVG(v) OVER w AS a, COUNT(DISTINCT v) OVER w AS d, LAST_VALUE(v) OVER w AS l FROM s WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    ),
    "over, two windows": Program(
        tables=ROWTIME,
        is_run=False,
        query="SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS a, SUM(v) OVER (ORDER BY ts) AS b FROM s",
    ),
    "over, LAG": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        with_plan=True,
        query=OVER_COLUMN.format(f="LAG(v, 1)", o="ts", r=""),
    ),
    "over, LEAD": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        query=OVER_COLUMN.format(f="LEAD(v, 1)", o="ts", r=""),
    ),
    "over, ROW_NUMBER": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        query=OVER_COLUMN.format(f="ROW_NUMBER()", o="ts", r=""),
    ),
    "over, RANK": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        query=OVER_COLUMN.format(f="RANK()", o="ts", r=""),
    ),
    "over, FIRST_VALUE": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        query=OVER_COLUMN.format(f="FIRST_VALUE(v)", o="ts", r=FRAMES["range bounded"]),
    ),
    "over, FOLLOWING": Program(
        tables=ROWTIME,
        is_run=False,
        query=OVER_COLUMN.format(f="SUM(v)", o="ts", r="ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING"),
    ),
    "over, descending": Program(
        tables=ROWTIME,
        is_run=False,
        query=OVER_COLUMN.format(f="SUM(v)", o="ts DESC", r=""),
    ),
    "over, by a column that is no time": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        with_plan=True,
        query=OVER_COLUMN.format(f="SUM(v)", o="v", r=""),
    ),
    "over, by a column that is no time, rows unbounded": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        query=OVER_COLUMN.format(f="SUM(v)", o="v", r=FRAMES["rows unbounded"]),
    ),
    **{
        f"over, by a column that is no time, {name}": Program(
            about="rows come between others, and some are equal in the order",
            tables=ROWTIME,
            steps=BETWEEN,
            query=OVER_COLUMN.format(f=function, o="v", r=frame),
        )
        for name, function, frame in (
            ("corrections", "SUM(v)", ""),
            ("corrections by rows", "SUM(v)", FRAMES["rows unbounded"]),
            ("AVG", "AVG(v)", ""),
            ("MAX", "MAX(v)", ""),
            ("RANK", "RANK()", ""),
            ("DENSE_RANK", "DENSE_RANK()", ""),
            ("FIRST_VALUE", "FIRST_VALUE(k)", ""),
        )
    },
    "over changes": Program(
        tables=CHANGED,
        is_run=False,
        with_plan=True,
        query=OVER_COLUMN.format(f="SUM(v)", o="ts", r=""),
    ),
    "over, by a column that is no time, over changes": Program(
        tables=CHANGED,
        with_plan=True,
        steps="""
s +I a 1 00:00:01
s +I a 3 00:00:02
s +I a 2 00:00:03
s -U a 3 00:00:02
s +U a 5 00:00:02
s -D a 1 00:00:01
""",
        query=OVER_COLUMN.format(f="SUM(v)", o="v", r=""),
    ),
    **{
        f"over, processing time, {name}": Program(
            tables=PROCTIME,
            with_plan=True,
            steps="""
s +I a 1
sleep 300
s +I a 2
s +I b 4
sleep 1500
s +I a 8
sleep 1500
s +I a 16
""",
            query=f"SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY pt {frame}) AS x FROM s",
        )
        for name, frame in {
            **FRAMES,
            "range bounded": "RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND CURRENT ROW",
        }.items()
    },
}

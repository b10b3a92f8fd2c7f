"""First and last rows of keys by time, sorting, and keys of a sink that conflict."""

from __future__ import annotations

from .tables import OUT_OF_ORDER, PROCTIME, ROWTIME, TUMBLE_OF_VIEW, WINDOW, Program

ROW_NUMBER = "SELECT k, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS r FROM s) WHERE r {}"

ROWS_OF_KEYS: dict[str, Program] = {
    "deduplicate, first by rowtime": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        with_plan=True,
        query=ROW_NUMBER.format("ts", "= 1"),
    ),
    "deduplicate, last by rowtime": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        with_plan=True,
        query=ROW_NUMBER.format("ts DESC", "= 1"),
    ),
    "deduplicate, first by processing time": Program(
        tables=PROCTIME,
        steps="s +I a 1\ns +I a 2\ns +I b 3",
        with_plan=True,
        query="SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY pt) AS r FROM s) WHERE r = 1",
    ),
    "top-n by rowtime": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        with_plan=True,
        query=ROW_NUMBER.format("ts", "<= 2"),
    ),
    "deduplicate by rowtime below a window": Program(
        about="an append-only result keeps the time attribute",
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        with_plan=True,
        views=(f"CREATE VIEW q AS {ROW_NUMBER.format('ts', '= 1')}",),
        query=f"SELECT {WINDOW}, COUNT(*) AS n FROM {TUMBLE_OF_VIEW} GROUP BY {WINDOW}",
    ),
    "sort by rowtime": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        with_plan=True,
        query="SELECT k, v, ts FROM s ORDER BY ts",
    ),
    "sort by rowtime and a column": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        query="SELECT k, v, ts FROM s ORDER BY ts, v DESC",
    ),
    "sort by rowtime, descending": Program(
        tables=ROWTIME,
        is_run=False,
        query="SELECT k, v, ts FROM s ORDER BY ts DESC",
    ),
    "sort by rowtime, limit": Program(
        tables=ROWTIME,
        steps=OUT_OF_ORDER,
        with_plan=True,
        query="SELECT k, v, ts FROM s ORDER BY ts LIMIT 2",
    ),
    **{
        f"on conflict do {how.lower()}": Program(
            about="the key of the sink is not the key of the query; ERROR and NOTHING go by watermarks",
            tables=ROWTIME,
            with_plan=True,
            sink_key=("n",),
            on_conflict=how,
            steps="""
s +I a 1 00:00:01
s +I b 2 00:00:03
s +I a 3 00:00:04
s +I c 1 00:00:05
s +I d 1 00:00:20
""",
            query="SELECT v AS n, k FROM (SELECT k, COUNT(*) AS v FROM s GROUP BY k)",
        )
        for how in ("ERROR", "NOTHING", "DEDUPLICATE")
    },
    "deduplicate, last by rowtime, late rows": Program(
        about="a row with an earlier time than what is kept changes nothing, however late",
        tables=ROWTIME,
        steps="""
s +I a 1 00:00:05
s +I a 2 00:00:04
s +I a 3 00:00:05
s +I a 4 00:00:20
s +I a 5 00:00:05
s +I b 6 00:00:05
""",
        query=ROW_NUMBER.format("ts DESC", "= 1"),
    ),
    "deduplicate, first by rowtime, late rows": Program(
        about="a row behind the watermark is dropped, also of a key that is new",
        tables=ROWTIME,
        steps="""
s +I a 1 00:00:05
s +I a 2 00:00:04     -- earlier, in time: is taken
s +I a 3 00:00:04     -- of the same time: the first counts
s +I a 4 00:00:20     -- 18 s
s +I a 5 00:00:03
s +I b 6 00:00:05     -- late, a new key
s +I b 7 00:00:19
s +I b 8 00:00:30
""",
        query=ROW_NUMBER.format("ts", "= 1"),
    ),
}

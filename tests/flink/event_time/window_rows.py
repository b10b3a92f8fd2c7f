"""First rows and last rows of windows."""

from __future__ import annotations

from .tables import HOP, PROCTIME, ROWS, ROWTIME, TUMBLE, WINDOW, Program

TOP_N = "SELECT k, v, ts, {w}{r} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {w}{p} ORDER BY {o}) AS r FROM {t}) WHERE r {c}"

WINDOW_ROWS: dict[str, Program] = {
    "window top-n": Program(
        about="the two largest of each window and key, with numbers",
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=TOP_N.format(w=WINDOW, r=", r", p=", k", o="v DESC", t=TUMBLE, c="<= 2"),
    ),
    "window top-n, of all keys": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=TOP_N.format(w=WINDOW, r="", p="", o="v DESC", t=TUMBLE, c="<= 2"),
    ),
    "window top-n, from the second on": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=TOP_N.format(w=WINDOW, r=", r", p="", o="v", t=TUMBLE, c="BETWEEN 2 AND 3"),
    ),
    "window top-n, ties": Program(
        tables=ROWTIME,
        steps="""
s +I a 1 00:00:01
s +I b 1 00:00:02
s +I c 1 00:00:00
s +I d 2 00:00:03
s +I e 2 00:00:09
""",
        query=TOP_N.format(w=WINDOW, r=", r", p="", o="v", t=TUMBLE, c="<= 2"),
    ),
    "window top-n over hop": Program(
        tables=ROWTIME,
        steps=ROWS,
        query=TOP_N.format(w=WINDOW, r="", p="", o="v DESC", t=HOP, c="<= 1"),
    ),
    "window top-n over a window aggregate": Program(
        about="Nexmark's q5 in small",
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=f"SELECT k, n, {WINDOW} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {WINDOW} ORDER BY n DESC, k) AS r FROM (SELECT k, {WINDOW}, COUNT(*) AS n FROM {HOP} GROUP BY k, {WINDOW})) WHERE r <= 1",
    ),
    "window deduplicate, first": Program(
        tables=ROWTIME,
        steps=ROWS,
        with_plan=True,
        query=TOP_N.format(w=WINDOW, r="", p=", k", o="ts ASC", t=TUMBLE, c="= 1"),
    ),
    "window deduplicate, last": Program(
        about="of two rows with equal times, the later arrival",
        tables=ROWTIME,
        steps=ROWS + "s +I b 11 00:00:21\ns +I b 12 00:00:21\n",
        with_plan=True,
        query=TOP_N.format(w=WINDOW, r="", p=", k", o="ts DESC", t=TUMBLE, c="= 1"),
    ),
    "window deduplicate, processing time": Program(
        tables=PROCTIME,
        is_run=False,
        with_plan=True,
        query=f"SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {WINDOW}, k ORDER BY pt) AS r FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND))) WHERE r = 1",
    ),
    "window top-n, processing time": Program(
        tables=PROCTIME,
        is_run=False,
        with_plan=True,
        query=f"SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {WINDOW}, k ORDER BY v) AS r FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(pt), INTERVAL '2' SECOND))) WHERE r <= 2",
    ),
    "window rank by RANK": Program(
        tables=ROWTIME,
        is_run=False,
        query=f"SELECT k, v, {WINDOW} FROM (SELECT *, RANK() OVER (PARTITION BY {WINDOW} ORDER BY v DESC) AS r FROM {TUMBLE}) WHERE r <= 1",
    ),
}

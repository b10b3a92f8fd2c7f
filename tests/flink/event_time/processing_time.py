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
}

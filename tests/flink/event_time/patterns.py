"""MATCH_RECOGNIZE."""

from __future__ import annotations

from .tables import ROWTIME, Program

MATCH = "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.v AS av, LAST(B.v) AS bv, C.v AS cv ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+ C){} DEFINE A AS A.v > 10, B AS B.v < A.v, C AS C.v > A.v)"
PRICES = """
s +I a 12 00:00:01
s +I a 3 00:00:03
s +I a 5 00:00:02
s +I a 20 00:00:04
s +I a 2 00:00:09
s +I a 30 00:00:10
s +I a 1 00:00:03     -- late
s +I a 40 00:00:30
"""

PATTERNS: dict[str, Program] = {
    "match recognize": Program(
        tables=ROWTIME,
        steps=PRICES,
        with_plan=True,
        query=MATCH.format(""),
    ),
    "match recognize, within": Program(
        tables=ROWTIME,
        steps=PRICES,
        query=MATCH.format(" WITHIN INTERVAL '2' SECOND"),
    ),
}

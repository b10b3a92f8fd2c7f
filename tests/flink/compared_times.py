"""What Flink is asked of a TIMESTAMP beside a TIMESTAMP_LTZ, in a zone whose clocks are put back and forward."""

from __future__ import annotations

ZONE = "America/New_York"
ROWS = (
    # 01:30 comes twice on that day; 02:30 does not come on the other.
    ("2024-11-03 01:30:00", 1730611800000),
    ("2024-11-03 01:30:00", 1730615400000),
    ("2024-11-03 01:30:00.001", 1730615400000),
    ("2024-03-10 02:30:00", 1710055800000),
    ("2024-03-10 02:30:00", 1710052200000),
    ("2024-03-10 03:30:00", 1710055800000),
    ("2024-07-01 12:00:00", 1719849600000),
    ("2024-07-01 12:00:00", None),
    (None, 1719849600000),
    (None, None),
)
"""The text of the column ``ts`` TIMESTAMP(3), and the milliseconds of the column ``ltz`` TIMESTAMP_LTZ(3)."""
CONDITIONS = (
    *(pair for o in ("=", "<>", "<", "<=", ">", ">=") for pair in (f"ts {o} ltz", f"ltz {o} ts")),
    "ts IS DISTINCT FROM ltz",
    "ltz IS NOT DISTINCT FROM ts",
    "ts IN (ltz)",
    "ltz IN (ts)",
    "ts NOT IN (ltz, ts)",
    "ltz NOT IN (ts, TIMESTAMP '2024-07-01 12:00:00')",
    "ts BETWEEN ltz AND ltz",
    "ltz BETWEEN ts AND ts",
    "ts BETWEEN ts AND ltz",
    "ltz NOT BETWEEN ltz AND ts",
    "CASE ts WHEN ltz THEN TRUE ELSE FALSE END",
    "CASE ltz WHEN ts THEN TRUE ELSE FALSE END",
    "CAST(ts AS TIMESTAMP(0)) < CAST(ltz AS TIMESTAMP_LTZ(6))",
    "ts + INTERVAL '1' HOUR > ltz",
    "ltz > TIMESTAMP '2024-03-10 02:00:00'",
)
QUERIES = (
    "SELECT a.id, b.id FROM r AS a JOIN r AS b ON a.ts = b.ltz",
    "SELECT a.id, b.id FROM r AS a JOIN r AS b ON a.ltz = b.ts AND a.id <> b.id",
    "SELECT a.id, b.id FROM r AS a LEFT JOIN r AS b ON a.id = b.id AND a.ts < b.ltz",
    "SELECT id, id FROM r WHERE ts IN (SELECT ltz FROM r)",
    "SELECT id, id FROM r WHERE ltz IN (SELECT ts FROM r)",
    "SELECT a.id, b.id FROM (SELECT id, ts FROM r) AS a JOIN (SELECT id, ltz AS ts FROM r) AS b USING (ts)",
)
"""Queries of two columns of the table ``r (id BIGINT, ts, ltz)``; ``id`` counts its rows from 0."""

"""Tables, rows and parts of queries that programs of several files share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Program:
    """A query over tables, and the rows that the tables get one after the other."""

    tables: Mapping[str, str]
    """Columns of each table; after WITH, options of the connector."""
    query: str
    """The query whose rows go to a sink."""
    steps: str = ""
    """A line for each row, pause or end of a table, in the order of one timeline; ``--`` begins a comment."""
    about: str = ""
    views: tuple[str, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    parallelism: int | None = None
    is_run: bool = True
    """False if the query is only compiled, and started without rows."""
    with_plan: bool = False
    """True to record Flink's compiled plan."""
    with_explain: bool = False
    sink_key: tuple[str, ...] = ()
    """The primary key of the sink, which then takes upserts."""
    on_conflict: str | None = None


DELAY = "WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"
ROWTIME = {"s": f"k STRING, v BIGINT, ts TIMESTAMP(3), {DELAY}"}
ZONED_ROWTIME = {"s": "k STRING, v BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts"}
PROCTIME = {"s": "k STRING, v BIGINT, pt AS PROCTIME()"}
CHANGED = {"s": f"k STRING, v BIGINT, ts TIMESTAMP(3), {DELAY} WITH 'changelog' = 'all'"}
UPSERTED = {
    "s": f"k STRING, v BIGINT, ts TIMESTAMP(3), {DELAY}, PRIMARY KEY (k) NOT ENFORCED WITH 'changelog' = 'upsert'"
}
TWO_TABLES = {
    "a": f"k STRING, v BIGINT, ts TIMESTAMP(3), {DELAY}",
    "b": f"k STRING, v BIGINT, ts TIMESTAMP(3), {DELAY}",
}
ROWS = """
s +I a 1 00:00:01
s +I b 2 00:00:04
s +I a 3 00:00:03.999   -- out of order, not late
s +I a 4 00:00:05       -- the watermark is 3 s
s +I a 5 00:00:06.999   -- 4.999 s: closes [0, 5)
s +I a 6 00:00:04       -- late for [0, 5)
s +I b 7 00:00:05       -- at the watermark or a little above it
s +I a 8 00:00:21       -- 19 s
s +I b 9 00:00:12       -- late
s +I b 10 00:00:19
"""
OUT_OF_ORDER = """
s +I a 1 00:00:01
s +I a 2 00:00:03
s +I a 4 00:00:02      -- out of order
s +I b 8 00:00:03
s +I a 16 00:00:03     -- the time of another
s +I a 32 00:00:05     -- watermark 3 s
s +I a 64 00:00:03     -- late: as the watermark
s +I a 128 00:00:03.001
s +I a 256 00:00:20
s +I a 512 00:00:19
"""
CHANGELOG = """
s +I a 1 00:00:01
s -U a 1 00:00:01
s +U a 2 00:00:02
s +I b 5 00:00:04
s -D b 5 00:00:04
s +I c 7 00:00:06
s +I a 3 00:00:08      -- closes [0, 5)
s -D a 2 00:00:02      -- a retraction that is late
s -D c 7 00:00:06
s +I a 4 00:00:20
"""
TVF = "TABLE({}(TABLE s, DESCRIPTOR(ts), {}))"
TUMBLE = TVF.format("TUMBLE", "INTERVAL '5' SECOND")
HOP = TVF.format("HOP", "INTERVAL '5' SECOND, INTERVAL '10' SECOND")
CUMULATE = TVF.format("CUMULATE", "INTERVAL '5' SECOND, INTERVAL '15' SECOND")
SESSION = "TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND))"
WINDOW = "window_start, window_end"
AGGREGATE = "SELECT k, {w}, COUNT(*) AS n, SUM(v) AS s FROM {t} GROUP BY k, {w}"
TUMBLE_OF_VIEW = "TABLE(TUMBLE(TABLE q, DESCRIPTOR(ts), INTERVAL '5' SECOND))"
EARLY = {"table.exec.emit.early-fire.enabled": "true", "table.exec.emit.early-fire.delay": "0 ms"}
LATE = {
    "table.exec.emit.late-fire.enabled": "true",
    "table.exec.emit.late-fire.delay": "0 ms",
    "table.exec.emit.allow-lateness": "20 s",
}

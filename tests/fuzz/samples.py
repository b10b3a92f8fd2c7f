"""Plans with every kind of operator, and the scripts they come from: what mutations start from."""

from __future__ import annotations

from functools import cache

import hintplan
from hintplan import compile_sql

__all__ = ["SCRIPTS", "sample_plans"]

_TABLES = """
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE o (id BIGINT NOT NULL, k BIGINT, s STRING, v DECIMAL(10, 2), ts TIMESTAMP(3), pt AS PROCTIME(),
  WATERMARK FOR ts AS ts)
  WITH ('connector' = 'filesystem', 'path' = 'data/o', 'format' = 'json');
CREATE TABLE c (k BIGINT, name STRING, w DOUBLE, PRIMARY KEY (k) NOT ENFORCED)
  WITH ('connector' = 'filesystem', 'path' = 'data/c', 'format' = 'json'{upsert});
CREATE TABLE p (k BIGINT, price DOUBLE, PRIMARY KEY (k) NOT ENFORCED)
  WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:p.db', 'table-name' = 'p', 'lookup.cache' = 'PARTIAL',
        'lookup.partial-cache.max-rows' = '100');
CREATE TABLE totals (name STRING, n BIGINT, total DECIMAL(38, 2), PRIMARY KEY (name) NOT ENFORCED)
  WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:r.db', 'table-name' = 'totals');
CREATE TABLE log (id BIGINT, name STRING) WITH ('connector' = 'print');
"""
_STREAM = """
INSERT INTO totals SELECT /*+ STATE_TTL('o' = '2 d', 'c' = '30 d') */ c.s2, COUNT(*), SUM(o.v)
FROM o LEFT JOIN (SELECT k, UPPER(name) AS s2 FROM c WHERE w > 0.5) AS c ON o.k = c.k AND o.v > 1
GROUP BY ROLLUP (c.s2) HAVING COUNT(DISTINCT o.id) > 1 ON CONFLICT DO DEDUPLICATE;
INSERT INTO log SELECT o.id, c.name FROM o JOIN c ON o.k = c.k WHERE o.k NOT IN (SELECT k FROM p2) UNION ALL
SELECT /*+ LOOKUP('table' = 'p', 'retry-predicate' = 'lookup_miss', 'retry-strategy' = 'fixed_delay',
  'fixed-delay' = '10 s', 'max-attempts' = '3') */ o.id, CAST(p.k AS STRING)
FROM o LEFT JOIN p FOR SYSTEM_TIME AS OF o.pt AS p ON o.k = p.k;
INSERT INTO log SELECT id, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM o)
WHERE n = 1;
INSERT INTO log SELECT n, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, s) AS n FROM o)
WHERE n <= 3;
INSERT INTO log SELECT id, t.word FROM o CROSS JOIN UNNEST(SPLIT(s, ' ')) AS t (word);
INSERT INTO log VALUES (1, 'a'), (2, CAST(NULL AS STRING));
"""
_WINDOWS = """
CREATE TABLE late (id BIGINT, k BIGINT, s STRING, v DECIMAL(10, 2), ts TIMESTAMP(3), operator STRING,
  watermark TIMESTAMP_LTZ(3)) WITH ('connector' = 'print');
CREATE VIEW w AS SELECT * FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '10' SECOND));
INSERT INTO log SELECT COUNT(*), s FROM TABLE(HOP(TABLE o, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
GROUP BY s, window_start, window_end;
INSERT INTO log SELECT id, s FROM
(SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC) AS n FROM w) WHERE n <= 3;
INSERT INTO log SELECT id, s FROM
(SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY ts) AS n FROM w) WHERE n = 1;
INSERT INTO log SELECT COUNT(*), s
FROM TABLE(CUMULATE(TABLE o, DESCRIPTOR(pt), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
GROUP BY s, window_start, window_end;
INSERT INTO log SELECT id, s FROM TABLE(SESSION(TABLE o PARTITION BY k, DESCRIPTOR(pt), INTERVAL '10' SECOND));
INSERT INTO log SELECT a.id, b.s FROM w AS a LEFT JOIN w AS b
ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end;
INSERT INTO log SELECT COUNT(*) OVER t, LAG(s, 2, 'x') OVER t FROM o WINDOW t AS (PARTITION BY k ORDER BY ts);
INSERT INTO log SELECT COUNT(DISTINCT v) OVER t, s FROM o
WINDOW t AS (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW);
INSERT INTO log SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY pt), s FROM o;
CREATE VIEW versions AS SELECT k, s, ts FROM
(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM o) WHERE n = 1;
INSERT INTO log SELECT a.id, b.s FROM o AS a LEFT JOIN versions FOR SYSTEM_TIME AS OF a.ts AS b
ON a.k = b.k AND a.v > 3;
INSERT INTO log SELECT id, s FROM o ORDER BY ts;
INSERT INTO log SELECT id, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM o) WHERE n = 1;
INSERT INTO log SELECT a.id, b.s FROM o AS a FULL JOIN o AS b
ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts AND a.v <> b.v;
"""
_GROUP_WINDOWS = """
SET 'table.exec.emit.early-fire.enabled' = 'true'; SET 'table.exec.emit.early-fire.delay' = '1 s';
SET 'table.exec.emit.late-fire.enabled' = 'true'; SET 'table.exec.emit.late-fire.delay' = '0 ms';
SET 'table.exec.emit.allow-lateness' = '1 min';
INSERT INTO totals SELECT s, COUNT(*), SUM(v) FROM o GROUP BY s, TUMBLE(ts, INTERVAL '10' SECOND);
INSERT INTO log SELECT COUNT(DISTINCT id), s FROM o GROUP BY s, HOP(ts, INTERVAL '3' SECOND, INTERVAL '10' SECOND);
"""
_BATCH = """
CACHE TABLE j OPTIONS('storageLevel' = 'DISK_ONLY') AS SELECT o.id, c.name, o.v FROM o JOIN c ON o.k = c.k;
INSERT INTO log SELECT id, name FROM j WHERE EXISTS (SELECT 1 FROM o AS x WHERE x.k = j.id) ORDER BY id DESC LIMIT 3;
INSERT INTO totals SELECT name, COUNT(*), SUM(v) FROM j GROUP BY name;
INSERT INTO log SELECT RANK() OVER (PARTITION BY name ORDER BY v), name FROM j;
"""
_P2 = """
CREATE VIEW p2 AS
SELECT k FROM o WHERE s LIKE 'a%' AND ts > TIMESTAMP '2020-01-01 00:00:00' INTERSECT SELECT k FROM c;
"""
SCRIPTS = (
    _TABLES.replace("{upsert}", ", 'source.changelog' = 'upsert'") + _P2 + _STREAM,
    _TABLES.replace("{upsert}", "").replace("'data/o'", "'data/o', 'late-rows.target' = 'late'") + _WINDOWS,
    _TABLES.replace("{upsert}", "") + _GROUP_WINDOWS,
    "SET 'execution.runtime-mode' = 'batch';" + _TABLES.replace("{upsert}", "") + _BATCH,
)


@cache
def sample_plans() -> tuple[str, ...]:
    """The texts of the plans: streams, a batch job, and those of tests/plans, which have calls of functions."""
    from pathlib import Path

    kept = sorted((Path(__file__).parent.parent / "plans").glob("*.json"))
    compiled = [hintplan.dumps(compile_sql(script, name="sample")).decode() for script in SCRIPTS]
    return (*compiled, *(path.read_text(encoding="utf-8") for path in kept))

"""Sub-queries that are values, and numbers that leave their type."""

from __future__ import annotations

from .tables import Program

SUBQUERIES: dict[str, Program] = {
    # Sub-queries that are values
    "a value by key": ("id BIGINT, m BIGINT", "SELECT id, (SELECT MAX(w) FROM c WHERE c.k = o.k) AS m FROM o"),
    "a count by key": ("id BIGINT, n BIGINT", "SELECT id, (SELECT COUNT(*) FROM c WHERE c.k = o.k) AS n FROM o"),
    "an expression of a count by key": (
        "id BIGINT, n BIGINT",
        "SELECT id, (SELECT COUNT(w) + 1 FROM c WHERE c.k = o.k) FROM o",
    ),
    "a sum by key or zero": (
        "id BIGINT, n BIGINT",
        "SELECT id, (SELECT COALESCE(SUM(w), 0) FROM c WHERE c.k = o.k) FROM o",
    ),
    "a count by key, grouped": (
        "id BIGINT, n BIGINT",
        "SELECT id, (SELECT COUNT(*) FROM c WHERE c.k = o.k GROUP BY c.k) FROM o",
    ),
    "a value with having": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT MAX(w) FROM c WHERE c.k = o.k HAVING COUNT(*) > 1) FROM o",
    ),
    "a value by an expression": ("id BIGINT, m BIGINT", "SELECT id, (SELECT MAX(w) FROM c WHERE c.k = o.k + 1) FROM o"),
    "a value by two keys": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT SUM(g.v) FROM g WHERE g.k = o.k AND g.s = o.s) FROM o",
    ),
    "a value for a changelog": (
        "k BIGINT, v BIGINT, m BIGINT",
        "SELECT k, v, (SELECT MIN(w) FROM a WHERE a.k = g.k) FROM g",
    ),
    "two values in one expression": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT MAX(w) FROM c WHERE c.k = o.k) + (SELECT COUNT(*) FROM i WHERE i.oid = o.id) FROM o",
    ),
    "a value within case": (
        "id BIGINT, m BIGINT",
        "SELECT id, CASE WHEN v > 10 THEN (SELECT MAX(w) FROM c WHERE c.k = o.k) ELSE -1 END FROM o",
    ),
    "a value in where": ("id BIGINT", "SELECT id FROM o WHERE v < (SELECT AVG(w) FROM c WHERE c.k = o.k)"),
    "a count in where": ("id BIGINT", "SELECT id FROM o WHERE v > (SELECT COUNT(w) FROM c WHERE c.k = o.k)"),
    "a computed value in where": (
        "id BIGINT",
        "SELECT id FROM o WHERE v > (SELECT 0.2 * SUM(w) FROM c WHERE c.k = o.k AND c.w > 1)",
    ),
    "a value beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE v + 1 = (SELECT MAX(w) FROM c WHERE c.k = o.k) OR v = 1",
    ),
    "a value that is null": ("id BIGINT", "SELECT id FROM o WHERE (SELECT MAX(w) FROM c WHERE c.k = o.k) IS NULL"),
    "a value over a join": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o JOIN c ON o.k = c.k WHERE o.v >= (SELECT MIN(i.qty) FROM i WHERE i.oid = o.id)",
    ),
    "a value inside in": (
        "id BIGINT",
        "SELECT id FROM o WHERE k IN (SELECT k FROM c WHERE w > (SELECT AVG(qty) FROM i WHERE i.oid = c.k))",
    ),
    "a value from a join": (
        "id BIGINT, m INT",
        "SELECT id, (SELECT SUM(i.qty) FROM i JOIN c ON i.oid = c.k WHERE c.k = o.k) FROM o",
    ),
    "a value from a union": (
        "id BIGINT, n BIGINT",
        "SELECT id, (SELECT COUNT(*) FROM (SELECT k FROM c UNION ALL SELECT k FROM a) AS x WHERE x.k = o.k) FROM o",
    ),
    "a value for all rows": ("id BIGINT, m BIGINT", "SELECT id, (SELECT MAX(w) FROM c) FROM o"),
    "rows above the average": ("id BIGINT", "SELECT id FROM o WHERE v > (SELECT AVG(v) FROM o)"),
    "a value in having": (
        "k BIGINT, t BIGINT",
        "SELECT k, SUM(v) FROM o GROUP BY k HAVING SUM(v) > (SELECT AVG(w) FROM c)",
    ),
    "a value beside an aggregate": ("n BIGINT, m BIGINT", "SELECT COUNT(*), (SELECT MAX(w) FROM c) FROM o"),
    "exists as a column": ("id BIGINT, e BOOLEAN", "SELECT id, EXISTS (SELECT 1 FROM c WHERE c.k = o.k) FROM o"),
    "exists beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE v = 1 OR EXISTS (SELECT 1 FROM c WHERE c.k = o.k AND c.w > 5)",
    ),
    "not exists beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE v = 20 OR NOT EXISTS (SELECT 1 FROM c WHERE c.k = o.k)",
    ),
    "a value by inequality": ("id BIGINT, m BIGINT", "SELECT id, (SELECT MAX(c.w) FROM c WHERE c.w < o.v) FROM o"),
    "a value by inequality of the outer rows": (
        "id BIGINT, n BIGINT",
        "SELECT id, (SELECT SUM(x.v) FROM o AS x WHERE x.id <= o.id) FROM o",
    ),
    "a value by equality and inequality": (
        "id BIGINT, m BIGINT, s STRING",
        "SELECT id, (SELECT MIN(c.w) FROM c WHERE c.k = o.k AND c.w > o.v), s FROM o",
    ),
    "a count by inequality": ("id BIGINT, n BIGINT", "SELECT id, (SELECT COUNT(*) FROM c WHERE c.w > o.v) FROM o"),
    "a value by inequality with an expression": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT MAX(c.w + 1) FROM c WHERE c.w - 2 < o.v * 2 OR c.k = o.k) FROM o WHERE v + k > 0",
    ),
    "a value by inequality in where": (
        "id BIGINT",
        "SELECT id FROM o WHERE v >= (SELECT AVG(c.w) FROM c WHERE c.k <> o.k)",
    ),
    "a value by inequality of a changelog": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT MAX(g.v) FROM g WHERE g.k <= o.k) FROM o",
    ),
    "a value by inequality in a changelog": (
        "k BIGINT, v BIGINT, n BIGINT",
        "SELECT k, v, (SELECT COUNT(c.w) FROM c WHERE c.k < g.v) FROM g",
    ),
    "exists by inequality as a column": (
        "id BIGINT, e BOOLEAN",
        "SELECT id, EXISTS (SELECT 1 FROM c WHERE c.w > o.v AND c.k = o.k) FROM o",
    ),
    "exists by inequality beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE v = 1 OR EXISTS (SELECT 1 FROM c WHERE c.k < o.k AND c.w > 5)",
    ),
    "not exists by inequality beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE v = 20 OR NOT EXISTS (SELECT 1 FROM c WHERE c.w > o.v)",
    ),
    "distinct rows with a value": (
        "k BIGINT, n BIGINT",
        "SELECT DISTINCT k, (SELECT COUNT(*) FROM c WHERE c.k = o.k) FROM o",
    ),
    # Numbers that leave their type
    "sums that wrap around": (
        "k BIGINT, b BIGINT, i INT, h SMALLINT, t TINYINT",
        "SELECT k, SUM(b), SUM(i), SUM(h), SUM(t) FROM n GROUP BY k",
    ),
    "averages that wrap around": (
        "k BIGINT, b BIGINT, i INT, h SMALLINT, t TINYINT",
        "SELECT k, AVG(b), AVG(i), AVG(h), AVG(t) FROM n GROUP BY k",
    ),
    "decimal sums with too many digits": (
        "k BIGINT, x DECIMAL(38, 0), z DECIMAL(38, 8)",
        "SELECT k, SUM(x), SUM(z) FROM n GROUP BY k",
    ),
    "decimal averages with too many digits": (
        "k BIGINT, x DECIMAL(38, 6), z DECIMAL(38, 8)",
        "SELECT k, AVG(x), AVG(z) FROM n GROUP BY k",
    ),
    "distinct decimal sums": (
        "k BIGINT, x DECIMAL(38, 0), z DECIMAL(38, 8)",
        "SELECT k, SUM(DISTINCT x), AVG(DISTINCT z) FROM n GROUP BY k",
    ),
    "integers that wrap around": (
        "b BIGINT, i INT, h SMALLINT, t TINYINT, c BIGINT, j INT",
        "SELECT b + 1, i * 2, -h, t - CAST(1 AS TINYINT), b * i, ABS(i) FROM n",
    ),
    "a filter on what wraps around": ("b BIGINT", "SELECT b FROM n WHERE b + 1 < b OR i - 1 > i"),
    "a join on what wraps around": ("a BIGINT, b BIGINT", "SELECT x.b, y.b FROM n AS x JOIN n AS y ON x.i + 1 = y.i"),
    "a left join with a condition that wraps around": (
        "a BIGINT, b BIGINT",
        "SELECT x.b, y.b FROM n AS x LEFT JOIN n AS y ON x.k = y.k AND x.b + y.i < y.b * 2",
    ),
    "a sum of products that wrap around": ("k BIGINT, s BIGINT", "SELECT k, SUM(b * b - i) FROM n GROUP BY k"),
}

# What Flink's streams give as NULL and its batch jobs, as standard SQL, as 0: a COUNT of no rows, in the last column.
NULL_FOR_ZERO: dict[str, Program] = {
    "left join lateral sum and count": (
        "id BIGINT, m BIGINT, n BIGINT",
        "SELECT o.id, x.m, x.n FROM o "
        "LEFT JOIN LATERAL (SELECT SUM(w) AS m, COUNT(DISTINCT name) AS n FROM c WHERE c.k = o.k) AS x ON TRUE",
    ),
    "left join lateral sum and count of changes": (
        "k BIGINT, m BIGINT, n BIGINT",
        "SELECT a.k, x.m, x.n FROM a "
        "LEFT JOIN LATERAL (SELECT MAX(v) AS m, COUNT(*) AS n FROM g WHERE g.k = a.k) AS x ON TRUE",
    ),
    "a count with having": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT COUNT(w) FROM c WHERE c.k = o.k HAVING COUNT(*) < 9) FROM o",
    ),
    "a count of nothing": ("id BIGINT, m BIGINT", "SELECT id, (SELECT COUNT(*) FROM c WHERE w > 99) FROM o"),
    "a count of nothing with having": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT COUNT(*) FROM c WHERE w > 99 HAVING COUNT(*) = 0) FROM o",
    ),
    "a count of nothing beside having": (
        "k BIGINT, m BIGINT",
        "SELECT k, (SELECT COUNT(*) FROM c WHERE w > 99) FROM o GROUP BY k HAVING COUNT(*) > 1",
    ),
    "a sum of nothing and a count": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT COALESCE(SUM(w), 0) + COUNT(*) FROM c WHERE w > 99) FROM o",
    ),
}

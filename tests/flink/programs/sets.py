"""Unions, intersections, differences, and grouping sets."""

from __future__ import annotations

from .tables import Program

SETS: dict[str, Program] = {
    # Unions, intersections, differences
    "union all": ("k BIGINT, s STRING", "SELECT k, s FROM o UNION ALL SELECT k, name FROM c"),
    "union": ("k BIGINT", "SELECT k FROM o UNION SELECT k FROM c"),
    "union of a changelog": ("k BIGINT", "SELECT k FROM g UNION SELECT k FROM a"),
    "union all of a changelog": ("k BIGINT, v BIGINT", "SELECT k, v FROM g UNION ALL SELECT k, w FROM c"),
    "aggregate over a union": (
        "k BIGINT, t BIGINT",
        "SELECT k, SUM(v) FROM (SELECT k, v FROM o UNION ALL SELECT k, w FROM c) AS u GROUP BY k",
    ),
    "aggregate over a union with a changelog": (
        "k BIGINT, a BIGINT, b BIGINT",
        "SELECT k, MIN(v), COUNT(DISTINCT v) FROM (SELECT k, v FROM g UNION ALL SELECT k, w FROM c) AS u GROUP BY k",
    ),
    "intersect": ("k BIGINT", "SELECT k FROM o INTERSECT SELECT k FROM c"),
    "intersect of two columns": ("k BIGINT, s STRING", "SELECT k, s FROM o INTERSECT SELECT k, s FROM g"),
    "except": ("k BIGINT", "SELECT k FROM o EXCEPT SELECT k FROM c"),
    "except of changelogs": ("k BIGINT", "SELECT k FROM g EXCEPT SELECT k FROM a"),
    "intersect all": ("k BIGINT, s STRING", "SELECT k, s FROM o INTERSECT ALL SELECT k, s FROM g"),
    "intersect all of duplicates": (
        "id BIGINT, k BIGINT, v BIGINT",
        "SELECT id, k, v FROM o INTERSECT ALL SELECT id, k, v FROM (SELECT * FROM o UNION ALL SELECT * FROM o)",
    ),
    "intersect all of changelogs": ("k BIGINT", "SELECT k FROM g INTERSECT ALL SELECT k FROM a"),
    "except all": ("k BIGINT", "SELECT k FROM o EXCEPT ALL SELECT k FROM c"),
    "except all of changelogs": ("v BIGINT", "SELECT v FROM g EXCEPT ALL SELECT w FROM a"),
    "except all of upserts": ("s STRING", "SELECT s FROM o EXCEPT ALL SELECT s FROM u"),
    "except all of other types": ("x BIGINT", "SELECT k FROM o EXCEPT ALL SELECT qty FROM i"),
    "except all of a chain": ("s STRING", "SELECT s FROM o EXCEPT ALL SELECT s FROM g EXCEPT ALL SELECT s FROM u"),
    "intersect all of an except all": (
        "k BIGINT",
        "SELECT k FROM o INTERSECT ALL (SELECT k FROM c EXCEPT ALL SELECT k FROM a)",
    ),
    "except all of values": ("x INT", "(VALUES (1), (2), (2), (2)) EXCEPT ALL (VALUES (1), (2))"),
    "aggregate of an except all": (
        "s STRING, n BIGINT",
        "SELECT s, COUNT(*) FROM (SELECT s FROM o EXCEPT ALL SELECT s FROM g) AS t WHERE s <> 'y' GROUP BY s",
    ),
    "join with an intersect all": (
        "id BIGINT, k BIGINT",
        "SELECT o.id, t.k FROM o LEFT JOIN (SELECT k FROM o INTERSECT ALL SELECT k FROM c) AS t ON o.k = t.k",
    ),
    "cte used twice": (
        "k BIGINT, a BIGINT, b BIGINT",
        "WITH t AS (SELECT k, v FROM o WHERE v > 0) SELECT x.k, x.v, y.n FROM t AS x "
        "JOIN (SELECT k, COUNT(*) AS n FROM t GROUP BY k) AS y ON x.k = y.k",
    ),
    # Grouping sets
    "rollup": ("k BIGINT, s STRING, n BIGINT, t BIGINT", "SELECT k, s, COUNT(*), SUM(v) FROM o GROUP BY ROLLUP (k, s)"),
    "cube": ("k BIGINT, s STRING, n BIGINT, a BIGINT", "SELECT k, s, COUNT(v), AVG(v) FROM o GROUP BY CUBE (k, s)"),
    "grouping sets": (
        "k BIGINT, s STRING, v BIGINT, n BIGINT",
        "SELECT k, s, v, COUNT(*) FROM o GROUP BY GROUPING SETS ((k, s), v, (), (s, v))",
    ),
    "rollup beside a column": (
        "s STRING, k BIGINT, v BIGINT, n BIGINT",
        "SELECT s, k, v, COUNT(*) FROM o GROUP BY s, ROLLUP (k, v)",
    ),
    "rollup in grouping sets": (
        "s STRING, k BIGINT, v BIGINT, n BIGINT",
        "SELECT s, k, v, COUNT(*) FROM o GROUP BY GROUPING SETS (ROLLUP ((s, k)), v)",
    ),
    "cube by rollup": (
        "s STRING, k BIGINT, m DOUBLE",
        "SELECT s, k, MAX(d) FROM o GROUP BY DISTINCT CUBE (s), ROLLUP (s, k)",
    ),
    "rollup of expressions": (
        "a BIGINT, b STRING, t BIGINT",
        "SELECT v / 10, COALESCE(s, 'n'), SUM(v / 10) FROM o GROUP BY ROLLUP (v / 10, COALESCE(s, 'n'))",
    ),
    "aggregates of rolled up columns": (
        "k BIGINT, s STRING, a BIGINT, b BIGINT, c STRING, d BIGINT",
        "SELECT k, s, SUM(k), COUNT(DISTINCT s), MIN(s), COUNT(k) FILTER (WHERE s = 'x') FROM o GROUP BY ROLLUP (k, s)",
    ),
    "grouping": (
        "k BIGINT, s STRING, a BIGINT, b BIGINT, c BIGINT, d BIGINT, e BIGINT, n BIGINT",
        "SELECT k, s, GROUPING(k), GROUPING(s), GROUPING_ID(k, s), GROUPING_ID(s, k), GROUP_ID(), COUNT(*) FROM o "
        "GROUP BY CUBE (k, s)",
    ),
    "grouping of several": (
        "s STRING, k BIGINT, a BIGINT, b BIGINT",
        "SELECT s, k, GROUPING(k, v, s), GROUPING_ID(v) FROM o GROUP BY s, GROUPING SETS ((k, v), (k), v)",
    ),
    "grouping without sets": ("k BIGINT, a BIGINT, b BIGINT", "SELECT k, GROUPING(k), GROUP_ID() FROM o GROUP BY k"),
    "having on grouping": (
        "k BIGINT, s STRING, n BIGINT",
        "SELECT k, s, COUNT(*) FROM o GROUP BY CUBE (k, s) HAVING GROUPING(k) = 1 OR GROUPING(s) = 0 AND COUNT(*) > 1",
    ),
    "labels by grouping": (
        "label STRING, n BIGINT",
        "SELECT CASE WHEN GROUPING(s) = 1 THEN 'all' WHEN s IS NULL THEN 'none' ELSE s END, COUNT(*) FROM o GROUP BY CUBE (s)",
    ),
    "rollup of a changelog": (
        "k BIGINT, s STRING, n BIGINT, t BIGINT",
        "SELECT k, s, COUNT(*), SUM(v) FROM g GROUP BY ROLLUP (k, s)",
    ),
    "cube over a left join": (
        "name STRING, s STRING, n BIGINT, m BIGINT",
        "SELECT c.name, o.s, COUNT(*), MAX(o.v) FROM o LEFT JOIN c ON o.k = c.k GROUP BY CUBE (c.name, o.s)",
    ),
    "rollup of an aggregate over a left join": (
        "name STRING, m BIGINT, t BIGINT",
        "SELECT name, n, SUM(n) FROM (SELECT a.name, COUNT(*) AS n FROM g LEFT JOIN a ON g.k = a.k GROUP BY a.name) AS t "
        "GROUP BY ROLLUP (name, n)",
    ),
    "distinct counts of a cube of a changelog": (
        "s STRING, k BIGINT, n BIGINT, m BIGINT",
        "SELECT s, k, COUNT(DISTINCT v), COUNT(DISTINCT k) FILTER (WHERE v > 10) FROM g GROUP BY CUBE (s, k)",
    ),
    "aggregate of a rollup": (
        "s STRING, n BIGINT, t BIGINT",
        "SELECT s, COUNT(*), SUM(n) FROM (SELECT k, s, COUNT(*) AS n FROM g GROUP BY ROLLUP (k, s)) AS t GROUP BY s",
    ),
    "join with a rollup": (
        "id BIGINT, n BIGINT",
        "SELECT o.id, t.n FROM o JOIN (SELECT k, COUNT(*) AS n FROM g GROUP BY ROLLUP (k)) AS t ON o.k = t.k",
    ),
    "distinct of a rollup": ("k BIGINT, n BIGINT", "SELECT DISTINCT k, COUNT(*) FROM o GROUP BY ROLLUP (k, s)"),
    "rollup of no rows": ("k BIGINT, n BIGINT", "SELECT k, COUNT(*) FROM o WHERE id > 99 GROUP BY ROLLUP (k)"),
    "the empty set": ("n BIGINT, t BIGINT", "SELECT COUNT(*), SUM(v) FROM o GROUP BY GROUPING SETS (())"),
}

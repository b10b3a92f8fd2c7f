"""Aggregates of groups, of aggregates, and with joins."""

from __future__ import annotations

from .tables import Program

AGGREGATES: dict[str, Program] = {
    # Group aggregates
    "count": ("k BIGINT, n BIGINT", "SELECT k, COUNT(*) FROM o GROUP BY k"),
    "count of a column": ("k BIGINT, n BIGINT", "SELECT k, COUNT(v) FROM o GROUP BY k"),
    "sum": ("k BIGINT, t BIGINT", "SELECT k, SUM(v) FROM o GROUP BY k"),
    "average of integers": ("k BIGINT, m BIGINT", "SELECT k, AVG(v) FROM o GROUP BY k"),
    "average of doubles": ("s STRING, m DOUBLE", "SELECT s, AVG(d) FROM o GROUP BY s"),
    "sum of doubles": ("s STRING, m DOUBLE", "SELECT s, SUM(d) FROM o GROUP BY s"),
    "sum of decimals": ("s STRING, t DECIMAL(38, 2)", "SELECT s, SUM(p) FROM o GROUP BY s"),
    "average of decimals": ("s STRING, t DECIMAL(38, 6)", "SELECT s, AVG(p) FROM o GROUP BY s"),
    "minimum and maximum": ("k BIGINT, a BIGINT, b BIGINT", "SELECT k, MIN(v), MAX(v) FROM o GROUP BY k"),
    "minimum and maximum of text": ("k BIGINT, a STRING, b STRING", "SELECT k, MIN(s), MAX(s) FROM o GROUP BY k"),
    "minimum and maximum of decimals": (
        "s STRING, a DECIMAL(10, 2), b DECIMAL(10, 2)",
        "SELECT s, MIN(p), MAX(p) FROM o GROUP BY s",
    ),
    "two keys": ("k BIGINT, s STRING, n BIGINT", "SELECT k, s, COUNT(*) FROM o GROUP BY k, s"),
    "group by an expression": ("a BIGINT, n BIGINT", "SELECT k + 1, COUNT(*) FROM o GROUP BY k + 1"),
    "group by case": (
        "a STRING, n BIGINT",
        "SELECT CASE WHEN v > 15 THEN 'big' ELSE 'small' END, COUNT(*) FROM o "
        "GROUP BY CASE WHEN v > 15 THEN 'big' ELSE 'small' END",
    ),
    "expressions over aggregates": (
        "k BIGINT, a BIGINT",
        "SELECT k, SUM(v) * 2 + COUNT(*) FROM o WHERE v IS NOT NULL GROUP BY k",
    ),
    "having": ("k BIGINT, t BIGINT", "SELECT k, SUM(v) FROM o GROUP BY k HAVING COUNT(*) > 1"),
    "having on another aggregate": ("k BIGINT", "SELECT k FROM o GROUP BY k HAVING MAX(v) > 10 AND MIN(v) > 0"),
    "global count": ("n BIGINT", "SELECT COUNT(*) FROM o"),
    "global aggregates": ("n BIGINT, t BIGINT, m BIGINT", "SELECT COUNT(v), SUM(v), MAX(v) FROM o"),
    "global aggregate of nothing": ("n BIGINT, t BIGINT", "SELECT COUNT(*), SUM(v) FROM o WHERE id > 100"),
    "count distinct": ("k BIGINT, n BIGINT", "SELECT k, COUNT(DISTINCT v) FROM o GROUP BY k"),
    "sum distinct": ("k BIGINT, t BIGINT", "SELECT k, SUM(DISTINCT v) FROM o GROUP BY k"),
    "average distinct": ("k BIGINT, t BIGINT", "SELECT k, AVG(DISTINCT v) FROM o GROUP BY k"),
    "distinct beside plain": (
        "k BIGINT, a BIGINT, b BIGINT, c BIGINT",
        "SELECT k, COUNT(DISTINCT v), COUNT(v), SUM(DISTINCT v) FROM o GROUP BY k",
    ),
    "two distincts": (
        "k BIGINT, a BIGINT, b BIGINT",
        "SELECT k, COUNT(DISTINCT v), COUNT(DISTINCT s) FROM o GROUP BY k",
    ),
    "filter clause": (
        "k BIGINT, a BIGINT, b BIGINT",
        "SELECT k, COUNT(*) FILTER (WHERE v > 10), SUM(v) FILTER (WHERE s = 'x') FROM o GROUP BY k",
    ),
    "distinct with filter": (
        "k BIGINT, a BIGINT, b BIGINT",
        "SELECT k, COUNT(DISTINCT v) FILTER (WHERE s = 'x'), COUNT(DISTINCT v) FROM o GROUP BY k",
    ),
    "minimum with filter": ("k BIGINT, a BIGINT", "SELECT k, MIN(v) FILTER (WHERE s <> 'x') FROM o GROUP BY k"),
    "select distinct": ("k BIGINT, s STRING", "SELECT DISTINCT k, s FROM o"),
    "select distinct of an aggregate": ("n BIGINT", "SELECT DISTINCT COUNT(*) FROM o GROUP BY k"),
    "first and last value": (
        "k BIGINT, a BIGINT, b BIGINT",
        "SELECT k, FIRST_VALUE(v), LAST_VALUE(v) FROM o GROUP BY k",
    ),
    "first and last value with a filter": (
        "k BIGINT, a STRING, b STRING",
        "SELECT k, FIRST_VALUE(s) FILTER (WHERE v > 10), LAST_VALUE(s) FILTER (WHERE s <> 'x') FROM o GROUP BY k",
    ),
    "listagg": ("k BIGINT, a STRING", "SELECT k, LISTAGG(s) FROM o GROUP BY k"),
    "listagg with a separator": ("s STRING, a STRING", "SELECT s, LISTAGG(s, ' / ') FROM o GROUP BY s"),
    "count of a changelog": ("s STRING, n BIGINT", "SELECT s, COUNT(*) FROM g GROUP BY s"),
    "sum of a changelog": ("s STRING, t BIGINT", "SELECT s, SUM(v) FROM g GROUP BY s"),
    "average of a changelog": ("s STRING, t BIGINT", "SELECT s, AVG(v) FROM g GROUP BY s"),
    "extremes of a changelog": ("s STRING, a BIGINT, b BIGINT", "SELECT s, MIN(v), MAX(v) FROM g GROUP BY s"),
    "distinct count of a changelog": ("s STRING, n BIGINT", "SELECT s, COUNT(DISTINCT v) FROM g GROUP BY s"),
    "group key that changes": ("k BIGINT, n BIGINT, t BIGINT", "SELECT k, COUNT(*), SUM(v) FROM g GROUP BY k"),
    "global aggregate of a changelog": ("n BIGINT, t BIGINT, m BIGINT", "SELECT COUNT(*), SUM(v), MIN(v) FROM g"),
    "select distinct of a changelog": ("s STRING", "SELECT DISTINCT s FROM g"),
    "having over a changelog": ("s STRING, n BIGINT", "SELECT s, COUNT(*) FROM g GROUP BY s HAVING COUNT(*) > 1"),
    "filter clause over a changelog": (
        "s STRING, n BIGINT",
        "SELECT s, COUNT(*) FILTER (WHERE v > 20) FROM g GROUP BY s",
    ),
    # Aggregates of aggregates, and with joins
    "aggregate of an aggregate": (
        "n BIGINT, m BIGINT",
        "SELECT n, COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM o GROUP BY k) AS t GROUP BY n",
    ),
    "extremes of an aggregate": (
        "a BIGINT, b BIGINT",
        "SELECT MIN(t), MAX(t) FROM (SELECT k, SUM(v) AS t FROM o GROUP BY k) AS x",
    ),
    "distinct of an aggregate": (
        "a BIGINT",
        "SELECT COUNT(DISTINCT n) FROM (SELECT k, COUNT(*) AS n FROM o GROUP BY k) AS x",
    ),
    "aggregate over an inner join": (
        "name STRING, n BIGINT, t BIGINT",
        "SELECT c.name, COUNT(*), SUM(o.v) FROM o JOIN c ON o.k = c.k GROUP BY c.name",
    ),
    "aggregate over a left join": (
        "name STRING, n BIGINT, t BIGINT",
        "SELECT c.name, COUNT(*), SUM(o.v) FROM o LEFT JOIN c ON o.k = c.k GROUP BY c.name",
    ),
    "extremes over a left join": (
        "name STRING, a BIGINT, b BIGINT",
        "SELECT c.name, MIN(o.v), MAX(o.v) FROM o LEFT JOIN c ON o.k = c.k GROUP BY c.name",
    ),
    "distinct over a full join": (
        "name STRING, n BIGINT",
        "SELECT c.name, COUNT(DISTINCT o.v) FROM o FULL JOIN c ON o.k = c.k GROUP BY c.name",
    ),
    "join of an aggregate": (
        "name STRING, t BIGINT",
        "SELECT c.name, x.t FROM c JOIN (SELECT k, SUM(v) AS t FROM o GROUP BY k) AS x ON c.k = x.k",
    ),
    "left join of an aggregate": (
        "name STRING, t BIGINT",
        "SELECT c.name, x.t FROM c LEFT JOIN (SELECT k, SUM(v) AS t FROM o GROUP BY k) AS x ON c.k = x.k",
    ),
    "join of two aggregates": (
        "k BIGINT, t BIGINT, u BIGINT",
        "SELECT x.k, x.t, y.u FROM (SELECT k, SUM(v) AS t FROM o GROUP BY k) AS x "
        "JOIN (SELECT k, SUM(w) AS u FROM c GROUP BY k) AS y ON x.k = y.k",
    ),
    "full join of two aggregates": (
        "k BIGINT, t BIGINT, u BIGINT",
        "SELECT x.k, x.t, y.u FROM (SELECT k, SUM(v) AS t FROM o GROUP BY k) AS x "
        "FULL JOIN (SELECT k, SUM(w) AS u FROM c GROUP BY k) AS y ON x.k = y.k",
    ),
    "join with an aggregate of itself": (
        "id BIGINT, m BIGINT",
        "SELECT o.id, x.m FROM o JOIN (SELECT k, MAX(v) AS m FROM o GROUP BY k) AS x ON o.k = x.k AND o.v = x.m",
    ),
    "aggregate over two joins": (
        "name STRING, q INT",
        "SELECT c.name, SUM(i.qty) FROM o JOIN c ON o.k = c.k LEFT JOIN i ON i.oid = o.id GROUP BY c.name",
    ),
    "cross join with one row": (
        "id BIGINT, m BIGINT",
        "SELECT o.id, x.m FROM o CROSS JOIN (SELECT MAX(w) AS m FROM c) AS x WHERE o.v < x.m",
    ),
    "join with one row on an inequality": (
        "id BIGINT, m BIGINT",
        "SELECT o.id, x.m FROM o JOIN (SELECT SUM(w) AS m FROM c) AS x ON o.v * 10 > x.m",
    ),
    "aggregate over a join of changelogs": (
        "name STRING, t BIGINT",
        "SELECT a.name, SUM(g.v) FROM g LEFT JOIN a ON g.k = a.k GROUP BY a.name",
    ),
    "extremes over a join of changelogs": (
        "name STRING, x BIGINT, y BIGINT",
        "SELECT a.name, MIN(g.v), MAX(g.v) FROM g FULL JOIN a ON g.k = a.k GROUP BY a.name",
    ),
    "three levels": (
        "n BIGINT, t BIGINT",
        "SELECT n, SUM(t) FROM (SELECT name, COUNT(*) AS n, SUM(t) AS t FROM "
        "(SELECT c.name, x.t FROM c JOIN (SELECT k, SUM(v) AS t FROM o GROUP BY k) AS x ON c.k = x.k) AS y "
        "GROUP BY name) AS z GROUP BY n",
    ),
}

# Of a single value that cannot be NULL, Flink's VAR_SAMP and STDDEV_SAMP are -1, and NULL of one that can.
NULL_FOR_MINUS_ONE: dict[str, Program] = {
    "variances of one value that is not null": (
        "g INT, p DOUBLE, s DOUBLE, dp DOUBLE, ds DOUBLE",
        "SELECT g, VAR_POP(v), VAR_SAMP(v), STDDEV_POP(v), STDDEV_SAMP(v) "
        "FROM (VALUES (1, 5.0E0), (2, 1.0E0), (2, 2.0E0)) AS t(g, v) GROUP BY g",
    ),
}

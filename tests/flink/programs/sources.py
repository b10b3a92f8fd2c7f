"""What else FROM reads: joins without an equality, VALUES, nothing, and USING."""

from __future__ import annotations

from .tables import Program

SOURCES: dict[str, Program] = {
    # Joins without an equality
    "cross join": ("id BIGINT, w BIGINT", "SELECT o.id, c.w FROM o CROSS JOIN c"),
    "comma join without a condition": ("id BIGINT, k BIGINT", "SELECT o.id, g.k FROM o, g"),
    "inner join by inequality": ("id BIGINT, w BIGINT", "SELECT o.id, c.w FROM o JOIN c ON o.v > c.w"),
    "left join by inequality": ("id BIGINT, w BIGINT", "SELECT o.id, c.w FROM o LEFT JOIN c ON o.v < c.w AND c.k <> 5"),
    "right join by inequality": ("id BIGINT, w BIGINT", "SELECT o.id, c.w FROM o RIGHT JOIN c ON o.v > c.w"),
    "full join by inequality": ("id BIGINT, w BIGINT", "SELECT o.id, c.w FROM o FULL JOIN c ON o.v > c.w + 10"),
    "left join of a changelog by inequality": (
        "id BIGINT, v BIGINT",
        "SELECT o.id, g.v FROM o LEFT JOIN g ON o.v < g.v AND o.id < g.k",
    ),
    "join of ranges": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o JOIN c ON o.v BETWEEN c.w - 5 AND c.w + 5",
    ),
    "exists without a condition": ("id BIGINT", "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM g WHERE v > 1)"),
    "exists by inequality": ("id BIGINT", "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM c WHERE c.w < o.v)"),
    "not exists by inequality": ("id BIGINT", "SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM g WHERE g.v > o.v)"),
    "cross join counted": ("n BIGINT", "SELECT COUNT(*) FROM o, c, i WHERE o.id < c.w"),
    # Rows that are written in the query.
    "values": ("x INT, y STRING", "VALUES (1, 'a'), (2, 'bcd'), (1, 'a')"),
    "values in from": ("y STRING, x INT", "SELECT y, x FROM (VALUES (1, 'a'), (2, 'bcd')) AS t(x, y) WHERE x > 1"),
    "values without parentheses": ("x INT", "SELECT * FROM (VALUES 1, 2) AS t(x)"),
    "values as rows": ("x INT, y INT", "SELECT * FROM (VALUES ROW(1, 2), ROW(3, 4)) AS t(x, y)"),
    "values under the names of their places": ("x INT", "SELECT EXPR$0 FROM (VALUES (1, 'a')) AS t WHERE EXPR$1 = 'a'"),
    "values of several types": (
        "x BIGINT, y DECIMAL(3, 1), z DOUBLE",
        "SELECT x, y, z FROM (VALUES (1, 2.5, 1e0), (CAST(2 AS BIGINT), 4, 2e0)) AS t(x, y, z)",
    ),
    "computed values": (
        "x INT, s STRING, n STRING",
        "VALUES (1 + 1, COALESCE('a', 'b'), CAST(NULL AS STRING)), (-2, CAST(3 AS STRING), 'b')",
    ),
    "values of time": (
        "d DATE, t TIMESTAMP(3), b BOOLEAN",
        "VALUES (DATE '2024-02-29', TIMESTAMP '2024-02-29 12:34:56.789', TRUE), "
        "(DATE '1969-12-31', TIMESTAMP '1969-12-31 23:59:59.999', FALSE)",
    ),
    "join with values": (
        "id BIGINT, y STRING",
        "SELECT o.id, t.y FROM o JOIN (VALUES (1, 'a'), (2, 'b'), (2, 'c')) AS t(x, y) ON o.k = t.x",
    ),
    "left join with values": (
        "id BIGINT, y STRING",
        "SELECT o.id, t.y FROM o LEFT JOIN (VALUES (1, 'a'), (2, 'b')) AS t(x, y) ON o.k = t.x",
    ),
    "values left join a changelog": (
        "y STRING, n BIGINT",
        "SELECT t.y, COUNT(g.v) FROM (VALUES (1, 'a'), (9, 'b')) AS t(x, y) LEFT JOIN g ON g.k = t.x GROUP BY t.y",
    ),
    "cross join with values": ("id BIGINT, x INT", "SELECT o.id, t.x FROM o, (VALUES 1, 2) AS t(x)"),
    "values union all": ("k BIGINT", "VALUES (1), (2) UNION ALL SELECT k FROM c"),
    "union with values": ("k BIGINT", "SELECT k FROM c UNION (VALUES (1), (77))"),
    "values except": ("x INT", "(VALUES (1), (2), (2)) EXCEPT (SELECT 1)"),
    "intersect values": ("k BIGINT", "SELECT k FROM c INTERSECT (VALUES (CAST(1 AS BIGINT)), (CAST(8 AS BIGINT)))"),
    "in values": ("id BIGINT", "SELECT id FROM o WHERE k IN (VALUES 1, 2)"),
    "not in values": ("id BIGINT", "SELECT id FROM o WHERE k NOT IN (VALUES (1), (2))"),
    "in values of two columns": ("id BIGINT", "SELECT id FROM o WHERE (k, v) IN (VALUES (1, 10), (2, 20))"),
    "exists values": ("id BIGINT", "SELECT id FROM o WHERE EXISTS (VALUES (1))"),
    "values as a value": ("id BIGINT, x INT", "SELECT id, (VALUES (1)) FROM o"),
    "with values": ("x INT, y STRING", "WITH t(x, y) AS (VALUES (1, 'a'), (2, 'b')) SELECT * FROM t"),
    "aggregate of values": ("n BIGINT, x INT", "SELECT COUNT(*), MAX(x) FROM (VALUES (1, 'a'), (2, 'b')) AS t(x, y)"),
    "values with a limit": ("x INT", "SELECT x FROM (VALUES (3), (1), (2) ORDER BY 1 LIMIT 2) AS t(x)"),
    "values in a changelog": ("x INT", "SELECT x FROM (VALUES (1), (2), (5)) AS t(x) WHERE x NOT IN (SELECT k FROM a)"),
    # SELECT without FROM
    "select without from": ("x INT, y STRING", "SELECT 1, 'a'"),
    "union all of selects without from": ("x INT, y STRING", "SELECT 1 AS x, 'a' AS y UNION ALL SELECT 2, 'bc'"),
    "union of selects without from": ("x INT", "SELECT 1 AS x UNION SELECT 1"),
    "aggregate without from": ("n BIGINT, x INT, y INT", "SELECT COUNT(*), SUM(3), MAX(1)"),
    "distinct without from": ("x INT", "SELECT DISTINCT 1"),
    "select without from with a limit": ("x INT", "SELECT 1 LIMIT 1"),
    "sub-query without from": ("x INT", "SELECT x FROM (SELECT 1 AS x UNION ALL SELECT 2) AS t WHERE x > 1"),
    "join with a row without from": ("id BIGINT", "SELECT o.id FROM o JOIN (SELECT 1 AS x) AS t ON o.k = t.x"),
    "value of a sub-query without from": ("m BIGINT, x INT", "SELECT (SELECT MAX(id) FROM o), (SELECT 1)"),
    # USING and NATURAL where either side may have no row.
    "right join using": ("id BIGINT, name STRING, k BIGINT", "SELECT o.id, c.name, k FROM o RIGHT JOIN c USING (k)"),
    "full join using": ("id BIGINT, name STRING, k BIGINT", "SELECT id, name, k FROM o FULL JOIN c USING (k)"),
    "all columns of a full join using": (
        "k BIGINT, id BIGINT, name STRING, w BIGINT",
        "SELECT * FROM (SELECT id, k FROM o) AS o FULL JOIN c USING (k)",
    ),
    "all columns of each side of a full join using": (
        "id BIGINT, a BIGINT, b BIGINT, name STRING, w BIGINT",
        "SELECT o.*, c.* FROM (SELECT id, k FROM o) AS o FULL JOIN c USING (k)",
    ),
    "sides of a full join using": ("a BIGINT, b BIGINT, k BIGINT", "SELECT o.k, c.k, k FROM o FULL JOIN c USING (k)"),
    "natural right join": (
        "k BIGINT, id BIGINT, name STRING, w BIGINT",
        "SELECT * FROM (SELECT id, k FROM o) AS o NATURAL RIGHT JOIN c",
    ),
    "natural full join of changes": (
        "k BIGINT, v BIGINT, name STRING, w BIGINT",
        "SELECT * FROM (SELECT k, v FROM g) AS g NATURAL FULL JOIN a",
    ),
    "group of a full join using": ("n BIGINT, k BIGINT", "SELECT COUNT(*), k FROM o FULL JOIN c USING (k) GROUP BY k"),
    # No rows at all, and the columns that a ROW has.
    "limit of nothing": ("id BIGINT", "SELECT id FROM o LIMIT 0"),
    "sorted limit of nothing": ("id BIGINT", "SELECT id FROM o ORDER BY v LIMIT 0 OFFSET 2"),
    "fetch of nothing of changes": ("k BIGINT", "SELECT k FROM g FETCH FIRST 0 ROWS ONLY"),
    "nothing beside rows": ("id BIGINT", "SELECT id FROM o WHERE id < 3 UNION ALL (SELECT k FROM g LIMIT 0)"),
    "not in nothing": ("id BIGINT", "SELECT id FROM o WHERE k NOT IN (SELECT k FROM g LIMIT 0)"),
    "join with nothing": (
        "id BIGINT, v BIGINT",
        "SELECT o.id, x.v FROM o LEFT JOIN (SELECT k, v FROM g LIMIT 0) AS x ON o.k = x.k",
    ),
    "fields of a row": (
        "a BIGINT, b STRING, id BIGINT",
        "SELECT t.r.*, id FROM (SELECT id, CAST(ROW(k, s) AS ROW<a BIGINT, b STRING>) AS r FROM o) AS t",
    ),
    "fields of a row in a row, without a table": (
        "a BIGINT, b STRING, v BIGINT",
        "SELECT r.q.*, r.v FROM (SELECT CAST(ROW(v, ROW(k, s)) AS ROW<v BIGINT, q ROW<a BIGINT, b STRING>>) AS r FROM g)",
    ),
    "grouped by the fields of a row": (
        "a BIGINT, b STRING, n BIGINT",
        "SELECT t.r.*, COUNT(*) FROM (SELECT CAST(ROW(k, s) AS ROW<a BIGINT, b STRING>) AS r FROM o) AS t GROUP BY t.r.a, t.r.b",
    ),
    "a table that is called as its row": (
        "id BIGINT, a BIGINT",
        "SELECT r.* FROM (SELECT id, k AS r FROM o) AS r",
    ),
    "natural join of elements": (
        "k BIGINT, x STRING",
        "SELECT k, x FROM (SELECT k, COLLECT(s) AS a FROM o GROUP BY k) AS t NATURAL JOIN UNNEST(a) AS e (x)",
    ),
    "natural left join of elements of changes": (
        "s STRING, x BIGINT",
        "SELECT s, x FROM (SELECT s, COLLECT(v) AS a FROM g GROUP BY s) AS t NATURAL LEFT JOIN UNNEST(a) AS e (x)",
    ),
}

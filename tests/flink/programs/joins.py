"""Projections, filters, and joins, of inserts and of changelogs."""

from __future__ import annotations

from .tables import Program

JOINS: dict[str, Program] = {
    # Projections and filters
    "filter": ("id BIGINT, s STRING", "SELECT id, s FROM o WHERE v > 10 AND s <> 'z'"),
    "filter on null": ("id BIGINT", "SELECT id FROM o WHERE v IS NULL OR s IS NULL"),
    "filter with or": ("id BIGINT, v BIGINT", "SELECT id, v FROM o WHERE NOT (v = 10 OR k = 2)"),
    "arithmetic": ("a BIGINT, b BIGINT, c BIGINT", "SELECT v + 1, v * 2 - id, -v FROM o"),
    "integer division": ("a BIGINT, b BIGINT", "SELECT v / 3, id / 2 FROM o WHERE v IS NOT NULL"),
    "case": (
        "id BIGINT, a STRING",
        "SELECT id, CASE WHEN v > 15 THEN 'big' WHEN v IS NULL THEN 'none' ELSE s END FROM o",
    ),
    "coalesce": ("a BIGINT, b STRING", "SELECT COALESCE(v, k, 0), COALESCE(s, 'n') FROM o"),
    "between and in": ("id BIGINT", "SELECT id FROM o WHERE v BETWEEN 7 AND 20 AND s IN ('x', 'z')"),
    "not in a list": ("id BIGINT", "SELECT id FROM o WHERE k NOT IN (1, 2)"),
    "like": ("k BIGINT, name STRING", "SELECT k, name FROM c WHERE name LIKE '%o%'"),
    "filter of a changelog": ("k BIGINT, v BIGINT", "SELECT k, v FROM g WHERE v > 10"),
    "projection of a changelog": ("s STRING, v BIGINT", "SELECT s, v + 1 FROM g"),
    # Joins of inserts
    "inner join": ("id BIGINT, name STRING", "SELECT o.id, c.name FROM o JOIN c ON o.k = c.k"),
    "left join": ("id BIGINT, name STRING", "SELECT o.id, c.name FROM o LEFT JOIN c ON o.k = c.k"),
    "right join": ("id BIGINT, name STRING", "SELECT o.id, c.name FROM o RIGHT JOIN c ON o.k = c.k"),
    "full join": ("id BIGINT, name STRING", "SELECT o.id, c.name FROM o FULL JOIN c ON o.k = c.k"),
    "inner join with a condition": ("id BIGINT, w BIGINT", "SELECT o.id, c.w FROM o JOIN c ON o.k = c.k AND o.v > c.w"),
    "left join with a condition": (
        "id BIGINT, w BIGINT",
        "SELECT o.id, c.w FROM o LEFT JOIN c ON o.k = c.k AND o.v > c.w",
    ),
    "left join with a condition on the left": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o LEFT JOIN c ON o.k = c.k AND o.v > 10",
    ),
    "left join with a condition on the right": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o LEFT JOIN c ON o.k = c.k AND c.w < 20",
    ),
    "right join with conditions": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o RIGHT JOIN c ON o.k = c.k AND o.v > 10 AND c.w > 1",
    ),
    "full join with a condition": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o FULL JOIN c ON o.k = c.k AND o.v < c.w",
    ),
    "join on two keys": ("a BIGINT, b BIGINT", "SELECT o.id, p.id FROM o JOIN o AS p ON o.k = p.k AND o.s = p.s"),
    "join on an expression": ("id BIGINT, name STRING", "SELECT o.id, c.name FROM o JOIN c ON o.k + 1 = c.k"),
    "join of different integers": ("id BIGINT, part STRING", "SELECT o.id, i.part FROM o JOIN i ON o.k = i.qty"),
    "join on text": (
        "a BIGINT, b BIGINT",
        "SELECT o.id, g.v FROM o JOIN (SELECT * FROM i) AS x ON o.s = x.part JOIN g ON g.s = o.s",
    ),
    "null-safe join": ("id BIGINT, name STRING", "SELECT o.id, c.name FROM o JOIN c ON o.k IS NOT DISTINCT FROM c.k"),
    "null-safe left join": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o LEFT JOIN c ON o.k IS NOT DISTINCT FROM c.k",
    ),
    "self join": ("a BIGINT, b BIGINT", "SELECT x.id, y.id FROM o AS x JOIN o AS y ON x.k = y.k AND x.id < y.id"),
    "self left join": (
        "a BIGINT, b BIGINT",
        "SELECT x.id, y.id FROM o AS x LEFT JOIN o AS y ON x.k = y.k AND x.id < y.id",
    ),
    "join using": ("k BIGINT, id BIGINT, name STRING", "SELECT k, id, name FROM o JOIN c USING (k)"),
    "comma join": ("id BIGINT, name STRING", "SELECT o.id, c.name FROM o, c WHERE o.k = c.k AND o.v >= 10"),
    "cascade of inner joins": (
        "id BIGINT, name STRING, part STRING",
        "SELECT o.id, c.name, i.part FROM o JOIN c ON o.k = c.k JOIN i ON o.id = i.oid",
    ),
    "cascade of left joins": (
        "id BIGINT, name STRING, part STRING",
        "SELECT o.id, c.name, i.part FROM o LEFT JOIN c ON o.k = c.k LEFT JOIN i ON o.id = i.oid",
    ),
    "left join, then inner": (
        "id BIGINT, name STRING, part STRING",
        "SELECT o.id, c.name, i.part FROM o LEFT JOIN c ON o.k = c.k JOIN i ON o.id = i.oid AND i.qty > 1",
    ),
    "join of a join in parentheses": (
        "id BIGINT, name STRING",
        "SELECT i.qty, c.name FROM i JOIN (o JOIN c ON o.k = c.k) ON i.oid = o.id",
    ),
    "outer join and filter on the padded side": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o LEFT JOIN c ON o.k = c.k WHERE c.name IS NULL",
    ),
    "outer join and filter that removes pads": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o LEFT JOIN c ON o.k = c.k WHERE c.w > 1",
    ),
    "full join of expressions": (
        "a BIGINT, b BIGINT",
        "SELECT COALESCE(o.k, c.k), c.w FROM o FULL JOIN c ON o.k = c.k",
    ),
    # Semi and anti joins
    "in": ("id BIGINT, s STRING", "SELECT id, s FROM o WHERE k IN (SELECT k FROM c)"),
    "in with a filter": ("id BIGINT", "SELECT id FROM o WHERE k IN (SELECT k FROM c WHERE w > 10) AND v > 0"),
    "exists": ("id BIGINT", "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.oid = o.id)"),
    "exists with a condition": (
        "id BIGINT",
        "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM c WHERE c.k = o.k AND c.w > o.v)",
    ),
    "not exists": ("id BIGINT", "SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM i WHERE i.oid = o.id)"),
    "not exists with a condition": (
        "id BIGINT",
        "SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.k = o.k AND c.w > o.v)",
    ),
    "not in": ("id BIGINT", "SELECT id FROM o WHERE k NOT IN (SELECT k FROM c WHERE k IS NOT NULL)"),
    "not in with a null": ("id BIGINT", "SELECT id FROM o WHERE k NOT IN (SELECT k FROM c)"),
    "not in of an empty result": ("id BIGINT", "SELECT id FROM o WHERE k NOT IN (SELECT k FROM c WHERE w > 99)"),
    "in of an aggregate": ("id BIGINT", "SELECT id FROM o WHERE k IN (SELECT k FROM c GROUP BY k HAVING COUNT(*) > 1)"),
    "in and exists": (
        "id BIGINT",
        "SELECT id FROM o WHERE k IN (SELECT k FROM c) AND NOT EXISTS (SELECT 1 FROM i WHERE i.oid = o.id AND i.qty > 2)",
    ),
    "semi join under an aggregate": (
        "s STRING, n BIGINT",
        "SELECT s, COUNT(*) FROM o WHERE k IN (SELECT k FROM c WHERE w > 1) GROUP BY s",
    ),
    "anti join under an aggregate": (
        "s STRING, n BIGINT",
        "SELECT s, COUNT(*) FROM o WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.k = o.k AND c.w > 1) GROUP BY s",
    ),
    "in of a changelog": ("id BIGINT", "SELECT id FROM o WHERE k IN (SELECT k FROM g)"),
    "not exists in a changelog": ("id BIGINT", "SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM g WHERE g.k = o.k)"),
    "in over a changelog": ("k BIGINT, v BIGINT", "SELECT k, v FROM g WHERE k IN (SELECT k FROM c)"),
    "not exists over a changelog": (
        "k BIGINT, v BIGINT",
        "SELECT k, v FROM g WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.k = g.k AND c.w > 1)",
    ),
    "semi join of two changelogs": (
        "k BIGINT, v BIGINT",
        "SELECT k, v FROM g WHERE EXISTS (SELECT 1 FROM a WHERE a.k = g.k)",
    ),
    "anti join of two changelogs": (
        "k BIGINT, v BIGINT",
        "SELECT k, v FROM g WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.k = g.k)",
    ),
    # Joins of changelogs
    "inner join of changelogs": ("k BIGINT, v BIGINT, w BIGINT", "SELECT g.k, g.v, a.w FROM g JOIN a ON g.k = a.k"),
    "left join of changelogs": ("k BIGINT, v BIGINT, w BIGINT", "SELECT g.k, g.v, a.w FROM g LEFT JOIN a ON g.k = a.k"),
    "right join of changelogs": (
        "k BIGINT, v BIGINT, w BIGINT",
        "SELECT a.k, g.v, a.w FROM g RIGHT JOIN a ON g.k = a.k",
    ),
    "full join of changelogs": ("k BIGINT, v BIGINT, w BIGINT", "SELECT g.k, g.v, a.w FROM g FULL JOIN a ON g.k = a.k"),
    "left join of changelogs with a condition": (
        "k BIGINT, v BIGINT, w BIGINT",
        "SELECT g.k, g.v, a.w FROM g LEFT JOIN a ON g.k = a.k AND g.v > a.w",
    ),
    "full join of changelogs with a condition": (
        "k BIGINT, v BIGINT, w BIGINT",
        "SELECT g.k, g.v, a.w FROM g FULL JOIN a ON g.k = a.k AND g.v > a.w",
    ),
    "inserts joined with a changelog": ("id BIGINT, v BIGINT", "SELECT o.id, g.v FROM o JOIN g ON o.k = g.k"),
    "inserts left joined with a changelog": ("id BIGINT, v BIGINT", "SELECT o.id, g.v FROM o LEFT JOIN g ON o.k = g.k"),
    "changelog left joined with inserts": (
        "v BIGINT, name STRING",
        "SELECT g.v, c.name FROM g LEFT JOIN c ON g.k = c.k",
    ),
    "changelog full joined with inserts": (
        "v BIGINT, name STRING",
        "SELECT g.v, c.name FROM g FULL JOIN c ON g.k = c.k",
    ),
    "self join of a changelog": (
        "a BIGINT, b BIGINT",
        "SELECT x.v, y.v FROM g AS x JOIN g AS y ON x.s = y.s AND x.v < y.v",
    ),
}

"""IN, ANY and ALL, QUALIFY, and conditions of groups."""

from __future__ import annotations

from .tables import Program

MEMBERSHIP: dict[str, Program] = {
    # IN beside other conditions, and of several values
    "in of two values": ("id BIGINT, k BIGINT", "SELECT id, k FROM o WHERE (k, s) IN (SELECT g.k, g.s FROM g)"),
    "in beside or": ("id BIGINT", "SELECT id FROM o WHERE k = 1 OR k IN (SELECT k FROM c)"),
    "in below or and and": (
        "id BIGINT",
        "SELECT id FROM o WHERE s = 'z' OR (k IN (SELECT k FROM c WHERE w > 10) AND v > 0)",
    ),
    "correlated in beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE k = 1 OR k IN (SELECT c.k FROM c WHERE c.w = o.v)",
    ),
    "in of an aggregate beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE id = 1 OR v IN (SELECT SUM(w) FROM c GROUP BY name HAVING COUNT(*) > 0)",
    ),
    "two ins beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE k IN (SELECT k FROM a) OR id IN (SELECT oid FROM i WHERE qty > 3)",
    ),
    "left join with the size of a difference": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o LEFT JOIN c ON o.k = c.k AND ABS(o.v - c.w) < 10",
    ),
    "not like": ("k BIGINT, name STRING", "SELECT k, name FROM c WHERE name NOT LIKE '%o%'"),
    "left join on not like": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o LEFT JOIN c ON o.k = c.k AND (c.name NOT LIKE 't%' OR o.v > 15)",
    ),
}

CONDITIONS: dict[str, Program] = {
    # ANY and ALL.
    "equal to any": ("id BIGINT", "SELECT id FROM o WHERE k = ANY (SELECT k FROM c)"),
    "equal to some": ("id BIGINT", "SELECT id FROM o WHERE k = SOME (SELECT k FROM c)"),
    "unequal to any": ("id BIGINT", "SELECT id FROM o WHERE k <> ANY (SELECT k FROM c)"),
    "at least any": ("id BIGINT", "SELECT id FROM o WHERE k >= ANY (SELECT k FROM c)"),
    "more than any of a changelog": ("id BIGINT", "SELECT id FROM o WHERE k > ANY (SELECT k FROM a)"),
    "more than all": ("id BIGINT", "SELECT id FROM o WHERE k > ALL (SELECT k FROM c)"),
    "more than all known": ("id BIGINT", "SELECT id FROM o WHERE k > ALL (SELECT k FROM c WHERE k < 3)"),
    "less than all of a changelog": ("id BIGINT", "SELECT id FROM o WHERE k < ALL (SELECT k FROM a WHERE k > 2)"),
    "less than all of none": ("id BIGINT", "SELECT id FROM o WHERE k < ALL (SELECT k FROM c WHERE FALSE)"),
    "unequal to all": ("id BIGINT", "SELECT id FROM o WHERE k <> ALL (SELECT k FROM c WHERE k IS NOT NULL)"),
    "not more than any": ("id BIGINT", "SELECT id FROM o WHERE NOT k > ANY (SELECT k FROM c WHERE k IS NOT NULL)"),
    "not less than all": ("id BIGINT", "SELECT id FROM o WHERE NOT (k < ALL (SELECT k FROM c WHERE k > 1))"),
    "more than any of its own": ("id BIGINT", "SELECT id FROM o WHERE v > ANY (SELECT w FROM c WHERE c.k = o.k)"),
    "more than all of its own": ("id BIGINT", "SELECT id FROM o WHERE v > ALL (SELECT w FROM c WHERE c.k = o.k)"),
    "more than any of one": ("id BIGINT", "SELECT id FROM o WHERE v > ANY (SELECT MIN(w) FROM c)"),
    "more than all of one": ("id BIGINT", "SELECT id FROM o WHERE v > ALL (SELECT AVG(w) FROM c)"),
    "more than any in a list": ("id BIGINT", "SELECT id FROM o WHERE k > ANY (1, 2)"),
    "unequal to all in a list": ("id BIGINT", "SELECT id FROM o WHERE k <> ALL (1, 2)"),
    "more than some of values": ("id BIGINT", "SELECT id FROM o WHERE k > SOME (VALUES 1, 2)"),
    # NOT IN of several values.
    "not in of two columns": ("id BIGINT", "SELECT id FROM o WHERE (k, v) NOT IN (SELECT k, w FROM c)"),
    "not in of two columns without null": (
        "id BIGINT",
        "SELECT id FROM o WHERE (k, v) NOT IN (SELECT k, w FROM c WHERE k IS NOT NULL AND w IS NOT NULL)",
    ),
    "not in of two columns of a changelog": ("id BIGINT", "SELECT id FROM o WHERE (k, v) NOT IN (SELECT k, w FROM a)"),
    "not in of two columns of which one has no null": (
        "id BIGINT",
        "SELECT id FROM o WHERE id IS NOT NULL AND (id, v) NOT IN (SELECT w, k FROM c WHERE w IS NOT NULL)",
    ),
    # QUALIFY.
    "qualify": ("k BIGINT, v BIGINT", "SELECT k, v FROM o QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) = 1"),
    "qualify and other conditions": (
        "id BIGINT",
        "SELECT id FROM o WHERE v > 0 QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) <= 2 AND k < 5",
    ),
    "qualify by an alias": (
        "id BIGINT, rn BIGINT",
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS rn FROM o QUALIFY rn <= 2",
    ),
    "qualify changes": (
        "k BIGINT, v BIGINT",
        "SELECT k, v FROM g QUALIFY ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC, k) BETWEEN 1 AND 2",
    ),
    # Conditions and groups.
    "between symmetric": ("id BIGINT", "SELECT id FROM o WHERE v BETWEEN SYMMETRIC 20 AND 7"),
    "between symmetric with null": ("id BIGINT", "SELECT id FROM o WHERE 8 BETWEEN SYMMETRIC v AND k"),
    "not between symmetric": ("id BIGINT", "SELECT id FROM o WHERE v NOT BETWEEN SYMMETRIC 20 AND 7"),
    "between asymmetric": ("id BIGINT", "SELECT id FROM o WHERE v BETWEEN ASYMMETRIC 20 AND 7"),
    "group by true": ("n BIGINT", "SELECT COUNT(*) FROM o GROUP BY TRUE"),
    "group by a number": ("n BIGINT, x INT", "SELECT COUNT(*), 5 FROM o GROUP BY 5"),
    "group by a column and a text": ("k BIGINT, n BIGINT", "SELECT k, COUNT(*) FROM o GROUP BY k, 'a'"),
    "group by a constant of no rows": ("n BIGINT", "SELECT COUNT(*) FROM o WHERE FALSE GROUP BY 1"),
    "group by nothing": ("n BIGINT", "SELECT COUNT(*) FROM o GROUP BY ()"),
    "order by alias": ("k BIGINT, n BIGINT", "SELECT k, COUNT(*) AS n FROM o GROUP BY k ORDER BY n, k LIMIT 2"),
    "order by position": ("k BIGINT, n BIGINT", "SELECT k, COUNT(*) AS n FROM o GROUP BY k ORDER BY 2, 1 LIMIT 2"),
    "order by an alias that hides a column": (
        "k BIGINT, v BIGINT, id BIGINT",
        "SELECT v AS k, k AS v, id FROM o ORDER BY k, id LIMIT 3",
    ),
    "texts beside numbers in a group by": (
        "k BIGINT, n BIGINT, v BIGINT",
        "SELECT k, COUNT(*), SUM(v) FROM o WHERE k IN ('1', '2', '3') AND v BETWEEN '1' AND '20' AND d > '1.5' GROUP BY k",
    ),
    "texts beside numbers over an aggregate": (
        "k BIGINT, v BIGINT",
        "SELECT k, v FROM (SELECT k, SUM(v) AS v FROM o GROUP BY k) WHERE v > '10' OR k <= '2'",
    ),
}

"""Programs with hints or a configured TTL: the states that Flink's compiled plan gives them are recorded, too."""

from __future__ import annotations

from .tables import Program

CONFIGURED_TTL = "36 h"

HINTED: dict[str, Program] = {
    "hint of both sides": (
        "id BIGINT, name STRING",
        "SELECT /*+ STATE_TTL('o' = '1 d', 'c' = '20 d') */ o.id, c.name FROM o JOIN c ON o.k = c.k",
    ),
    "hint of the left side": (
        "id BIGINT, name STRING",
        "SELECT /*+ STATE_TTL('o' = '36000s') */ o.id, c.name FROM o LEFT JOIN c ON o.k = c.k",
    ),
    "hint of the right side": (
        "id BIGINT, name STRING",
        "SELECT /*+ STATE_TTL('c' = '90 min') */ o.id, c.name FROM o RIGHT JOIN c ON o.k = c.k",
    ),
    "hint by alias": (
        "id BIGINT, name STRING",
        "SELECT /*+ STATE_TTL('x' = '2d', 'y' = '0s') */ x.id, y.name FROM o AS x FULL JOIN c AS y ON x.k = y.k",
    ),
    "hint of a cascade": (
        "id BIGINT, name STRING, part STRING",
        "SELECT /*+ STATE_TTL('o' = '1 d', 'c' = '2 d', 'i' = '3 d') */ o.id, c.name, i.part FROM o JOIN c ON o.k = c.k "
        "JOIN i ON o.id = i.oid",
    ),
    "hint of an aggregate": ("k BIGINT, n BIGINT", "SELECT /*+ STATE_TTL('o' = '7d') */ k, COUNT(*) FROM o GROUP BY k"),
    "hint of an aggregate by alias": (
        "k BIGINT, n BIGINT",
        "SELECT /*+ STATE_TTL('x' = '1500 ms') */ k, COUNT(*) FROM o AS x GROUP BY k",
    ),
    "hint of select distinct": ("k BIGINT", "SELECT /*+ STATE_TTL('o' = 'PT1H30M') */ DISTINCT k FROM o"),
    "hint of a join below an aggregate": (
        "name STRING, n BIGINT",
        "SELECT /*+ STATE_TTL('o' = '1 d', 'c' = '2 d') */ c.name, COUNT(*) FROM o JOIN c ON o.k = c.k GROUP BY c.name",
    ),
    "hint of an aggregate over a join": (
        "name STRING, n BIGINT",
        "SELECT /*+ STATE_TTL('t' = '5 d') */ name, COUNT(*) FROM (SELECT c.name FROM o JOIN c ON o.k = c.k) AS t GROUP BY name",
    ),
    "hints in both blocks": (
        "name STRING, n BIGINT",
        "SELECT /*+ STATE_TTL('t' = '5 d') */ name, COUNT(*) FROM "
        "(SELECT /*+ STATE_TTL('o' = '1 d') */ c.name FROM o JOIN c ON o.k = c.k) AS t GROUP BY name",
    ),
    "hint of a common table expression": (
        "k BIGINT, n BIGINT",
        "WITH t AS (SELECT k, v FROM o WHERE v > 0) SELECT /*+ STATE_TTL('t' = '3 d') */ k, COUNT(*) FROM t GROUP BY k",
    ),
    "hint of an aggregate of an aggregate": (
        "n BIGINT, m BIGINT",
        "SELECT /*+ STATE_TTL('t' = '2 d') */ n, COUNT(*) FROM "
        "(SELECT /*+ STATE_TTL('o' = '1 d') */ k, COUNT(*) AS n FROM o GROUP BY k) AS t GROUP BY n",
    ),
    "hint of a join of an aggregate": (
        "name STRING, t BIGINT",
        "SELECT /*+ STATE_TTL('c' = '3 d', 'x' = '4 d') */ c.name, x.t FROM c "
        "JOIN (SELECT k, SUM(v) AS t FROM o GROUP BY k) AS x ON c.k = x.k",
    ),
    "hint of a union in an aggregate": (
        "k BIGINT, n BIGINT",
        "SELECT /*+ STATE_TTL('u' = '6 d') */ k, COUNT(*) FROM (SELECT k FROM o UNION ALL SELECT k FROM c) AS u GROUP BY k",
    ),
    "hint twice in one": (
        "k BIGINT, n BIGINT",
        "SELECT /*+ STATE_TTL('o' = '2d', 'o' = '1d') */ k, COUNT(*) FROM o GROUP BY k",
    ),
    "two hints of one key": (
        "k BIGINT, n BIGINT",
        "SELECT /*+ STATE_TTL('o' = '2d'), STATE_TTL('o' = '8d') */ k, COUNT(*) FROM o GROUP BY k",
    ),
    "hint of a having": (
        "k BIGINT, n BIGINT",
        "SELECT /*+ STATE_TTL('o' = '61 min') */ k, COUNT(*) FROM o GROUP BY k HAVING COUNT(*) > 1",
    ),
    "hint of distinct counts": (
        "k BIGINT, n BIGINT",
        "SELECT /*+ STATE_TTL('o' = '26 h') */ k, COUNT(DISTINCT v) FROM o GROUP BY k",
    ),
    "hint of a global aggregate": ("n BIGINT", "SELECT /*+ STATE_TTL('o' = '172803 s') */ COUNT(*) FROM o"),
    "hint of a self join": (
        "a BIGINT, b BIGINT",
        "SELECT /*+ STATE_TTL('x' = '1 h', 'y' = '2 h') */ x.id, y.id FROM o AS x JOIN o AS y ON x.k = y.k AND x.id < y.id",
    ),
    "hint of a comma join": (
        "id BIGINT, name STRING",
        "SELECT /*+ STATE_TTL('c' = '1 h') */ o.id, c.name FROM o, c WHERE o.k = c.k",
    ),
    "no hint on a join": ("id BIGINT, name STRING", "SELECT o.id, c.name FROM o JOIN c ON o.k = c.k"),
    "no hint on an aggregate": ("k BIGINT, n BIGINT", "SELECT k, COUNT(*) FROM o GROUP BY k"),
    "hint of a rollup": (
        "k BIGINT, s STRING, n BIGINT",
        "SELECT /*+ STATE_TTL('o' = '9 d') */ k, s, COUNT(*) FROM o GROUP BY ROLLUP (k, s)",
    ),
    "hint of a cube over a join": (
        "name STRING, n BIGINT",
        "SELECT /*+ STATE_TTL('t' = '3 d') */ name, COUNT(*) FROM "
        "(SELECT /*+ STATE_TTL('c' = '1 h') */ c.name, o.s FROM o LEFT JOIN c ON o.k = c.k) AS t GROUP BY CUBE (name, s)",
    ),
    "no hint on upserts": ("v BIGINT", "SELECT v FROM u"),
    "hint of an aggregate of upserts": (
        "s STRING, n BIGINT",
        "SELECT /*+ STATE_TTL('u' = '3 d') */ s, COUNT(*) FROM u GROUP BY s",
    ),
    "hint of a join with upserts": (
        "id BIGINT, v BIGINT",
        "SELECT /*+ STATE_TTL('o' = '1 d', 'u' = '4 d') */ o.id, u.v FROM o JOIN u ON o.k = u.k",
    ),
    # In a block with sub-queries that aggregates, the key is the aggregate's, and no join has it.
    **{
        f"hint of {aggregate} with {sub_query}": (
            columns,
            f"SELECT /*+ STATE_TTL('o' = '1 d') */ {before} FROM o {where} {after}".strip(),
        )
        for aggregate, (columns, before, after) in {
            "a group by": ("k BIGINT, n BIGINT", "k, COUNT(*)", "GROUP BY k"),
            "a distinct": ("k BIGINT", "DISTINCT k", ""),
            "an aggregate of all": ("n BIGINT", "COUNT(*)", ""),
        }.items()
        for sub_query, where in {
            "in": "WHERE k IN (SELECT k FROM c)",
            "exists": "WHERE EXISTS (SELECT 1 FROM c WHERE c.k = o.k)",
            "not exists": "WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.k = o.k)",
            "not in": "WHERE k NOT IN (SELECT k FROM c WHERE w > 20)",
            "a correlated value": "WHERE v > (SELECT MAX(w) FROM c WHERE c.k = o.k)",
            "a value": "WHERE v > (SELECT MIN(w) FROM c WHERE w > 10)",
            "two sub-queries": "WHERE k IN (SELECT k FROM c) AND v > (SELECT MIN(w) FROM a)",
        }.items()
    },
    "hint of a group by with a value in having": (
        "k BIGINT, n BIGINT",
        "SELECT /*+ STATE_TTL('o' = '1 d') */ k, COUNT(*) FROM o GROUP BY k HAVING COUNT(*) > (SELECT MIN(w) FROM a)",
    ),
    "hint of a group by with a value in select": (
        "k BIGINT, n BIGINT",
        "SELECT /*+ STATE_TTL('o' = '1 d') */ k, COUNT(*) - (SELECT MIN(w) FROM a) FROM o GROUP BY k",
    ),
    "hint of a distinct with a value in select": (
        "k BIGINT, n BIGINT",
        "SELECT /*+ STATE_TTL('o' = '1 d') */ DISTINCT k, v - (SELECT MIN(w) FROM a) FROM o",
    ),
    "hint of a group by with sub-queries everywhere": (
        "k BIGINT, n BIGINT",
        "SELECT /*+ STATE_TTL('o' = '1 d') */ k, COUNT(*) - (SELECT MIN(w) FROM a) FROM o WHERE k IN (SELECT k FROM c) "
        "GROUP BY k HAVING COUNT(*) > (SELECT MIN(w) FROM c)",
    ),
    "hint of a join with in and a group by": (
        "name STRING, n BIGINT",
        "SELECT /*+ STATE_TTL('o' = '1 d', 'c' = '2 d') */ c.name, COUNT(*) FROM o JOIN c ON o.k = c.k "
        "WHERE o.id IN (SELECT oid FROM i) GROUP BY c.name",
    ),
    "config of the last row of each key": (
        "u BIGINT, v BIGINT",
        "SELECT u, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY ts DESC) AS n FROM e) WHERE n = 1",
    ),
    "config of the first rows of each key": (
        "s STRING, id BIGINT, n BIGINT",
        "SELECT s, id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC, id) AS n FROM o) WHERE n <= 2",
    ),
    "config of a sorted and cut result": ("id BIGINT", "SELECT id FROM o ORDER BY id LIMIT 2"),
}

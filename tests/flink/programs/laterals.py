"""LATERAL sub-queries: rows, first rows, groups and aggregates of what belongs to each row."""

from __future__ import annotations

from .tables import Program

LATERALS: dict[str, Program] = {
    "lateral query": (
        "id BIGINT, w BIGINT",
        "SELECT t.id, x.w FROM o AS t, LATERAL (SELECT w FROM c WHERE c.k = t.k) AS x",
    ),
    "left join lateral": (
        "id BIGINT, w BIGINT",
        "SELECT t.id, x.w FROM o AS t LEFT JOIN LATERAL (SELECT w FROM c WHERE c.k = t.k) AS x ON TRUE",
    ),
    "lateral inequality": (
        "id BIGINT, w BIGINT",
        "SELECT t.id, x.w FROM o AS t, LATERAL (SELECT w FROM c WHERE c.k = t.k AND c.w < t.v) AS x",
    ),
    # Where t.k is NULL, Flink has the rows whose k is NULL, too.
    "lateral top n": (
        "k BIGINT, id BIGINT, v BIGINT",
        "SELECT t.k, x.id, x.v FROM (SELECT DISTINCT k FROM o) AS t, "
        "LATERAL (SELECT id, v FROM o WHERE o.k = t.k ORDER BY v DESC, id LIMIT 2) AS x WHERE t.k IS NOT NULL",
    ),
    "lateral groups": (
        "id BIGINT, name STRING, n BIGINT",
        "SELECT o.id, x.name, x.n FROM o, LATERAL (SELECT name, COUNT(*) AS n FROM c WHERE c.k = o.k GROUP BY name) AS x",
    ),
    "left join lateral groups": (
        "id BIGINT, name STRING, n BIGINT",
        "SELECT o.id, x.name, x.n FROM o "
        "LEFT JOIN LATERAL (SELECT name, SUM(w) AS n FROM c WHERE c.k = o.k GROUP BY name) AS x ON TRUE",
    ),
    "lateral groups with having": (
        "id BIGINT, name STRING, n BIGINT",
        "SELECT o.id, x.name, x.n FROM o, LATERAL (SELECT name, MAX(w) - MIN(w) AS n FROM c WHERE c.k = o.k "
        "GROUP BY name HAVING COUNT(*) > 1) AS x",
    ),
    "lateral groups by inequality": (
        "id BIGINT, name STRING, n BIGINT",
        "SELECT o.id, x.name, x.n FROM o, LATERAL (SELECT name, COUNT(*) AS n FROM c WHERE c.k < o.k GROUP BY name) AS x",
    ),
    "lateral groups of a changelog": (
        "k BIGINT, s STRING, n BIGINT",
        "SELECT a.k, x.s, x.n FROM a, LATERAL (SELECT s, SUM(v) AS n FROM g WHERE g.k = a.k GROUP BY s) AS x",
    ),
    "lateral distinct": (
        "id BIGINT, name STRING",
        "SELECT o.id, x.name FROM o, LATERAL (SELECT DISTINCT name FROM c WHERE c.k = o.k) AS x",
    ),
    "left join lateral distinct": (
        "id BIGINT, name STRING, w BIGINT",
        "SELECT o.id, x.name, x.w FROM o LEFT JOIN LATERAL (SELECT DISTINCT name, w FROM c WHERE c.k = o.k) AS x ON TRUE",
    ),
    "lateral distinct by inequality": (
        "id BIGINT, name STRING",
        "SELECT o.id, x.name FROM o, LATERAL (SELECT DISTINCT name FROM c WHERE c.k < o.k) AS x",
    ),
    "lateral count of all": (
        "id BIGINT, n BIGINT",
        "SELECT o.id, x.n FROM o, LATERAL (SELECT COUNT(*) AS n FROM c) AS x",
    ),
    "left join lateral count": (
        "id BIGINT, n BIGINT",
        "SELECT o.id, x.n FROM o LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM c WHERE c.k = o.k) AS x ON TRUE",
    ),
    "left join lateral count by inequality": (
        "id BIGINT, n BIGINT",
        "SELECT o.id, x.n FROM o LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM c WHERE c.k < o.k) AS x ON TRUE "
        "WHERE o.k IS NOT NULL",
    ),
    "left join lateral count with a condition": (
        "id BIGINT, n BIGINT",
        "SELECT o.id, x.n FROM o LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM c WHERE c.k = o.k) AS x ON x.n > 0",
    ),
    "left join lateral count of changes": (
        "k BIGINT, n BIGINT",
        "SELECT a.k, x.n FROM a LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM g WHERE g.k = a.k) AS x ON TRUE",
    ),
    "lateral count of some": (
        "id BIGINT, n BIGINT",
        "SELECT o.id, x.n FROM o, LATERAL (SELECT COUNT(*) AS n FROM c WHERE c.k = o.k HAVING COUNT(*) > 0) AS x",
    ),
    "lateral sum grouped": (
        "n BIGINT, m BIGINT",
        "SELECT x.n, COUNT(*) FROM o LEFT JOIN LATERAL (SELECT SUM(w) AS n FROM c WHERE c.k = o.k) AS x ON TRUE "
        "GROUP BY x.n",
    ),
}

# With a comma, Flink has no row where LATERAL aggregates none, and with LEFT JOIN it has, as standard SQL in both.
WITHOUT_ROW_OF_NONE: dict[str, Program] = {
    name.removeprefix("left join "): (columns, query.replace(" LEFT JOIN LATERAL", ", LATERAL").replace(" ON TRUE", ""))
    for name, (columns, query) in LATERALS.items()
    if name.startswith("left join lateral count") and query.endswith("ON TRUE")
}

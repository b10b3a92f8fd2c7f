"""Aggregates of documents."""

from __future__ import annotations

DOCUMENTS: dict[str, tuple[str, str]] = {
    "json arrays": (
        "k BIGINT, a STRING, b STRING, c STRING",
        "SELECT k, JSON_ARRAYAGG(s), JSON_ARRAYAGG(v NULL ON NULL), JSON_ARRAYAGG(d ABSENT ON NULL) FROM o GROUP BY k",
    ),
    "json arrays of all": (
        "a STRING, b STRING",
        "SELECT JSON_ARRAYAGG(JSON_OBJECT('k' VALUE k, 's' VALUE s)), JSON_ARRAYAGG(ROW(v, s)) FROM o",
    ),
    "json arrays of a changelog": (
        "s STRING, a STRING, b STRING",
        "SELECT s, JSON_ARRAYAGG(v), JSON_ARRAYAGG(k NULL ON NULL) FROM g GROUP BY s",
    ),
    "json objects": (
        "k BIGINT, a STRING, b STRING",
        "SELECT k, JSON_OBJECTAGG(KEY CAST(id AS STRING) VALUE v), "
        "JSON_OBJECTAGG(KEY CAST(id AS STRING) VALUE s ABSENT ON NULL) FROM o WHERE id <> 6 GROUP BY k",
    ),
    "json objects of all": (
        "a STRING",
        "SELECT JSON_OBJECTAGG(CONCAT('n', CAST(id AS STRING)) VALUE JSON_ARRAY(k, v NULL ON NULL)) FROM o WHERE id <> 6",
    ),
    "json object of an aggregate": (
        "a STRING, b STRING",
        "SELECT JSON_OBJECTAGG(s VALUE n ABSENT ON NULL), JSON_OBJECT('all' VALUE JSON_ARRAYAGG(n)) FROM "
        "(SELECT s, SUM(v) AS n FROM g WHERE s IS NOT NULL GROUP BY s) AS x",
    ),
    "first and last rows": (
        "k BIGINT, a STRING, b STRING, c STRING",
        "SELECT k, CAST(FIRST_VALUE(ROW(id, s)) AS STRING), CAST(LAST_VALUE(ARRAY[v, k]) AS STRING), "
        "LAST_VALUE(MAP['id', id])['id'] || '' FROM (SELECT CAST(id AS STRING) AS id, k, v, s FROM o) AS x GROUP BY k",
    ),
    "first and last rows of a changelog": (
        "s STRING, a STRING, b STRING",
        "SELECT s, CAST(FIRST_VALUE(ROW(k, v)) AS STRING), CAST(LAST_VALUE(ROW(k, v)) AS STRING) FROM g GROUP BY s",
    ),
    "multisets of rows": (
        "k BIGINT, n BIGINT, x STRING",
        "SELECT k, v, s FROM (SELECT k, COLLECT(ROW(v, s)) AS a FROM o GROUP BY k) AS t CROSS JOIN UNNEST(a) AS e (v, s)",
    ),
    "multisets of rows of a changelog": (
        "k BIGINT, n BIGINT, x STRING",
        "SELECT k, v, s FROM (SELECT k, COLLECT(ROW(v, s)) AS a FROM g GROUP BY k) AS t CROSS JOIN UNNEST(a) AS e (v, s)",
    ),
    "multisets in documents": (
        "k BIGINT, a STRING, b STRING",
        "SELECT k, JSON_STRING(COLLECT(s)), JSON_OBJECT('all' VALUE COLLECT(DISTINCT s)) FROM o WHERE s <> '' GROUP BY k",
    ),
    "multisets of two queries": (
        "a STRING",
        "SELECT JSON_STRING(a) FROM (SELECT COLLECT(s) AS a FROM o GROUP BY k INTERSECT "
        "SELECT COLLECT(s) FROM g GROUP BY k) AS x",
    ),
    "multisets of one query only": (
        "a STRING",
        "SELECT JSON_STRING(a) FROM (SELECT COLLECT(s) AS a FROM o GROUP BY k EXCEPT ALL "
        "SELECT COLLECT(s) FROM o WHERE v > 10 GROUP BY k) AS x",
    ),
    "arrays of two queries": (
        "a STRING",
        "SELECT CAST(a AS STRING) FROM (SELECT ARRAY[s, NULLIF(s, 'x')] AS a FROM o INTERSECT "
        "SELECT ARRAY[s, NULLIF(s, 'x')] FROM g) AS x",
    ),
    "percentiles": (
        "k BIGINT, a DOUBLE, b DOUBLE, c DOUBLE, e STRING",
        "SELECT k, PERCENTILE(v, 0.5), PERCENTILE(p, 0.9) FILTER (WHERE v > 0), PERCENTILE(DISTINCT v, 0.25), "
        "CAST(PERCENTILE(d, ARRAY[0, 0.1, 1]) AS STRING) FROM o GROUP BY k",
    ),
    "percentiles of a changelog": (
        "s STRING, a DOUBLE, b DOUBLE",
        "SELECT s, PERCENTILE(v, 0.33), PERCENTILE(k, 0.5) FROM g GROUP BY s",
    ),
    "equal multisets": (
        "a BIGINT, b BIGINT",
        "SELECT x.k, y.k FROM (SELECT k, COLLECT(s) AS a FROM o GROUP BY k) AS x "
        "JOIN (SELECT k, COLLECT(s) AS a FROM g GROUP BY k) AS y ON x.a = y.a",
    ),
    "groups of maps": (
        "a STRING, n BIGINT",
        "SELECT a['k'], n FROM (SELECT a, COUNT(*) AS n FROM (SELECT MAP['k', s] AS a FROM o) AS x GROUP BY a) AS y",
    ),
    "groups of maps of a changelog": (
        "a STRING, n BIGINT",
        "SELECT a['k'], n FROM (SELECT a, COUNT(*) AS n FROM (SELECT MAP['k', s] AS a FROM g) AS x GROUP BY a) AS y",
    ),
    "different maps": ("a STRING", "SELECT a['k'] FROM (SELECT DISTINCT MAP['k', s] AS a FROM g) AS x"),
    "maps of two tables": (
        "a STRING",
        "SELECT a['k'] FROM (SELECT MAP['k', s] AS a FROM o UNION SELECT MAP['k', s || '!'] FROM o) AS x",
    ),
    "maps of one table only": (
        "a STRING",
        "SELECT a['k'] FROM (SELECT MAP['k', s] AS a FROM o EXCEPT SELECT MAP['k', s] FROM g) AS x",
    ),
    "maps of other rows only": (
        "a STRING",
        "SELECT a['k'] FROM (SELECT MAP['k', s] AS a FROM o EXCEPT SELECT MAP['k', s] FROM o WHERE v > 10) AS x",
    ),
    "first of each map": (
        "a STRING, id BIGINT",
        "SELECT a['k'], id FROM (SELECT a, id, ROW_NUMBER() OVER (PARTITION BY a ORDER BY id DESC) AS n "
        "FROM (SELECT MAP['k', s] AS a, id FROM o) AS x) AS y WHERE n = 1",
    ),
    "counts of nested values": (
        "k BIGINT, a BIGINT, b BIGINT, c BIGINT",
        "SELECT k, COUNT(ROW(v)), COUNT(CASE WHEN v > 10 THEN ARRAY[v] END), COUNT(DISTINCT ARRAY[v]) FROM o GROUP BY k",
    ),
    "counts of nested values of a changelog": (
        "s STRING, a BIGINT, b BIGINT",
        "SELECT s, COUNT(ROW(v)), COUNT(DISTINCT ARRAY[v, k]) FROM g GROUP BY s",
    ),
}
"""Programs whose calcs only Spark computes: test_documents.py runs them."""

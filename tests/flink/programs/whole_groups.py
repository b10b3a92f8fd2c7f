"""Aggregates that keep the values of a group: in their order, as arrays, counted, their spread; and upserts."""

from __future__ import annotations

from .tables import Program

WHOLE_GROUPS: dict[str, Program] = {
    # Order of rows that change
    "first and last values of a changelog": (
        "k BIGINT, a STRING, b STRING, c BIGINT, d BIGINT",
        "SELECT k, FIRST_VALUE(s), LAST_VALUE(s), FIRST_VALUE(v), LAST_VALUE(v) FROM g GROUP BY k",
    ),
    "first and last values of all of a changelog": (
        "a BIGINT, b BIGINT, c BIGINT, d BIGINT",
        "SELECT FIRST_VALUE(k), LAST_VALUE(k), FIRST_VALUE(v), LAST_VALUE(v) FROM g",
    ),
    "first and last values by text of a changelog": (
        "s STRING, a BIGINT, b BIGINT",
        "SELECT s, FIRST_VALUE(v), LAST_VALUE(k) FROM g GROUP BY s",
    ),
    "filtered first and last values of a changelog": (
        "a BIGINT, b STRING, c STRING",
        "SELECT FIRST_VALUE(v) FILTER (WHERE s = 'x'), LAST_VALUE(s) FILTER (WHERE v < 40), FIRST_VALUE(s) FROM g",
    ),
    "listagg of a changelog": ("a STRING, b STRING", "SELECT LISTAGG(s), LISTAGG(s, ' / ') FROM g"),
    "listagg by key of a changelog": ("k BIGINT, a STRING", "SELECT k, LISTAGG(s, '') FROM g GROUP BY k"),
    "listagg of names that change": ("w BIGINT, a STRING", "SELECT w / 10, LISTAGG(name, '; ') FROM a GROUP BY w / 10"),
    "distinct listagg": ("k BIGINT, a STRING", "SELECT k, LISTAGG(DISTINCT s) FROM o GROUP BY k"),
    "distinct listagg of all": ("a STRING, n BIGINT", "SELECT LISTAGG(DISTINCT s), COUNT(DISTINCT s) FROM o"),
    "distinct listagg of a changelog": ("a STRING, b STRING", "SELECT LISTAGG(DISTINCT s), LISTAGG(s, '|') FROM g"),
    "distinct last value": (
        "a STRING, b STRING, c STRING",
        "SELECT LAST_VALUE(DISTINCT s), LAST_VALUE(s), FIRST_VALUE(DISTINCT s) FROM o",
    ),
    "last value of counts": (
        "k BIGINT, a BIGINT, b BIGINT",
        "SELECT k, LAST_VALUE(n), FIRST_VALUE(n) FROM (SELECT k, COUNT(*) AS n FROM o GROUP BY k) AS t GROUP BY k",
    ),
    "rollup of first values of a changelog": (
        "s STRING, a BIGINT, b STRING",
        "SELECT s, FIRST_VALUE(v), LISTAGG(s) FROM g GROUP BY ROLLUP (s)",
    ),
    # Arrays of all values
    "arrays": ("k BIGINT, a ARRAY<STRING>, b ARRAY<BIGINT>", "SELECT k, ARRAY_AGG(s), ARRAY_AGG(v) FROM o GROUP BY k"),
    "arrays of all": (
        "a ARRAY<DECIMAL(10, 2)>, b ARRAY<BIGINT>, n BIGINT",
        "SELECT ARRAY_AGG(p), ARRAY_AGG(k), COUNT(*) FROM o",
    ),
    "filtered arrays": (
        "k BIGINT, a ARRAY<STRING>, b ARRAY<BIGINT>",
        "SELECT k, ARRAY_AGG(s) FILTER (WHERE v > 10), ARRAY_AGG(v) FILTER (WHERE s = 'x') FROM o GROUP BY k",
    ),
    "arrays without null": (
        "k BIGINT, a ARRAY<BIGINT>, b ARRAY<BIGINT>, c ARRAY<STRING>",
        "SELECT k, ARRAY_AGG(v) IGNORE NULLS, ARRAY_AGG(v) RESPECT NULLS, ARRAY_AGG(s IGNORE NULLS) FROM o GROUP BY k",
    ),
    "distinct arrays": (
        "k BIGINT, a ARRAY<STRING>, b ARRAY<BIGINT>, c ARRAY<BIGINT>",
        "SELECT k, ARRAY_AGG(DISTINCT s), ARRAY_AGG(DISTINCT v), ARRAY_AGG(v) FROM o GROUP BY k",
    ),
    "distinct arrays without null": (
        "s STRING, a ARRAY<BIGINT>, b BIGINT",
        "SELECT s, ARRAY_AGG(DISTINCT v) IGNORE NULLS, COUNT(DISTINCT v) FROM o GROUP BY s",
    ),
    "groups of arrays": (
        "a ARRAY<STRING>, n BIGINT",
        "SELECT a, COUNT(*) FROM (SELECT k, ARRAY_AGG(s) AS a FROM o GROUP BY k) AS t GROUP BY a",
    ),
    "arrays of groups with several rows": (
        "k BIGINT, a ARRAY<BIGINT>",
        "SELECT k, ARRAY_AGG(v) FROM o GROUP BY k HAVING COUNT(*) > 1",
    ),
    "first groups with their arrays": (
        "k BIGINT, a ARRAY<BIGINT>",
        "SELECT k, a FROM (SELECT k, a, ROW_NUMBER() OVER (ORDER BY n DESC, k) AS place FROM "
        "(SELECT k, ARRAY_AGG(v) AS a, COUNT(*) AS n FROM o WHERE k > 0 GROUP BY k) AS t) AS r WHERE place <= 2",
    ),
    "arrays joined": (
        "name STRING, a ARRAY<STRING>",
        "SELECT c.name, t.a FROM c LEFT JOIN (SELECT k, ARRAY_AGG(s) AS a FROM o GROUP BY k) AS t ON c.k = t.k",
    ),
    "arrays of a changelog": (
        "k BIGINT, a ARRAY<BIGINT>, b ARRAY<STRING>",
        "SELECT k, ARRAY_AGG(v), ARRAY_AGG(s) FROM g GROUP BY k",
    ),
    "arrays of all of a changelog": (
        "a ARRAY<BIGINT>, b ARRAY<BIGINT>, c ARRAY<STRING>",
        "SELECT ARRAY_AGG(k), ARRAY_AGG(v), ARRAY_AGG(s) FROM g",
    ),
    "filtered arrays of a changelog": (
        "a ARRAY<BIGINT>, b ARRAY<STRING>",
        "SELECT ARRAY_AGG(v) FILTER (WHERE s = 'x'), ARRAY_AGG(s) FILTER (WHERE v < 40) FROM g",
    ),
    "arrays without null of a changelog": (
        "a ARRAY<BIGINT>, b ARRAY<STRING>, c ARRAY<BIGINT>",
        "SELECT ARRAY_AGG(v) IGNORE NULLS, ARRAY_AGG(s) IGNORE NULLS, ARRAY_AGG(v) FROM g",
    ),
    "distinct arrays of a changelog": (
        "a ARRAY<STRING>, b ARRAY<BIGINT>, c ARRAY<STRING>, d STRING",
        "SELECT ARRAY_AGG(DISTINCT s), ARRAY_AGG(DISTINCT v), ARRAY_AGG(s), LISTAGG(DISTINCT s) FROM g",
    ),
    "arrays and first values of one column of a changelog": (
        "s STRING, a BIGINT, b ARRAY<BIGINT>, c BIGINT",
        "SELECT s, FIRST_VALUE(v), ARRAY_AGG(v), LAST_VALUE(v) FROM g GROUP BY s",
    ),
    "rollup of arrays of a changelog": (
        "s STRING, a ARRAY<BIGINT>",
        "SELECT s, ARRAY_AGG(v) FROM g GROUP BY ROLLUP (s)",
    ),
    # How often there is each value
    "multisets": (
        "k BIGINT, a MULTISET<STRING>, b MULTISET<BIGINT>",
        "SELECT k, COLLECT(s), COLLECT(v) FROM o GROUP BY k",
    ),
    "multisets of all": (
        "a MULTISET<DECIMAL(10, 2)>, b MULTISET<BIGINT>, n BIGINT",
        "SELECT COLLECT(p), COLLECT(k), COUNT(*) FROM o",
    ),
    "filtered multisets": (
        "k BIGINT, a MULTISET<STRING>, b MULTISET<BIGINT>",
        "SELECT k, COLLECT(s) FILTER (WHERE v > 10), COLLECT(v) FILTER (WHERE s = 'x') FROM o GROUP BY k",
    ),
    "distinct multisets": (
        "k BIGINT, a MULTISET<STRING>, b MULTISET<BIGINT>, c MULTISET<BIGINT>",
        "SELECT k, COLLECT(DISTINCT s), COLLECT(DISTINCT v), COLLECT(v) FROM o GROUP BY k",
    ),
    "groups of multisets": (
        "a MULTISET<STRING>, n BIGINT",
        "SELECT a, COUNT(*) FROM (SELECT k, COLLECT(s) AS a FROM o GROUP BY k) AS t GROUP BY a",
    ),
    "different multisets of a changelog": (
        "a MULTISET<STRING>",
        "SELECT DISTINCT a FROM (SELECT k, COLLECT(s) AS a FROM g GROUP BY k) AS t",
    ),
    "multisets joined": (
        "name STRING, a MULTISET<STRING>",
        "SELECT c.name, t.a FROM c LEFT JOIN (SELECT k, COLLECT(s) AS a FROM o GROUP BY k) AS t ON c.k = t.k",
    ),
    "elements of multisets": (
        "k BIGINT, x STRING",
        "SELECT k, x FROM (SELECT k, COLLECT(s) AS a FROM o GROUP BY k) AS t LEFT JOIN UNNEST(a) AS e (x) ON TRUE",
    ),
    "elements of multisets of a changelog": (
        "s STRING, x BIGINT",
        "SELECT s, x FROM (SELECT s, COLLECT(v) AS a FROM g GROUP BY s) AS t CROSS JOIN UNNEST(a) AS e (x)",
    ),
    "multisets of a changelog": (
        "k BIGINT, a MULTISET<BIGINT>, b MULTISET<STRING>",
        "SELECT k, COLLECT(v), COLLECT(s) FROM g GROUP BY k",
    ),
    "multisets of all of a changelog": (
        "a MULTISET<BIGINT>, b MULTISET<STRING>, c MULTISET<BIGINT>, n BIGINT",
        "SELECT COLLECT(v), COLLECT(DISTINCT s), COLLECT(v) FILTER (WHERE s = 'x'), COUNT(*) FROM g",
    ),
    "numbers of multisets of a changelog": (
        "s STRING, n BIGINT",
        "SELECT s, COUNT(a) FROM (SELECT k, s, COLLECT(v) AS a FROM g GROUP BY k, s) AS t GROUP BY s",
    ),
    "rollup of multisets of a changelog": (
        "s STRING, a MULTISET<BIGINT>",
        "SELECT s, COLLECT(v) FROM g GROUP BY ROLLUP (s)",
    ),
    # How far values differ
    "variances": (
        "k BIGINT, a DOUBLE, b DOUBLE, c DOUBLE, e DOUBLE",
        "SELECT k, VAR_POP(d), VAR_SAMP(d), STDDEV_POP(d), STDDEV_SAMP(d) FROM o GROUP BY k",
    ),
    "filtered variances of all": (
        "a DOUBLE, b DOUBLE, c DOUBLE",
        "SELECT VARIANCE(d) FILTER (WHERE s = 'x'), STDDEV(d), VAR_POP(d) FILTER (WHERE s = 'none') FROM o",
    ),
    "variances of a changelog": (
        "s STRING, a DOUBLE, b DOUBLE, c DOUBLE",
        "SELECT s, VAR_POP(CAST(v AS DOUBLE)), VAR_SAMP(CAST(v AS DOUBLE)), STDDEV_POP(CAST(k AS DOUBLE)) FROM g GROUP BY s",
    ),
    "distinct variances": (
        "k BIGINT, a DOUBLE, b DOUBLE, c DOUBLE",
        "SELECT k, VAR_POP(DISTINCT d), STDDEV_SAMP(DISTINCT d) FILTER (WHERE s = 'x'), VAR_POP(d) FROM o GROUP BY k",
    ),
    "distinct variances of a changelog": (
        "s STRING, a DOUBLE, b DOUBLE, n BIGINT",
        "SELECT s, VAR_POP(DISTINCT CAST(v AS DOUBLE)), STDDEV_POP(DISTINCT CAST(k AS DOUBLE)), COUNT(DISTINCT v) "
        "FROM g GROUP BY s",
    ),
    "distinct variances of all of a changelog": (
        "a BIGINT, b DOUBLE, c DECIMAL(38, 6)",
        "SELECT VAR_SAMP(DISTINCT v), VAR_SAMP(DISTINCT CAST(k AS DOUBLE)), VARIANCE(DISTINCT CAST(v AS DECIMAL(10, 2))) "
        "FROM g",
    ),
    "variances of all of a changelog": (
        "a DOUBLE, b DOUBLE, c DOUBLE",
        "SELECT VAR_POP(CAST(v AS DOUBLE)), STDDEV_SAMP(CAST(v AS DOUBLE)), VAR_SAMP(CAST(k AS DOUBLE)) FROM g",
    ),
    # Upserts
    "upserts": ("k BIGINT, v BIGINT, s STRING", "SELECT k, v, s FROM u"),
    "upserts without their key": ("v BIGINT", "SELECT v FROM u"),
    "upserts by two columns": ("a BIGINT, b STRING, n BIGINT", "SELECT a, b, n FROM w"),
    "filter of upserts": ("k BIGINT, v BIGINT", "SELECT k, v FROM u WHERE v > 11"),
    "filter on the key of upserts": ("k BIGINT, v BIGINT", "SELECT k, v FROM u WHERE k > 2"),
    "group by of upserts": ("s STRING, n BIGINT, t BIGINT", "SELECT s, COUNT(*), SUM(v) FROM u GROUP BY s"),
    "group by the key of upserts": ("k BIGINT, n BIGINT", "SELECT k, COUNT(*) FROM u GROUP BY k"),
    "extremes of upserts": ("s STRING, a BIGINT, b BIGINT", "SELECT s, MIN(v), MAX(v) FROM u GROUP BY s"),
    "distinct of upserts": ("s STRING", "SELECT DISTINCT s FROM u"),
    "global aggregate of upserts": ("n BIGINT, t BIGINT", "SELECT COUNT(*), SUM(v) FROM u"),
    "aggregate of an aggregate of upserts": (
        "n BIGINT, m BIGINT",
        "SELECT n, COUNT(*) FROM (SELECT s, COUNT(*) AS n FROM u GROUP BY s) AS t GROUP BY n",
    ),
    "inserts joined with upserts": ("id BIGINT, v BIGINT", "SELECT o.id, u.v FROM o JOIN u ON o.k = u.k"),
    "inserts left joined with upserts": ("id BIGINT, s STRING", "SELECT o.id, u.s FROM o LEFT JOIN u ON o.k = u.k"),
    "upserts left joined with inserts": ("v BIGINT, name STRING", "SELECT u.v, c.name FROM u LEFT JOIN c ON u.k = c.k"),
    "upserts joined with a changelog": ("v BIGINT, w BIGINT", "SELECT u.v, a.w FROM u FULL JOIN a ON u.k = a.k"),
    "upserts joined with upserts": ("v BIGINT, n BIGINT", "SELECT u.v, w.n FROM u JOIN w ON u.k = w.a AND u.s = w.b"),
    "self join of upserts": (
        "a BIGINT, b BIGINT",
        "SELECT x.k, y.k FROM u AS x JOIN u AS y ON x.s = y.s AND x.k < y.k",
    ),
    "in of upserts": ("id BIGINT", "SELECT id FROM o WHERE k IN (SELECT k FROM u WHERE v > 20)"),
    "not exists in upserts": ("id BIGINT", "SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = o.k)"),
    "union of upserts and inserts": ("k BIGINT, v BIGINT", "SELECT k, v FROM u UNION ALL SELECT k, v FROM o"),
}

"""Queries with OVER for which Flink's answers in batch mode are recorded, and the rows of their table.

Data only: it is read both by record_over.py, in Flink's environment, and by our tests. A query is the columns of its
result and its text. Where an answer would depend on the order of rows that ORDER BY does not tell apart, it is not
asked for.
"""

from __future__ import annotations

COLUMNS = "id BIGINT, k BIGINT, v BIGINT, n BIGINT, d DOUBLE, p DECIMAL(10, 2), i INT, s STRING"
ROWS = (
    (1, 1, 10, 2, 1.5, "1.10", 2147483647, "a"),
    (2, 1, 20, 2, 2.25, "2.20", 5, "b"),
    (3, 1, 20, 1, -0.5, None, None, "a"),
    (4, 2, 5, 1, None, "4.44", 7, None),
    (5, 2, 7, 3, 4.0, "-5.55", -7, "c"),
    (6, 2, 7, 1, 8.75, "0.01", 1, ""),
    (7, 3, None, 2, 0.25, "99999999.99", 2, "z"),
    (8, 1, 15, 3, 3.5, "3.33", 2, "c"),
    (9, None, 1, 0, 2.5, "2.22", 3, "y"),
    (10, 2, 6, 9, 6.5, "6.66", 4, "a"),
)

_LONG = "id BIGINT, x BIGINT"
QUERIES: dict[str, tuple[str, str]] = {
    "rank": ("id BIGINT, r BIGINT", "SELECT id, RANK() OVER (PARTITION BY k ORDER BY v DESC) FROM o"),
    "rank up to": (
        "id BIGINT, r BIGINT",
        "SELECT id, r FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM o) WHERE r <= 2",
    ),
    "dense rank up to": (
        "id BIGINT, r BIGINT",
        "SELECT id, r FROM (SELECT *, DENSE_RANK() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM o) WHERE r <= 2",
    ),
    "rank that is": (
        "id BIGINT, r BIGINT",
        "SELECT id, r FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM o) WHERE r = 3",
    ),
    "rank between": (
        "id BIGINT, r BIGINT",
        "SELECT id, r FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM o) "
        "WHERE r BETWEEN 2 AND 3",
    ),
    "dense rank above": (
        "id BIGINT, r BIGINT",
        "SELECT id, r FROM (SELECT *, DENSE_RANK() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM o) WHERE r > 1",
    ),
    "rank and a column": (
        "id BIGINT, r BIGINT",
        "SELECT id, r FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM o) WHERE r <= n",
    ),
    "rank in qualify": (_LONG, "SELECT id, v FROM o QUALIFY RANK() OVER (PARTITION BY k ORDER BY v DESC) = 1"),
    "all numbers": (_LONG, "SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) FROM o"),
    "numbers from": (
        _LONG,
        "SELECT id, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS r FROM o) WHERE r >= 2",
    ),
    "numbers up to a column": (
        _LONG,
        "SELECT id, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS r FROM o) WHERE r <= n",
    ),
    "numbers up to the key": (
        _LONG,
        "SELECT id, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY n ORDER BY v DESC, id) AS r FROM o) WHERE r <= n",
    ),
    "numbers below the key": (
        _LONG,
        "SELECT id, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY n ORDER BY v DESC, id) AS r FROM o) WHERE r < n",
    ),
    "numbers below a column": (
        _LONG,
        "SELECT id, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS r FROM o) WHERE r < n",
    ),
    "numbers that are a column": (
        _LONG,
        "SELECT id, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS r FROM o) WHERE r = n",
    ),
    "numbers in a list": (
        _LONG,
        "SELECT id, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS r FROM o) "
        "WHERE r IN (1, 3)",
    ),
    "odd numbers": (
        _LONG,
        "SELECT id, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS r FROM o) "
        "WHERE MOD(r, 2) = 1",
    ),
    "numbers by two orders": (
        "id BIGINT, a BIGINT, b BIGINT",
        "SELECT id, a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS a, "
        "ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS b FROM o) WHERE a <= 2 AND b <= 3",
    ),
    "a sum of a partition": (_LONG, "SELECT id, SUM(v) OVER (PARTITION BY k) FROM o"),
    "a sum of all": (_LONG, "SELECT id, SUM(v) OVER () FROM o"),
    "a running sum": (_LONG, "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY id) FROM o"),
    "a running sum of equals": (_LONG, "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY v) FROM o"),
    "aggregates": (
        "id BIGINT, c BIGINT, cv BIGINT, a BIGINT, lo BIGINT, hi BIGINT",
        "SELECT id, COUNT(*) OVER w, COUNT(v) OVER w, AVG(v) OVER w, MIN(v) OVER w, MAX(v) OVER w "
        "FROM o WINDOW w AS (PARTITION BY k ORDER BY id)",
    ),
    "aggregates of other types": (
        "id BIGINT, d DOUBLE, a DOUBLE, p DECIMAL(38, 2), ap DECIMAL(38, 6), m STRING",
        "SELECT id, SUM(d) OVER w, AVG(d) OVER w, SUM(p) OVER w, AVG(p) OVER w, MAX(s) OVER w "
        "FROM o WINDOW w AS (PARTITION BY k ORDER BY id)",
    ),
    "a sum that wraps around": ("id BIGINT, x INT", "SELECT id, SUM(i) OVER (PARTITION BY k ORDER BY id) FROM o"),
    "variances": (
        "id BIGINT, b DOUBLE, c DOUBLE",
        "SELECT id, VAR_POP(d) OVER w, VAR_SAMP(d) OVER w FROM o WINDOW w AS (PARTITION BY k)",
    ),
    "the last two rows": (
        _LONG,
        "SELECT id, MAX(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM o",
    ),
    "rows around": (_LONG, "SELECT id, SUM(v) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM o"),
    "rows before": (_LONG, "SELECT id, SUM(v) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) FROM o"),
    "rows behind": (
        _LONG,
        "SELECT id, AVG(v) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM o",
    ),
    "rows up to here": (_LONG, "SELECT id, SUM(v) OVER (ORDER BY id ROWS 2 PRECEDING) FROM o"),
    "a range": (
        _LONG,
        "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) FROM o",
    ),
    "a range that begins behind the row": (
        _LONG,
        "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN -1 PRECEDING AND 10 FOLLOWING) FROM o",
    ),
    "a range that ends before the row": (
        _LONG,
        "SELECT id, SUM(v) OVER (ORDER BY v DESC RANGE BETWEEN 10 PRECEDING AND -1 FOLLOWING) FROM o",
    ),
    "a range of NULL": (
        "id BIGINT, s BIGINT, c BIGINT",
        "SELECT id, SUM(v) OVER w, COUNT(*) OVER w FROM o "
        "WINDOW w AS (ORDER BY v RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)",
    ),
    "first and last values": (
        "id BIGINT, f BIGINT, l BIGINT",
        "SELECT id, FIRST_VALUE(v) OVER w, LAST_VALUE(v) OVER w FROM o WINDOW w AS (ORDER BY id DESC)",
    ),
    "first and last values of a partition": (
        "id BIGINT, f BIGINT, l BIGINT",
        "SELECT id, FIRST_VALUE(v) OVER w, LAST_VALUE(v) OVER w FROM o WINDOW w AS "
        "(PARTITION BY k ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ),
    # Flink takes LAG with a default for NOT NULL, whatever the values are, so that these have no NULL.
    "rows before and behind": (
        "id BIGINT, a BIGINT, b BIGINT, c BIGINT, d BIGINT",
        "SELECT id, LAG(v) OVER w, LAG(n, 2, -1) OVER w, LEAD(n, 1, id) OVER w, LAG(v, 2) OVER w - v "
        "FROM o WINDOW w AS (PARTITION BY k ORDER BY id)",
    ),
    "a default of another type": (
        "id BIGINT, a INT, b BIGINT",
        "SELECT id, LAG(i, 1, id) OVER w, LEAD(n, 1, 0.5) OVER w FROM o WINDOW w AS (ORDER BY id)",
    ),
    "parts": ("id BIGINT, n BIGINT", "SELECT id, NTILE(3) OVER (ORDER BY id) FROM o"),
    "shares": ("id BIGINT, a DOUBLE", "SELECT id, PERCENT_RANK() OVER (PARTITION BY k ORDER BY v) FROM o"),
    "in an expression": (
        "id BIGINT, dev BIGINT, t STRING",
        "SELECT id, v - AVG(v) OVER (PARTITION BY k), "
        "CASE WHEN RANK() OVER (PARTITION BY k ORDER BY v DESC) = 1 THEN 'top' ELSE 'other' END FROM o",
    ),
    "below a condition": (
        _LONG,
        "SELECT id, s FROM (SELECT id, k, SUM(v) OVER (PARTITION BY k ORDER BY id) AS s FROM o) WHERE s > 12 AND k = 1",
    ),
    "qualified": ("id BIGINT", "SELECT id FROM o QUALIFY SUM(v) OVER (PARTITION BY k ORDER BY id) > 40"),
    "distinct": ("k BIGINT, m BIGINT", "SELECT DISTINCT k, MAX(v) OVER (PARTITION BY k) FROM o"),
    "sorted by": (_LONG, "SELECT id, v FROM o ORDER BY SUM(v) OVER (PARTITION BY k) DESC, id LIMIT 3"),
    "over groups": (
        "k BIGINT, s BIGINT, r BIGINT",
        "SELECT k, s, RANK() OVER (ORDER BY s DESC) FROM (SELECT k, SUM(v) AS s FROM o GROUP BY k)",
    ),
    "over groups in one block": (
        "k BIGINT, n BIGINT, s BIGINT, p BIGINT",
        "SELECT k, COUNT(*) AS n, SUM(SUM(v)) OVER (ORDER BY k), SUM(v) * 100 / SUM(SUM(v)) OVER () FROM o GROUP BY k",
    ),
    "a rank of computed groups": (
        "k BIGINT, s BIGINT, r BIGINT",
        "SELECT k + 1 AS g, SUM(v) AS s, RANK() OVER (ORDER BY COUNT(*) DESC) FROM o GROUP BY k + 1 "
        "HAVING SUM(v) > 1 ORDER BY s DESC LIMIT 2",
    ),
}
"""What a query is called, the columns of its answer, and the query."""

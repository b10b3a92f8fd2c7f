"""The first or last rows of each key."""

from __future__ import annotations

from .tables import Program

FIRST_ROWS: dict[str, Program] = {
    # The first or last row of each key
    "first row by time": (
        "u BIGINT, v BIGINT",
        "SELECT u, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY ts) AS n FROM e) WHERE n = 1",
    ),
    "last row by time": (
        "u BIGINT, v BIGINT, n BIGINT",
        "SELECT u, v, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY ts DESC) AS n FROM e) WHERE n <= 1",
    ),
    "first row by arrival": (
        "u BIGINT, v BIGINT",
        "SELECT u, v FROM (SELECT u, v, ROW_NUMBER() OVER (PARTITION BY u ORDER BY p) AS n "
        "FROM (SELECT *, PROCTIME() AS p FROM e)) WHERE n = 1",
    ),
    "last row by arrival": (
        "u BIGINT, v BIGINT",
        "SELECT u, v FROM (SELECT u, v, ROW_NUMBER() OVER (PARTITION BY u ORDER BY p DESC) AS n "
        "FROM (SELECT *, PROCTIME() AS p FROM e)) WHERE n < 2",
    ),
    "last row by time of two columns": (
        "u BIGINT, v BIGINT",
        "SELECT u, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u, v ORDER BY ts DESC) AS n FROM e) WHERE n = 1",
    ),
    "first row by time of all": (
        "u BIGINT, v BIGINT",
        "SELECT u, v FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY ts) AS n FROM e) WHERE n = 1",
    ),
    "last rows that a condition filters": (
        "u BIGINT, v BIGINT",
        "SELECT u, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY ts DESC) AS n FROM e WHERE v <> 8) "
        "WHERE n = 1 AND v > 3 AND u < 3",
    ),
    "last rows counted": (
        "v BIGINT, n BIGINT",
        "SELECT v, COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY ts DESC) AS n FROM e) "
        "WHERE n = 1 GROUP BY v",
    ),
    "last rows joined": (
        "u BIGINT, v BIGINT, name STRING",
        "SELECT l.u, l.v, c.name FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY ts DESC) AS n FROM e) AS l "
        "LEFT JOIN c ON l.u = c.k WHERE l.n = 1",
    ),
    # The first rows of each key in an order
    "first rows with their numbers": (
        "s STRING, n BIGINT, id BIGINT, v BIGINT",
        "SELECT s, n, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC, id) AS n FROM o) "
        "WHERE n <= 2",
    ),
    "first rows without numbers": (
        "s STRING, id BIGINT",
        "SELECT s, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY d, id) AS n FROM o) WHERE n < 3",
    ),
    "first rows by ties": (
        "s STRING, id BIGINT, n BIGINT",
        "SELECT s, id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v) AS n FROM o) WHERE n <= 3",
    ),
    "second to third rows": (
        "s STRING, id BIGINT, n BIGINT",
        "SELECT s, id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY p DESC, id) AS n FROM o) "
        "WHERE n BETWEEN 2 AND 3",
    ),
    "the second row of each key": (
        "s STRING, id BIGINT",
        "SELECT s, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY p, id) AS n FROM o) WHERE n = 2",
    ),
    "first row by a column that is no time": (
        "k BIGINT, id BIGINT, v BIGINT",
        "SELECT k, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM o) WHERE n = 1",
    ),
    "first rows of all": (
        "id BIGINT, n BIGINT",
        "SELECT id, n FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY d DESC, id) AS n FROM o) WHERE n <= 4",
    ),
    "first rows with nulls where they are said to be": (
        "s STRING, id BIGINT, n BIGINT",
        "SELECT s, id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC NULLS FIRST, "
        "d ASC NULLS LAST, id) AS n FROM o) WHERE n <= 2",
    ),
    "first rows by an expression": (
        "m BIGINT, id BIGINT, n BIGINT",
        "SELECT v % 3, id, n FROM (SELECT v, id, ROW_NUMBER() OVER (PARTITION BY v % 3 ORDER BY id % 4, id DESC) AS n "
        "FROM o) WHERE n <= 2",
    ),
    "first rows by time": (
        "u BIGINT, v BIGINT, n BIGINT",
        "SELECT u, v, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY ts DESC, v) AS n FROM e) WHERE n <= 2",
    ),
    "first rows of a changelog": (
        "s STRING, k BIGINT, v BIGINT, n BIGINT",
        "SELECT s, k, v, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v, k) AS n FROM g) WHERE n <= 2",
    ),
    "first rows of a changelog without numbers": (
        "s STRING, k BIGINT, v BIGINT",
        "SELECT s, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC, k) AS n FROM g) WHERE n <= 2",
    ),
    "the first row of a changelog": (
        "s STRING, k BIGINT, v BIGINT",
        "SELECT s, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC, k) AS n FROM g) WHERE n = 1",
    ),
    "largest groups": (
        "s STRING, c BIGINT, n BIGINT",
        "SELECT s, c, n FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY c DESC, s) AS n FROM "
        "(SELECT s, COUNT(*) AS c FROM o GROUP BY s)) WHERE n <= 3",
    ),
    "largest groups of each key": (
        "k BIGINT, s STRING, c BIGINT",
        "SELECT k, s, c FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY c DESC, s DESC) AS n FROM "
        "(SELECT k, s, COUNT(*) AS c FROM o GROUP BY k, s)) WHERE n <= 2",
    ),
    "first rows of an outer join": (
        "name STRING, id BIGINT, n BIGINT",
        "SELECT name, id, n FROM (SELECT c.name, o.id, ROW_NUMBER() OVER (PARTITION BY c.name ORDER BY o.id DESC) AS n "
        "FROM o LEFT JOIN c ON o.k = c.k) WHERE n <= 2",
    ),
    "first rows counted": (
        "v BIGINT, m BIGINT",
        "SELECT v, COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC, id) AS n FROM o) "
        "WHERE n <= 2 GROUP BY v",
    ),
    "first rows joined": (
        "s STRING, id BIGINT, name STRING",
        "SELECT t.s, t.id, c.name FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC, id) AS n FROM o) "
        "AS t JOIN c ON t.k = c.k WHERE t.n <= 2",
    ),
    "first rows of first rows": (
        "s STRING, id BIGINT",
        "SELECT s, id FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY id DESC) AS m FROM (SELECT * FROM (SELECT *, "
        "ROW_NUMBER() OVER (PARTITION BY s ORDER BY v DESC, id) AS n FROM o) WHERE n <= 2)) WHERE m <= 3",
    ),
    "sorted and cut": ("id BIGINT, d DOUBLE", "SELECT id, d FROM o ORDER BY d DESC, id LIMIT 4"),
    "sorted, skipped and cut": ("id BIGINT", "SELECT id FROM o ORDER BY p, id LIMIT 3 OFFSET 2"),
    "a sorted changelog that is cut": ("k BIGINT, v BIGINT", "SELECT k, v FROM g ORDER BY v DESC, k LIMIT 2"),
    "largest groups by limit": (
        "s STRING, c BIGINT",
        "SELECT s, COUNT(*) AS c FROM o GROUP BY s ORDER BY c DESC, s LIMIT 2",
    ),
    "cut": ("id BIGINT", "SELECT id FROM o LIMIT 5"),
    "a sub-query that is sorted and cut": (
        "id BIGINT, name STRING",
        "SELECT t.id, c.name FROM (SELECT id, k FROM o ORDER BY id DESC LIMIT 6) AS t JOIN c ON t.k = c.k",
    ),
    # As many as a column of the partition says.
    "as many first rows as the key says": (
        "k BIGINT, id BIGINT, v BIGINT, n BIGINT",
        "SELECT k, id, v, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM o) "
        "WHERE n <= k",
    ),
    "as many first rows as the key says, without numbers": (
        "k BIGINT, id BIGINT",
        "SELECT k, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM o) WHERE k >= n",
    ),
    "as many first rows as a column of the key says": (
        "s STRING, k BIGINT, id BIGINT, n BIGINT",
        "SELECT s, k, id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s, k ORDER BY id DESC) AS n FROM o) "
        "WHERE n <= k",
    ),
    "as many first rows as is computed of the key": (
        "c BIGINT, id BIGINT, n BIGINT",
        "SELECT c, id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY c ORDER BY id DESC) AS n "
        "FROM (SELECT id, k - 1 AS c FROM o)) WHERE n <= c",
    ),
    "as many first rows of a changelog as the key says": (
        "s STRING, k BIGINT, v BIGINT, n BIGINT",
        "SELECT s, k, v, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, s) AS n FROM g) "
        "WHERE n <= k",
    ),
    "as many first rows of a changelog as the key says, without numbers": (
        "s STRING, k BIGINT, v BIGINT",
        "SELECT s, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, s) AS n FROM g) WHERE n <= k",
    ),
    "as many first rows of upserts as the key says": (
        "v BIGINT, k BIGINT, n BIGINT",
        "SELECT v, k, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY k) AS n FROM "
        "(SELECT k, v - 10 AS v FROM u)) WHERE n <= v",
    ),
    "as many of the largest groups as the key says": (
        "k BIGINT, s STRING, c BIGINT, n BIGINT",
        "SELECT k, s, c, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY c DESC, s) AS n FROM "
        "(SELECT k, s, COUNT(*) AS c FROM o GROUP BY k, s)) WHERE n <= k",
    ),
}

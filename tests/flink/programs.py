"""SQL programs for which Flink's results are recorded, and the rows that their tables hold.

Data only: it is read both by record_programs.py, in Flink's environment, and by our tests. A table is its columns and
its rows, each with its kind first; tables whose rows are not all ``+I`` are changelogs. A program is the columns of its
result and its query. Queries group by what they test; the tables have NULLs, duplicates, keys without a partner and
keys that change.
"""

from __future__ import annotations

Rows = list[tuple[object, ...]]


def _inserts(*rows: tuple[object, ...]) -> Rows:
    return [("+I", *row) for row in rows]


TABLES: dict[str, tuple[dict[str, str], Rows]] = {
    "o": (
        {"id": "BIGINT", "k": "BIGINT", "v": "BIGINT", "s": "STRING", "d": "DOUBLE", "p": "DECIMAL(10, 2)"},
        _inserts(
            (1, 1, 10, "x", 1.5, "1.10"),
            (2, 2, 20, "y", 2.25, "2.20"),
            (3, 1, None, "x", -0.5, None),
            (4, None, 40, None, 4.0, "4.44"),
            (5, 3, 20, "z", None, "-5.55"),
            (6, 1, 10, "x", 1.5, "1.10"),
            (6, 1, 10, "x", 1.5, "1.10"),
            (7, 2, -5, "y", 8.75, "0.01"),
            (8, 9, 7, "", 0.25, "99999999.99"),
            (9, 3, 20, "x", 3.5, "3.33"),
            (10, None, None, "y", 2.5, "2.22"),
            (11, 4, 1, "z", 6.5, "6.66"),
        ),
    ),
    "c": (
        {"k": "BIGINT", "name": "STRING", "w": "BIGINT"},
        _inserts(
            (1, "one", 5),
            (2, "two", 15),
            (2, "zwei", 25),
            (3, None, None),
            (5, "five", 50),
            (None, "none", 0),
            (4, "four", 1),
            (1, "one", 5),
        ),
    ),
    "i": (
        {"oid": "BIGINT", "part": "STRING", "qty": "INT"},
        _inserts(
            (1, "a", 1),
            (1, "b", 2),
            (2, "a", 3),
            (3, None, 4),
            (5, "c", None),
            (6, "a", 6),
            (12, "d", 7),
            (None, "a", 8),
            (9, "b", 9),
        ),
    ),
    "g": (
        {"k": "BIGINT", "v": "BIGINT", "s": "STRING"},
        [
            ("+I", 1, 10, "x"),
            ("+I", 2, 20, "y"),
            ("-U", 1, 10, "x"),
            ("+U", 1, 11, "x"),
            ("+I", 3, 30, "x"),
            ("-D", 2, 20, "y"),
            ("+I", None, 5, "n"),
            ("+I", 4, 40, None),
            ("-U", 3, 30, "x"),
            ("+U", 5, 30, "x"),
            ("+I", 1, 11, "x"),
            ("-D", None, 5, "n"),
            ("+I", 6, 60, "z"),
            ("-D", 6, 60, "z"),
            ("+I", 6, 61, "z"),
            ("-U", 4, 40, None),
            ("+U", 4, None, "w"),
        ],
    ),
    "a": (
        {"k": "BIGINT", "name": "STRING", "w": "BIGINT"},
        [
            ("+I", 1, "one", 5),
            ("+I", 2, "two", 15),
            ("+I", 4, "four", 1),
            ("-U", 1, "one", 5),
            ("+U", 1, "uno", 6),
            ("-D", 2, "two", 15),
            ("+I", 5, "five", 50),
            ("+I", 7, "seven", None),
            ("-U", 5, "five", 50),
            ("+U", 6, "five", 50),
            ("+I", None, "none", 0),
        ],
    ),
    "u": (
        {"k": "BIGINT", "v": "BIGINT", "s": "STRING"},
        [
            ("+I", 1, 10, "x"),
            ("+I", 2, 20, "y"),
            ("+U", 1, 11, "x"),
            ("+I", 3, None, "x"),
            ("-D", 2, None, None),
            ("+I", 1, 12, "y"),
            ("+U", 4, 40, None),
            ("-D", 9, None, None),
            ("+I", 5, 30, "z"),
            ("+U", 5, 30, "z"),
            ("+I", 2, 21, "z"),
            ("+U", 3, 31, "x"),
            ("-D", 5, 30, "z"),
            ("+U", 6, -6, "y"),
            ("+I", 2, 21, "x"),
            ("-D", 6, None, None),
            ("+I", 6, 60, "y"),
        ],
    ),
    "w": (
        {"a": "BIGINT", "b": "STRING", "n": "BIGINT"},
        [
            ("+I", 1, "x", 1),
            ("+I", 1, "y", 2),
            ("+U", 1, "x", 3),
            ("+I", 2, "x", 4),
            ("-D", 1, "y", 2),
            ("+U", 2, "y", None),
            ("+I", 2, "y", 6),
            ("+I", 3, "z", 7),
            ("-D", 3, "z", None),
            ("+I", 1, "y", 8),
        ],
    ),
    "n": (
        {
            "k": "BIGINT",
            "b": "BIGINT",
            "i": "INT",
            "h": "SMALLINT",
            "t": "TINYINT",
            "x": "DECIMAL(38, 0)",
            "z": "DECIMAL(20, 8)",
        },
        _inserts(
            (1, 9223372036854775807, 2147483647, 32767, 127, "9" * 38, "1.00000001"),
            (2, 5, 6, 7, -128, "-5", "1.00000005"),
            (1, 1, 1, 1, 1, "1", "2.00000001"),
            (2, -9223372036854775808, -2147483648, -32768, -1, "7", "1.00000004"),
            (2, None, None, None, None, None, None),
            (3, -1, -1, -1, -1, "-1", "999999999999.99999999"),
            (3, 4611686018427387904, 1073741824, 16384, 64, "3", "999999999999.99999999"),
        ),
    ),
    # Events that do not come in the order of their times, of which some are the same.
    "e": (
        {"u": "BIGINT", "ts": "TIMESTAMP(3)", "v": "BIGINT"},
        _inserts(
            (1, "2024-01-01 00:00:05", 1),
            (2, "2024-01-01 00:00:03", 2),
            (1, "2024-01-01 00:00:07", 3),
            (1, "2024-01-01 00:00:01", 4),
            (None, "2024-01-01 00:00:02", 5),
            (2, "2024-01-01 00:00:03", 6),
            (3, "2024-01-01 00:00:09", 7),
            (1, "2024-01-01 00:00:07", 8),
            (1, "2024-01-01 00:00:01", 9),
            (2, "2024-01-01 00:00:04", None),
            (None, "2024-01-01 00:00:08", 10),
            (3, "2024-01-01 00:00:09", 7),
            (4, "2024-01-01 00:00:06.5", 11),
            (2, "2024-01-01 00:00:02.999", 12),
        ),
    ),
    # A shop: regions, nations, customers, suppliers, parts, who sells them, orders and their lines.
    "region": ({"rk": "BIGINT", "r": "STRING"}, _inserts((0, "EUROPE"), (1, "ASIA"))),
    "nation": (
        {"nk": "BIGINT", "n": "STRING", "rk": "BIGINT"},
        _inserts((0, "FRANCE", 0), (1, "GERMANY", 0), (2, "CHINA", 1), (3, "JAPAN", None)),
    ),
    "customer": (
        {"ck": "BIGINT", "name": "STRING", "nk": "BIGINT", "phone": "STRING", "bal": "BIGINT", "segment": "STRING"},
        _inserts(
            *(
                (i, f"c{i}", i % 4, f"{(13, 31, 23)[i % 3]}-{i}", i * 37 % 100 - 20, ("BUILDING", "AUTO")[i % 2])
                for i in range(9)
            )
        ),
    ),
    "supplier": (
        {"sk": "BIGINT", "name": "STRING", "nk": "BIGINT", "remark": "STRING"},
        _inserts(*((i, f"s{i}", i * 3 % 4, ("fine", "many complaints", None)[i % 3]) for i in range(6))),
    ),
    "part": (
        {"pk": "BIGINT", "name": "STRING", "brand": "STRING", "kind": "STRING", "size": "INT"},
        _inserts(
            *(
                (i, ("forest", "green", "red")[i % 3] + f" {i}", f"b{i % 2}", ("SMALL BRASS", "PROMO TIN")[i % 2], i)
                for i in range(7)
            )
        ),
    ),
    "partsupp": (
        {"pk": "BIGINT", "sk": "BIGINT", "qty": "INT", "cost": "BIGINT"},
        _inserts(*((i % 7, i * 5 % 6, i * 11 % 40, i * 13 % 30 + 1) for i in range(20))),
    ),
    "orders": (
        {
            "ok": "BIGINT",
            "ck": "BIGINT",
            "status": "STRING",
            "price": "BIGINT",
            "placed": "INT",
            "urgency": "STRING",
            "remark": "STRING",
        },
        _inserts(
            *(
                (
                    i,
                    i * 5 % 8,
                    "FO"[i % 2],
                    i * 111 % 500,
                    100 + i * 17 % 60,
                    ("1-URGENT", "2-HIGH", "3-LOW")[i % 3],
                    (None, "special deposit requests", "quick")[i % 3],
                )
                for i in range(16)
            )
        ),
    ),
    "lineitem": (
        {
            "ok": "BIGINT",
            "pk": "BIGINT",
            "sk": "BIGINT",
            "qty": "INT",
            "price": "BIGINT",
            "off": "INT",
            "flag": "STRING",
            "shipped": "INT",
            "due": "INT",
            "received": "INT",
            "mode": "STRING",
        },
        _inserts(
            *(
                (
                    i * 7 % 17,
                    i % 7,
                    i * 5 % 6,
                    i * 3 % 50,
                    i * 101 % 900 + 1,
                    i % 11,
                    "ANR"[i % 3],
                    100 + i * 13 % 70,
                    105 + i * 11 % 70,
                    103 + i * 19 % 80,
                    ("MAIL", "SHIP", "AIR")[i % 3],
                )
                for i in range(45)
            )
        ),
    ),
}
"""Changelogs are legal ones, but for those of upserts."""

WATERMARKED: dict[str, str] = {"e": "ts"}
"""Tables with a WATERMARK, and the column that it is for."""

UPSERTED: dict[str, tuple[str, ...]] = {"u": ("k",), "w": ("a", "b")}
"""Tables whose rows replace each other by these columns, their primary keys."""

Program = tuple[str, str]

PROGRAMS: dict[str, Program] = {
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
    # Unions, intersections, differences
    "union all": ("k BIGINT, s STRING", "SELECT k, s FROM o UNION ALL SELECT k, name FROM c"),
    "union": ("k BIGINT", "SELECT k FROM o UNION SELECT k FROM c"),
    "union of a changelog": ("k BIGINT", "SELECT k FROM g UNION SELECT k FROM a"),
    "union all of a changelog": ("k BIGINT, v BIGINT", "SELECT k, v FROM g UNION ALL SELECT k, w FROM c"),
    "aggregate over a union": (
        "k BIGINT, t BIGINT",
        "SELECT k, SUM(v) FROM (SELECT k, v FROM o UNION ALL SELECT k, w FROM c) AS u GROUP BY k",
    ),
    "aggregate over a union with a changelog": (
        "k BIGINT, a BIGINT, b BIGINT",
        "SELECT k, MIN(v), COUNT(DISTINCT v) FROM (SELECT k, v FROM g UNION ALL SELECT k, w FROM c) AS u GROUP BY k",
    ),
    "intersect": ("k BIGINT", "SELECT k FROM o INTERSECT SELECT k FROM c"),
    "intersect of two columns": ("k BIGINT, s STRING", "SELECT k, s FROM o INTERSECT SELECT k, s FROM g"),
    "except": ("k BIGINT", "SELECT k FROM o EXCEPT SELECT k FROM c"),
    "except of changelogs": ("k BIGINT", "SELECT k FROM g EXCEPT SELECT k FROM a"),
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
    "intersect all": ("k BIGINT, s STRING", "SELECT k, s FROM o INTERSECT ALL SELECT k, s FROM g"),
    "intersect all of duplicates": (
        "id BIGINT, k BIGINT, v BIGINT",
        "SELECT id, k, v FROM o INTERSECT ALL SELECT id, k, v FROM (SELECT * FROM o UNION ALL SELECT * FROM o)",
    ),
    "intersect all of changelogs": ("k BIGINT", "SELECT k FROM g INTERSECT ALL SELECT k FROM a"),
    "except all": ("k BIGINT", "SELECT k FROM o EXCEPT ALL SELECT k FROM c"),
    "except all of changelogs": ("v BIGINT", "SELECT v FROM g EXCEPT ALL SELECT w FROM a"),
    "except all of upserts": ("s STRING", "SELECT s FROM o EXCEPT ALL SELECT s FROM u"),
    "except all of other types": ("x BIGINT", "SELECT k FROM o EXCEPT ALL SELECT qty FROM i"),
    "except all of a chain": ("s STRING", "SELECT s FROM o EXCEPT ALL SELECT s FROM g EXCEPT ALL SELECT s FROM u"),
    "intersect all of an except all": (
        "k BIGINT",
        "SELECT k FROM o INTERSECT ALL (SELECT k FROM c EXCEPT ALL SELECT k FROM a)",
    ),
    "except all of values": ("x INT", "(VALUES (1), (2), (2), (2)) EXCEPT ALL (VALUES (1), (2))"),
    "aggregate of an except all": (
        "s STRING, n BIGINT",
        "SELECT s, COUNT(*) FROM (SELECT s FROM o EXCEPT ALL SELECT s FROM g) AS t WHERE s <> 'y' GROUP BY s",
    ),
    "join with an intersect all": (
        "id BIGINT, k BIGINT",
        "SELECT o.id, t.k FROM o LEFT JOIN (SELECT k FROM o INTERSECT ALL SELECT k FROM c) AS t ON o.k = t.k",
    ),
    "cte used twice": (
        "k BIGINT, a BIGINT, b BIGINT",
        "WITH t AS (SELECT k, v FROM o WHERE v > 0) SELECT x.k, x.v, y.n FROM t AS x "
        "JOIN (SELECT k, COUNT(*) AS n FROM t GROUP BY k) AS y ON x.k = y.k",
    ),
    # Grouping sets
    "rollup": ("k BIGINT, s STRING, n BIGINT, t BIGINT", "SELECT k, s, COUNT(*), SUM(v) FROM o GROUP BY ROLLUP (k, s)"),
    "cube": ("k BIGINT, s STRING, n BIGINT, a BIGINT", "SELECT k, s, COUNT(v), AVG(v) FROM o GROUP BY CUBE (k, s)"),
    "grouping sets": (
        "k BIGINT, s STRING, v BIGINT, n BIGINT",
        "SELECT k, s, v, COUNT(*) FROM o GROUP BY GROUPING SETS ((k, s), v, (), (s, v))",
    ),
    "rollup beside a column": (
        "s STRING, k BIGINT, v BIGINT, n BIGINT",
        "SELECT s, k, v, COUNT(*) FROM o GROUP BY s, ROLLUP (k, v)",
    ),
    "rollup in grouping sets": (
        "s STRING, k BIGINT, v BIGINT, n BIGINT",
        "SELECT s, k, v, COUNT(*) FROM o GROUP BY GROUPING SETS (ROLLUP ((s, k)), v)",
    ),
    "cube by rollup": (
        "s STRING, k BIGINT, m DOUBLE",
        "SELECT s, k, MAX(d) FROM o GROUP BY DISTINCT CUBE (s), ROLLUP (s, k)",
    ),
    "rollup of expressions": (
        "a BIGINT, b STRING, t BIGINT",
        "SELECT v / 10, COALESCE(s, 'n'), SUM(v / 10) FROM o GROUP BY ROLLUP (v / 10, COALESCE(s, 'n'))",
    ),
    "aggregates of rolled up columns": (
        "k BIGINT, s STRING, a BIGINT, b BIGINT, c STRING, d BIGINT",
        "SELECT k, s, SUM(k), COUNT(DISTINCT s), MIN(s), COUNT(k) FILTER (WHERE s = 'x') FROM o GROUP BY ROLLUP (k, s)",
    ),
    "grouping": (
        "k BIGINT, s STRING, a BIGINT, b BIGINT, c BIGINT, d BIGINT, e BIGINT, n BIGINT",
        "SELECT k, s, GROUPING(k), GROUPING(s), GROUPING_ID(k, s), GROUPING_ID(s, k), GROUP_ID(), COUNT(*) FROM o "
        "GROUP BY CUBE (k, s)",
    ),
    "grouping of several": (
        "s STRING, k BIGINT, a BIGINT, b BIGINT",
        "SELECT s, k, GROUPING(k, v, s), GROUPING_ID(v) FROM o GROUP BY s, GROUPING SETS ((k, v), (k), v)",
    ),
    "grouping without sets": ("k BIGINT, a BIGINT, b BIGINT", "SELECT k, GROUPING(k), GROUP_ID() FROM o GROUP BY k"),
    "having on grouping": (
        "k BIGINT, s STRING, n BIGINT",
        "SELECT k, s, COUNT(*) FROM o GROUP BY CUBE (k, s) HAVING GROUPING(k) = 1 OR GROUPING(s) = 0 AND COUNT(*) > 1",
    ),
    "labels by grouping": (
        "label STRING, n BIGINT",
        "SELECT CASE WHEN GROUPING(s) = 1 THEN 'all' WHEN s IS NULL THEN 'none' ELSE s END, COUNT(*) FROM o GROUP BY CUBE (s)",
    ),
    "rollup of a changelog": (
        "k BIGINT, s STRING, n BIGINT, t BIGINT",
        "SELECT k, s, COUNT(*), SUM(v) FROM g GROUP BY ROLLUP (k, s)",
    ),
    "cube over a left join": (
        "name STRING, s STRING, n BIGINT, m BIGINT",
        "SELECT c.name, o.s, COUNT(*), MAX(o.v) FROM o LEFT JOIN c ON o.k = c.k GROUP BY CUBE (c.name, o.s)",
    ),
    "rollup of an aggregate over a left join": (
        "name STRING, m BIGINT, t BIGINT",
        "SELECT name, n, SUM(n) FROM (SELECT a.name, COUNT(*) AS n FROM g LEFT JOIN a ON g.k = a.k GROUP BY a.name) AS t "
        "GROUP BY ROLLUP (name, n)",
    ),
    "distinct counts of a cube of a changelog": (
        "s STRING, k BIGINT, n BIGINT, m BIGINT",
        "SELECT s, k, COUNT(DISTINCT v), COUNT(DISTINCT k) FILTER (WHERE v > 10) FROM g GROUP BY CUBE (s, k)",
    ),
    "aggregate of a rollup": (
        "s STRING, n BIGINT, t BIGINT",
        "SELECT s, COUNT(*), SUM(n) FROM (SELECT k, s, COUNT(*) AS n FROM g GROUP BY ROLLUP (k, s)) AS t GROUP BY s",
    ),
    "join with a rollup": (
        "id BIGINT, n BIGINT",
        "SELECT o.id, t.n FROM o JOIN (SELECT k, COUNT(*) AS n FROM g GROUP BY ROLLUP (k)) AS t ON o.k = t.k",
    ),
    "distinct of a rollup": ("k BIGINT, n BIGINT", "SELECT DISTINCT k, COUNT(*) FROM o GROUP BY ROLLUP (k, s)"),
    "rollup of no rows": ("k BIGINT, n BIGINT", "SELECT k, COUNT(*) FROM o WHERE id > 99 GROUP BY ROLLUP (k)"),
    "the empty set": ("n BIGINT, t BIGINT", "SELECT COUNT(*), SUM(v) FROM o GROUP BY GROUPING SETS (())"),
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
    # Sub-queries that are values
    "a value by key": ("id BIGINT, m BIGINT", "SELECT id, (SELECT MAX(w) FROM c WHERE c.k = o.k) AS m FROM o"),
    "a count by key": ("id BIGINT, n BIGINT", "SELECT id, (SELECT COUNT(*) FROM c WHERE c.k = o.k) AS n FROM o"),
    "an expression of a count by key": (
        "id BIGINT, n BIGINT",
        "SELECT id, (SELECT COUNT(w) + 1 FROM c WHERE c.k = o.k) FROM o",
    ),
    "a sum by key or zero": (
        "id BIGINT, n BIGINT",
        "SELECT id, (SELECT COALESCE(SUM(w), 0) FROM c WHERE c.k = o.k) FROM o",
    ),
    "a count by key, grouped": (
        "id BIGINT, n BIGINT",
        "SELECT id, (SELECT COUNT(*) FROM c WHERE c.k = o.k GROUP BY c.k) FROM o",
    ),
    "a value with having": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT MAX(w) FROM c WHERE c.k = o.k HAVING COUNT(*) > 1) FROM o",
    ),
    "a value by an expression": ("id BIGINT, m BIGINT", "SELECT id, (SELECT MAX(w) FROM c WHERE c.k = o.k + 1) FROM o"),
    "a value by two keys": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT SUM(g.v) FROM g WHERE g.k = o.k AND g.s = o.s) FROM o",
    ),
    "a value for a changelog": (
        "k BIGINT, v BIGINT, m BIGINT",
        "SELECT k, v, (SELECT MIN(w) FROM a WHERE a.k = g.k) FROM g",
    ),
    "two values in one expression": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT MAX(w) FROM c WHERE c.k = o.k) + (SELECT COUNT(*) FROM i WHERE i.oid = o.id) FROM o",
    ),
    "a value within case": (
        "id BIGINT, m BIGINT",
        "SELECT id, CASE WHEN v > 10 THEN (SELECT MAX(w) FROM c WHERE c.k = o.k) ELSE -1 END FROM o",
    ),
    "a value in where": ("id BIGINT", "SELECT id FROM o WHERE v < (SELECT AVG(w) FROM c WHERE c.k = o.k)"),
    "a count in where": ("id BIGINT", "SELECT id FROM o WHERE v > (SELECT COUNT(w) FROM c WHERE c.k = o.k)"),
    "a computed value in where": (
        "id BIGINT",
        "SELECT id FROM o WHERE v > (SELECT 0.2 * SUM(w) FROM c WHERE c.k = o.k AND c.w > 1)",
    ),
    "a value beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE v + 1 = (SELECT MAX(w) FROM c WHERE c.k = o.k) OR v = 1",
    ),
    "a value that is null": ("id BIGINT", "SELECT id FROM o WHERE (SELECT MAX(w) FROM c WHERE c.k = o.k) IS NULL"),
    "a value over a join": (
        "id BIGINT, name STRING",
        "SELECT o.id, c.name FROM o JOIN c ON o.k = c.k WHERE o.v >= (SELECT MIN(i.qty) FROM i WHERE i.oid = o.id)",
    ),
    "a value inside in": (
        "id BIGINT",
        "SELECT id FROM o WHERE k IN (SELECT k FROM c WHERE w > (SELECT AVG(qty) FROM i WHERE i.oid = c.k))",
    ),
    "a value from a join": (
        "id BIGINT, m INT",
        "SELECT id, (SELECT SUM(i.qty) FROM i JOIN c ON i.oid = c.k WHERE c.k = o.k) FROM o",
    ),
    "a value from a union": (
        "id BIGINT, n BIGINT",
        "SELECT id, (SELECT COUNT(*) FROM (SELECT k FROM c UNION ALL SELECT k FROM a) AS x WHERE x.k = o.k) FROM o",
    ),
    "a value for all rows": ("id BIGINT, m BIGINT", "SELECT id, (SELECT MAX(w) FROM c) FROM o"),
    "rows above the average": ("id BIGINT", "SELECT id FROM o WHERE v > (SELECT AVG(v) FROM o)"),
    "a value in having": (
        "k BIGINT, t BIGINT",
        "SELECT k, SUM(v) FROM o GROUP BY k HAVING SUM(v) > (SELECT AVG(w) FROM c)",
    ),
    "a value beside an aggregate": ("n BIGINT, m BIGINT", "SELECT COUNT(*), (SELECT MAX(w) FROM c) FROM o"),
    "exists as a column": ("id BIGINT, e BOOLEAN", "SELECT id, EXISTS (SELECT 1 FROM c WHERE c.k = o.k) FROM o"),
    "exists beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE v = 1 OR EXISTS (SELECT 1 FROM c WHERE c.k = o.k AND c.w > 5)",
    ),
    "not exists beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE v = 20 OR NOT EXISTS (SELECT 1 FROM c WHERE c.k = o.k)",
    ),
    "a value by inequality": ("id BIGINT, m BIGINT", "SELECT id, (SELECT MAX(c.w) FROM c WHERE c.w < o.v) FROM o"),
    "a value by inequality of the outer rows": (
        "id BIGINT, n BIGINT",
        "SELECT id, (SELECT SUM(x.v) FROM o AS x WHERE x.id <= o.id) FROM o",
    ),
    "a value by equality and inequality": (
        "id BIGINT, m BIGINT, s STRING",
        "SELECT id, (SELECT MIN(c.w) FROM c WHERE c.k = o.k AND c.w > o.v), s FROM o",
    ),
    "a count by inequality": ("id BIGINT, n BIGINT", "SELECT id, (SELECT COUNT(*) FROM c WHERE c.w > o.v) FROM o"),
    "a value by inequality with an expression": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT MAX(c.w + 1) FROM c WHERE c.w - 2 < o.v * 2 OR c.k = o.k) FROM o WHERE v + k > 0",
    ),
    "a value by inequality in where": (
        "id BIGINT",
        "SELECT id FROM o WHERE v >= (SELECT AVG(c.w) FROM c WHERE c.k <> o.k)",
    ),
    "a value by inequality of a changelog": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT MAX(g.v) FROM g WHERE g.k <= o.k) FROM o",
    ),
    "a value by inequality in a changelog": (
        "k BIGINT, v BIGINT, n BIGINT",
        "SELECT k, v, (SELECT COUNT(c.w) FROM c WHERE c.k < g.v) FROM g",
    ),
    "exists by inequality as a column": (
        "id BIGINT, e BOOLEAN",
        "SELECT id, EXISTS (SELECT 1 FROM c WHERE c.w > o.v AND c.k = o.k) FROM o",
    ),
    "exists by inequality beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE v = 1 OR EXISTS (SELECT 1 FROM c WHERE c.k < o.k AND c.w > 5)",
    ),
    "not exists by inequality beside or": (
        "id BIGINT",
        "SELECT id FROM o WHERE v = 20 OR NOT EXISTS (SELECT 1 FROM c WHERE c.w > o.v)",
    ),
    "distinct rows with a value": (
        "k BIGINT, n BIGINT",
        "SELECT DISTINCT k, (SELECT COUNT(*) FROM c WHERE c.k = o.k) FROM o",
    ),
    # Numbers that leave their type
    "sums that wrap around": (
        "k BIGINT, b BIGINT, i INT, h SMALLINT, t TINYINT",
        "SELECT k, SUM(b), SUM(i), SUM(h), SUM(t) FROM n GROUP BY k",
    ),
    "averages that wrap around": (
        "k BIGINT, b BIGINT, i INT, h SMALLINT, t TINYINT",
        "SELECT k, AVG(b), AVG(i), AVG(h), AVG(t) FROM n GROUP BY k",
    ),
    "decimal sums with too many digits": (
        "k BIGINT, x DECIMAL(38, 0), z DECIMAL(38, 8)",
        "SELECT k, SUM(x), SUM(z) FROM n GROUP BY k",
    ),
    "decimal averages with too many digits": (
        "k BIGINT, x DECIMAL(38, 6), z DECIMAL(38, 8)",
        "SELECT k, AVG(x), AVG(z) FROM n GROUP BY k",
    ),
    "distinct decimal sums": (
        "k BIGINT, x DECIMAL(38, 0), z DECIMAL(38, 8)",
        "SELECT k, SUM(DISTINCT x), AVG(DISTINCT z) FROM n GROUP BY k",
    ),
    "integers that wrap around": (
        "b BIGINT, i INT, h SMALLINT, t TINYINT, c BIGINT, j INT",
        "SELECT b + 1, i * 2, -h, t - CAST(1 AS TINYINT), b * i, ABS(i) FROM n",
    ),
    "a filter on what wraps around": ("b BIGINT", "SELECT b FROM n WHERE b + 1 < b OR i - 1 > i"),
    "a join on what wraps around": ("a BIGINT, b BIGINT", "SELECT x.b, y.b FROM n AS x JOIN n AS y ON x.i + 1 = y.i"),
    "a left join with a condition that wraps around": (
        "a BIGINT, b BIGINT",
        "SELECT x.b, y.b FROM n AS x LEFT JOIN n AS y ON x.k = y.k AND x.b + y.i < y.b * 2",
    ),
    "a sum of products that wrap around": ("k BIGINT, s BIGINT", "SELECT k, SUM(b * b - i) FROM n GROUP BY k"),
    # Queries of a shop, after the shapes of TPC-H
    "shop: summary of lines": (
        "flag STRING, q INT, base BIGINT, net BIGINT, aq INT, n BIGINT",
        "SELECT flag, SUM(qty), SUM(price), SUM(price * (100 - off)), AVG(qty), COUNT(*) FROM lineitem WHERE shipped <= 150 GROUP BY flag",
    ),
    "shop: cheapest supplier": (
        "s STRING, n STRING, pk BIGINT",
        "SELECT s.name, n.n, p.pk FROM part AS p, supplier AS s, partsupp AS ps, nation AS n, region AS r "
        "WHERE p.pk = ps.pk AND s.sk = ps.sk AND p.kind LIKE '%BRASS' AND s.nk = n.nk AND n.rk = r.rk AND r.r = 'EUROPE' "
        "AND ps.cost = (SELECT MIN(x.cost) FROM partsupp AS x, supplier AS y, nation AS z, region AS w "
        "WHERE p.pk = x.pk AND y.sk = x.sk AND y.nk = z.nk AND z.rk = w.rk AND w.r = 'EUROPE')",
    ),
    "shop: revenue of open orders": (
        "ok BIGINT, rev BIGINT, d INT",
        "SELECT l.ok, SUM(l.price * (100 - l.off)), o.placed FROM customer AS c, orders AS o, lineitem AS l "
        "WHERE c.segment = 'BUILDING' AND c.ck = o.ck AND l.ok = o.ok AND o.placed < 140 AND l.shipped > 120 GROUP BY l.ok, o.placed",
    ),
    "shop: urgency of late orders": (
        "u STRING, n BIGINT",
        "SELECT urgency, COUNT(*) FROM orders WHERE placed >= 110 AND placed < 150 AND EXISTS "
        "(SELECT * FROM lineitem WHERE lineitem.ok = orders.ok AND due < received) GROUP BY urgency",
    ),
    "shop: local suppliers": (
        "n STRING, rev BIGINT",
        "SELECT n.n, SUM(l.price * (100 - l.off)) FROM customer AS c, orders AS o, lineitem AS l, supplier AS s, nation AS n, region AS r "
        "WHERE c.ck = o.ck AND l.ok = o.ok AND l.sk = s.sk AND c.nk = s.nk AND s.nk = n.nk AND n.rk = r.rk AND r.r = 'EUROPE' GROUP BY n.n",
    ),
    "shop: trade between nations": (
        "a STRING, b STRING, d INT, v BIGINT",
        "SELECT sn, cn, d, SUM(v) FROM (SELECT n1.n AS sn, n2.n AS cn, o.placed / 30 AS d, l.price * (100 - l.off) AS v "
        "FROM supplier AS s, lineitem AS l, orders AS o, customer AS c, nation AS n1, nation AS n2 "
        "WHERE s.sk = l.sk AND o.ok = l.ok AND c.ck = o.ck AND s.nk = n1.nk AND c.nk = n2.nk AND "
        "((n1.n = 'FRANCE' AND n2.n = 'GERMANY') OR (n1.n = 'GERMANY' AND n2.n = 'FRANCE'))) AS t GROUP BY sn, cn, d",
    ),
    "shop: market share": (
        "d INT, a BIGINT, b BIGINT",
        "SELECT d, SUM(CASE WHEN n = 'GERMANY' THEN v ELSE 0 END), SUM(v) FROM (SELECT o.placed / 30 AS d, l.price * (100 - l.off) AS v, n2.n AS n "
        "FROM part AS p, supplier AS s, lineitem AS l, orders AS o, customer AS c, nation AS n1, nation AS n2, region AS r "
        "WHERE p.pk = l.pk AND s.sk = l.sk AND l.ok = o.ok AND o.ck = c.ck AND c.nk = n1.nk AND n1.rk = r.rk AND r.r = 'EUROPE' "
        "AND s.nk = n2.nk AND o.placed BETWEEN 100 AND 155) AS t GROUP BY d",
    ),
    "shop: profit by nation": (
        "n STRING, d INT, p BIGINT",
        "SELECT n, d, SUM(a) FROM (SELECT n.n, o.placed / 30 AS d, l.price * (100 - l.off) - ps.cost * l.qty AS a "
        "FROM part AS p, supplier AS s, lineitem AS l, partsupp AS ps, orders AS o, nation AS n "
        "WHERE s.sk = l.sk AND ps.sk = l.sk AND ps.pk = l.pk AND p.pk = l.pk AND o.ok = l.ok AND s.nk = n.nk AND p.name LIKE '%green%') AS t GROUP BY n, d",
    ),
    "shop: important stock": (
        "pk BIGINT, v BIGINT",
        "SELECT ps.pk, SUM(ps.cost * ps.qty) FROM partsupp AS ps, supplier AS s, nation AS n WHERE ps.sk = s.sk AND s.nk = n.nk AND n.n = 'FRANCE' "
        "GROUP BY ps.pk HAVING SUM(ps.cost * ps.qty) * 4 > (SELECT SUM(x.cost * x.qty) FROM partsupp AS x, supplier AS y, nation AS z "
        "WHERE x.sk = y.sk AND y.nk = z.nk AND z.n = 'FRANCE')",
    ),
    "shop: modes of shipping": (
        "m STRING, high INT, low INT",
        "SELECT l.mode, SUM(CASE WHEN o.urgency = '1-URGENT' OR o.urgency = '2-HIGH' THEN 1 ELSE 0 END), "
        "SUM(CASE WHEN o.urgency <> '1-URGENT' AND o.urgency <> '2-HIGH' THEN 1 ELSE 0 END) FROM orders AS o, lineitem AS l "
        "WHERE o.ok = l.ok AND l.mode IN ('MAIL', 'SHIP') AND l.due < l.received AND l.shipped < l.due GROUP BY l.mode",
    ),
    "shop: customers by orders": (
        "c BIGINT, n BIGINT",
        "SELECT c, COUNT(*) FROM (SELECT customer.ck, COUNT(orders.ok) AS c FROM customer LEFT OUTER JOIN orders "
        "ON customer.ck = orders.ck AND orders.remark NOT LIKE '%special%requests%' GROUP BY customer.ck) AS t GROUP BY c",
    ),
    "shop: promotion": (
        "a BIGINT, b BIGINT",
        "SELECT SUM(CASE WHEN p.kind LIKE 'PROMO%' THEN l.price * (100 - l.off) ELSE 0 END), SUM(l.price * (100 - l.off)) "
        "FROM lineitem AS l, part AS p WHERE l.pk = p.pk AND l.shipped BETWEEN 110 AND 140",
    ),
    "shop: top supplier": (
        "sk BIGINT, t BIGINT",
        "WITH revenue AS (SELECT sk AS s, SUM(price * (100 - off)) AS t FROM lineitem WHERE shipped > 120 GROUP BY sk) "
        "SELECT supplier.sk, revenue.t FROM supplier, revenue WHERE supplier.sk = revenue.s AND revenue.t = (SELECT MAX(t) FROM revenue)",
    ),
    "shop: suppliers without complaints": (
        "b STRING, n BIGINT",
        "SELECT p.brand, COUNT(DISTINCT ps.sk) FROM partsupp AS ps, part AS p WHERE p.pk = ps.pk AND p.kind NOT LIKE 'SMALL X%' "
        "AND p.size IN (1, 2, 3, 5) AND ps.sk NOT IN (SELECT sk FROM supplier WHERE remark LIKE '%complaints%') GROUP BY p.brand",
    ),
    "shop: small orders of a part": (
        "p BIGINT",
        "SELECT SUM(l.price) FROM lineitem AS l, part AS p WHERE p.pk = l.pk AND p.brand = 'b1' "
        "AND l.qty < (SELECT AVG(x.qty) - 5 FROM lineitem AS x WHERE x.pk = p.pk)",
    ),
    "shop: large orders": (
        "n STRING, ok BIGINT, q INT",
        "SELECT c.name, o.ok, SUM(l.qty) FROM customer AS c, orders AS o, lineitem AS l WHERE o.ok IN "
        "(SELECT ok FROM lineitem GROUP BY ok HAVING SUM(qty) > 60) AND c.ck = o.ck AND o.ok = l.ok GROUP BY c.name, o.ok",
    ),
    "shop: alternatives with a common key": (
        "r BIGINT",
        "SELECT SUM(l.price * (100 - l.off)) FROM lineitem AS l, part AS p WHERE "
        "(p.pk = l.pk AND p.brand = 'b0' AND l.qty BETWEEN 1 AND 25 AND l.mode IN ('AIR', 'SHIP')) OR "
        "(p.pk = l.pk AND p.brand = 'b1' AND l.qty > 20 AND p.size < 6)",
    ),
    "shop: suppliers with stock": (
        "n STRING",
        "SELECT s.name FROM supplier AS s, nation AS n WHERE s.sk IN (SELECT ps.sk FROM partsupp AS ps WHERE ps.pk IN "
        "(SELECT pk FROM part WHERE name LIKE 'forest%') AND ps.qty * 2 > (SELECT SUM(l.qty) FROM lineitem AS l "
        "WHERE l.pk = ps.pk AND l.sk = ps.sk)) AND s.nk = n.nk AND n.n <> 'CHINA'",
    ),
    "shop: suppliers who kept orders waiting": (
        "n STRING, c BIGINT",
        "SELECT s.name, COUNT(*) FROM supplier AS s, lineitem AS l1, orders AS o, nation AS n WHERE s.sk = l1.sk AND o.ok = l1.ok "
        "AND o.status = 'F' AND l1.received > l1.due AND EXISTS (SELECT * FROM lineitem AS l2 WHERE l2.ok = l1.ok AND l2.sk <> l1.sk) "
        "AND NOT EXISTS (SELECT * FROM lineitem AS l3 WHERE l3.ok = l1.ok AND l3.sk <> l1.sk AND l3.received > l3.due + 10) "
        "AND s.nk = n.nk AND n.n <> 'CHINA' GROUP BY s.name",
    ),
    "shop: customers without orders": (
        "p STRING, n BIGINT, b BIGINT",
        "SELECT segment, COUNT(*), SUM(bal) FROM customer WHERE phone LIKE '_3-%' AND bal > "
        "(SELECT AVG(bal) FROM customer WHERE bal > 0) AND NOT EXISTS (SELECT * FROM orders WHERE orders.ck = customer.ck AND orders.placed > 130) GROUP BY segment",
    ),
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

# What Flink's streams give as NULL and its batch jobs, as standard SQL, as 0: a COUNT of no rows, in the last column.
NULL_FOR_ZERO: dict[str, Program] = {
    "a count with having": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT COUNT(w) FROM c WHERE c.k = o.k HAVING COUNT(*) < 9) FROM o",
    ),
    "a count of nothing": ("id BIGINT, m BIGINT", "SELECT id, (SELECT COUNT(*) FROM c WHERE w > 99) FROM o"),
    "a count of nothing with having": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT COUNT(*) FROM c WHERE w > 99 HAVING COUNT(*) = 0) FROM o",
    ),
    "a count of nothing beside having": (
        "k BIGINT, m BIGINT",
        "SELECT k, (SELECT COUNT(*) FROM c WHERE w > 99) FROM o GROUP BY k HAVING COUNT(*) > 1",
    ),
    "a sum of nothing and a count": (
        "id BIGINT, m BIGINT",
        "SELECT id, (SELECT COALESCE(SUM(w), 0) + COUNT(*) FROM c WHERE w > 99) FROM o",
    ),
}

# Programs with hints or a configured TTL: the states that Flink's compiled plan gives them are recorded, too.
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
CONFIGURED_TTL = "36 h"

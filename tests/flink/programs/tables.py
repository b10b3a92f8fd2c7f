"""The tables that the programs read: columns, rows with their kinds, keys and event times."""

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

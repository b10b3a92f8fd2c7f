"""Messages of Protobuf in its text form, and rows as SQL, of which recorded answers of Flink are in protobuf.json."""

from __future__ import annotations

COLUMNS = {
    "b": "BOOLEAN", "i": "INT", "l": "BIGINT", "u": "INT", "v": "BIGINT", "f": "FLOAT", "d": "DOUBLE", "s": "STRING",
    "y": "BYTES", "e": "STRING", "item": "ROW<sku STRING, pieces INT>", "numbers": "ARRAY<INT>",
    "texts": "ARRAY<STRING>", "items": "ARRAY<ROW<sku STRING, pieces INT>>", "counts": "MAP<STRING, BIGINT>",
    "by_name": "MAP<STRING, ROW<sku STRING, pieces INT>>", "left_side": "STRING", "right_side": "INT",
    "states": "ARRAY<STRING>", "camelCase": "STRING",
}  # fmt: skip

NUMBERED = {**COLUMNS, "e": "INT", "states": "ARRAY<INT>"}
"""The same table with the numbers of enum values."""

CLASSES = {"orders2.proto": "com.example.shop.Orders2$Order", "orders3.proto": "com.example.shop.Order3"}
"""What Java calls the message of each file."""

MESSAGES = {"orders2.proto": "shop.Order", "orders3.proto": "shop3.Order3"}
"""What the files call it."""

READ = {
    "empty": "",
    "zeros": 'b: false i: 0 l: 0 u: 0 v: 0 f: 0 d: 0 s: "" y: "" e: NEW left_side: "" camelCase: ""',
    "values": 'b: true i: -5 l: -6 u: 7 v: 8 f: 1.5 d: -2.25 s: "h\\303\\251" y: "\\000\\377" e: SENT camelCase: "c"',
    "ends": "i: -2147483648 l: -9223372036854775808 u: 4294967295 v: 18446744073709551615 f: -3.4028235e38 d: 1e300",
    "nested": 'item { sku: "a" pieces: 2 } items { sku: "b" } items { } items { pieces: 3 }',
    "empty message": "item { }",
    "repeated": 'numbers: [1, -1, 0] texts: "x" texts: "" states: PAID states: NEW',
    "maps": 'counts { key: "k" value: 1 } counts { key: "" value: -2 } counts { key: "z" } '
    'by_name { key: "m" value { sku: "q" } } by_name { key: "n" }',
    "left": 'left_side: "l"',
    "right": "right_side: 0",
}
"""Messages in the text form of Protobuf."""

BYTES = {"both": "8a01016c 900103", "unknown enum": "5003 980104", "unknown field": "980605 1001", "cut off": "4205"}
"""Messages without such a text: both fields of a choice, unknown values of an enum, field 99, text that ends early."""

WRITTEN = {
    "nulls": {},
    "zeros": {
        "b": "FALSE", "i": "0", "l": "0", "u": "0", "v": "0", "f": "0", "d": "0", "s": "''", "y": "x''", "e": "'NEW'",
    },
    "values": {
        "b": "TRUE", "i": "-5", "l": "-6", "u": "7", "v": "8", "f": "1.5", "d": "-2.25", "s": "'hé'", "y": "x'00ff'",
        "e": "'SENT'", "camelCase": "'c'",
    },
    "ends": {"i": "-2147483648", "l": "-9223372036854775807", "u": "-1", "v": "-1"},
    "nested": {
        "item": "ROW('a', 2)",
        "items": "ARRAY[ROW('b', CAST(NULL AS INT)), ROW(CAST(NULL AS STRING), 3)]",
    },
    "row of nulls": {"item": "ROW(CAST(NULL AS STRING), CAST(NULL AS INT))"},
    "repeated": {"numbers": "ARRAY[1, -1, 0]", "texts": "ARRAY['x', '']", "states": "ARRAY['PAID', 'NEW']"},
    "nulls in arrays": {
        "numbers": "ARRAY[1, CAST(NULL AS INT)]", "texts": "ARRAY['x', CAST(NULL AS STRING)]",
        "states": "ARRAY['PAID', CAST(NULL AS STRING)]",
        "items": "ARRAY[ROW('b', 1), CAST(NULL AS ROW<sku STRING, pieces INT>)]",
    },
    "maps": {"counts": "MAP['k', 1]", "by_name": "MAP['m', ROW('q', 1)]"},
    "nulls in maps": {
        "counts": "MAP['k', CAST(NULL AS BIGINT)]",
        "by_name": "MAP['m', CAST(NULL AS ROW<sku STRING, pieces INT>)]",
    },
    "null key": {"counts": "MAP[CAST(NULL AS STRING), CAST(1 AS BIGINT)]"},
    "both": {"left_side": "'l'", "right_side": "3"},
    "right": {"right_side": "0"},
    "unknown enum": {"e": "'LOST'", "states": "ARRAY['LOST']"},
    "enum in lower case": {"e": "'paid'"},
}  # fmt: skip
"""Rows, by their columns that are not NULL, as SQL."""

NUMBERS_WRITTEN = {"numbers of enums": {"e": "5", "states": "ARRAY[1, 0]"}, "unknown number": {"e": "3"}}
"""Rows of ``NUMBERED``."""

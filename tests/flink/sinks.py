"""Columns that are written to sinks of other types: what Flink is asked, and what is asked of the planner."""

from __future__ import annotations

COLUMNS = {
    "s": "STRING",
    "v": "VARCHAR(5)",
    "w": "CHAR(6)",
    "n": "INT",
    "d": "DECIMAL(10, 3)",
    "b": "DOUBLE",
    "t": "TIMESTAMP(6)",
    "z": "TIMESTAMP_LTZ(6)",
    "x": "BYTES",
    "y": "VARBINARY(5)",
    "q": "BINARY(3)",
}
ZONE = "America/New_York"

# Text and octets, in base64, that are longer and shorter than they are declared, as files may have them.
ROWS = [
    {"s": "abcdef", "v": "ab", "w": "abcdef", "n": 7, "d": 1.239, "b": 5.125, "t": "2020-01-01 00:00:00.123456",
     "z": "2020-07-01 03:00:00.123956Z", "x": "AP9hYmNkZQ==", "y": "/wA=", "q": "AQID"},
    {"s": "x", "v": "abcdefg", "w": "y", "n": 700, "d": 99.996, "b": 0.5, "t": "2020-02-03 10:20:30.9996",
     "z": "1990-01-01 00:00:00.9999Z", "x": "", "y": "YWJjZGVmZw==", "q": "gA=="},
]  # fmt: skip

ENFORCERS = ("IGNORE", "TRIM_PAD")

CASES: list[tuple[str, str]] = [
    *((column, kind) for column in "svw" for kind in ("VARCHAR(3)", "VARCHAR(5)", "VARCHAR(9)", "STRING")),
    *((column, kind) for column in "svw" for kind in ("CHAR(3)", "CHAR(6)", "CHAR(9)")),
    *(("n", kind) for kind in ("SMALLINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(4, 2)", "DECIMAL(12, 2)", "STRING")),
    *(("d", kind) for kind in ("INT", "FLOAT", "DOUBLE", "DECIMAL(12, 2)", "DECIMAL(3, 1)", "DECIMAL(4, 2)", "STRING")),
    *(("b", kind) for kind in ("BIGINT", "FLOAT", "DECIMAL(10, 2)", "DECIMAL(3, 3)", "STRING")),
    *(
        ("t", kind)
        for kind in ("DATE", "STRING", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)")
    ),
    *(("z", kind) for kind in ("TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(0)", "TIMESTAMP_LTZ(3)")),
    *(("z", kind) for kind in ("DATE", "STRING")),
    *(("x", kind) for kind in ("VARBINARY(2)", "VARBINARY(9)", "BINARY(3)", "STRING")),
    *(("y", kind) for kind in ("VARBINARY(2)", "VARBINARY(5)", "VARBINARY(9)", "BYTES", "BINARY(5)")),
    *(("q", kind) for kind in ("VARBINARY(2)", "VARBINARY(3)", "BYTES", "BINARY(2)", "BINARY(3)", "BINARY(5)")),
    ("s", "VARBINARY(9)"),
    ("s", "INT"),
    ("s", "BOOLEAN"),
    ("n", "BOOLEAN"),
]
"""A column, and the type of the sink's column that it is written to."""

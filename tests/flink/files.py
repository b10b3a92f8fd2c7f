"""What is asked of Flink about files: the names of partitions, and files of every format."""

from __future__ import annotations

PARTITIONS: dict[str, tuple[str, ...]] = {
    "STRING": ("'a'", "'a b/c=d:e%é+'", "''", "' '", "NULL"),
    "INT": ("1", "-7", "NULL"),
    "BOOLEAN": ("TRUE", "FALSE"),
    "DATE": ("DATE '2020-01-01'",),
    "TIMESTAMP(6)": (
        "TIMESTAMP '2020-01-01 12:00:00.123456'", "TIMESTAMP '2020-01-01 12:00:00.123'",
        "TIMESTAMP '2020-01-01 12:00:00'", "TIMESTAMP '2020-01-01 12:00:07'",
    ),
    "DOUBLE": ("1.5", "1e20"),
    "BIGINT": ("5000000000",),
}  # fmt: skip
"""Values of partition columns by type, as SQL says them."""

TYPES = {
    "b": ("BOOLEAN", "TRUE"),
    "ti": ("TINYINT", "CAST(-7 AS TINYINT)"),
    "si": ("SMALLINT", "CAST(300 AS SMALLINT)"),
    "i": ("INT", "70000"),
    "bi": ("BIGINT", "CAST(5000000000 AS BIGINT)"),
    "f": ("FLOAT", "CAST(1.5 AS FLOAT)"),
    "d": ("DOUBLE", "CAST(2.25 AS DOUBLE)"),
    "dc": ("DECIMAL(10, 2)", "CAST(-1.25 AS DECIMAL(10, 2))"),
    "dt": ("DATE", "DATE '2020-02-29'"),
    "ts": ("TIMESTAMP(3)", "CAST(TIMESTAMP '2020-03-08 02:30:00.123' AS TIMESTAMP(3))"),
    "s": ("STRING", "'é'"),
    "bs": ("BYTES", "X'00ff'"),
    "ar": ("ARRAY<INT>", "ARRAY[1, 2]"),
    "mp": ("MAP<STRING, INT>", "MAP['k', 1]"),
    "rw": ("ROW<x INT, y STRING>", "ROW(1, 'y')"),
}
"""The columns of the files, each with a value."""

FORMATS = ("parquet", "orc", "avro", "json")

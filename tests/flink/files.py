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

OVERWRITTEN = "v INT, p INT, r STRING"
"""The columns of tables that are overwritten."""

OVERWRITES: dict[str, tuple[str, str, str]] = {
    "all rows": ("", "", "SELECT v, p, r FROM n"),
    "all rows by none": ("", "", "SELECT v, p, r FROM n WHERE v < 0"),
    "partitions of the rows": ("p", "", "SELECT v, p, r FROM n"),
    "partitions of no rows": ("p", "", "SELECT v, p, r FROM n WHERE v < 0"),
    "one partition": ("p", "PARTITION (p = 1)", "SELECT v, r FROM n"),
    "one partition by no rows": ("p", "PARTITION (p = 1)", "SELECT v, r FROM n WHERE v < 0"),
    "a partition that is new": ("p", "PARTITION (p = 9)", "SELECT v, r FROM n"),
    "the partitions of two columns": ("p, r", "", "SELECT v, p, r FROM n"),
    "some below a partition": ("p, r", "PARTITION (p = 1)", "SELECT v, r FROM n"),
    "none below a partition": ("p, r", "PARTITION (p = 1)", "SELECT v, r FROM n WHERE v < 0"),
    "one of two columns": ("p, r", "PARTITION (p = 1, r = 'a')", "SELECT v FROM n"),
    "one of two columns by no rows": ("p, r", "PARTITION (p = 1, r = 'a')", "SELECT v FROM n WHERE v < 0"),
    "the last column": ("p, r", "PARTITION (r = 'a')", "SELECT v, p FROM n"),
    "named columns": ("p", "", "(p, v) SELECT p, v FROM n"),
    "the table itself": ("p", "", "SELECT v + 100, p, r FROM t WHERE p = 1"),
}
"""INSERT OVERWRITE by name: PARTITIONED BY of the table, PARTITION, and the query."""

BEFORE = "(1, 1, 'a'), (2, 1, 'b'), (3, 2, 'a'), (4, 3, 'c')"
NEW = "(11, 1, 'a'), (12, 2, 'z'), (13, 2, 'a')"
"""The rows of the table before, and of the source ``n``."""

REFUSED_OVERWRITES = {
    "in a stream": ("streaming", "'connector' = 'filesystem', 'path' = '{}', 'format' = 'json'"),
    "blackhole": ("batch", "'connector' = 'blackhole'"),
    "print": ("batch", "'connector' = 'print'"),
}

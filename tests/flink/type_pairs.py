"""Types that meet in INSERT, UNION ALL and CASE: what Flink is asked, and what is asked of the planner."""

from __future__ import annotations

TYPES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(38, 0)",
    "DECIMAL(5, 5)", "CHAR(3)", "VARCHAR(5)", "STRING", "BINARY(3)", "VARBINARY(5)", "BYTES", "DATE", "TIMESTAMP(3)",
    "TIMESTAMP(6)", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)", "ARRAY<INT>", "ARRAY<STRING>", "MAP<STRING, INT>",
    "MAP<STRING, BIGINT>", "ROW<a INT>", "ROW<a BIGINT>",
)  # fmt: skip
COLUMNS = ", ".join(f"c{place} {kind}" for place, kind in enumerate(TYPES))

UNION = "union"
CASE = "case"
COALESCE = "coalesce"
INSERT = "insert"
QUERIES = {
    UNION: "SELECT c{one} AS x FROM o UNION ALL SELECT c{other} FROM o",
    CASE: "SELECT CASE WHEN c0 THEN c{one} ELSE c{other} END AS x FROM o",
    COALESCE: "SELECT COALESCE(c{one}, c{other}) AS x FROM o",
}
"""Queries of two columns of the table ``o``, with the column ``x``."""

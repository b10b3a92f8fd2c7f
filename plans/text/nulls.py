"""The message for a row that breaks a NOT NULL constraint, and what its author can do.

>>> null_message("paid", "id")
"table paid: column 'id' is NOT NULL, and a row has NULL in it"
>>> broken_constraint("RunError: table paid: column 'id' is NOT NULL, and a row has NULL in it")[0]
"table paid: column 'id' is NOT NULL, and a row has NULL in it"
"""

from __future__ import annotations

import re


def null_message(table: str, column: str) -> str:
    """Return the message for a row that has NULL in a column of ``table`` that is NOT NULL."""
    return f"table {table}: column '{column}' is NOT NULL, and a row has NULL in it"


def null_hint(column: str) -> str:
    """Return the ways to keep NULL out of ``column``."""
    return (
        f"write a value with COALESCE, or leave such rows out: WHERE {column} IS NOT NULL, or, as in Flink, "
        "SET 'table.exec.sink.not-null-enforcer' = 'DROP'"
    )


def broken_constraint(text: str) -> tuple[str, str] | None:
    """Return the first message of :func:`null_message` in what Spark reports, with its hint; None without one."""
    match = re.search(null_message(r"[^\n]+?", r"([^\n]+?)"), text)
    return None if match is None else (match[0], null_hint(match[1]))

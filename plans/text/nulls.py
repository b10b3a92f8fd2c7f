"""The message for a row that breaks a NOT NULL constraint, and what its author can do.

>>> null_message("paid", "id")
"table paid: column 'id' is NOT NULL, and a row has NULL in it"
>>> broken_constraint("RunError: " + null_message("paid", "id"))[0]
"table paid: column 'id' is NOT NULL, and a row has NULL in it"
"""

from __future__ import annotations

import re

_TEXT = r"[^\n]+?"
_RAISED = r"(?:\[USER_RAISED_EXCEPTION\] |\bRunError: (?:tables\.\S+: )?)"
"""The start of the error in Spark, and in a Python worker."""


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
    """Return the message of :func:`null_message` that ended a query, with its hint; None if another error did.

    The message alone is no proof: Spark prints the plan of a query that failed, and the plan contains the message.
    """
    match = re.search(_RAISED + f"({null_message(_TEXT, f'({_TEXT})')})", text)
    return None if match is None else (match[1], null_hint(match[2]))

"""The messages for rows with NULL in a column that must have a value, and what their author can do.

>>> null_message("paid", "id")
"table paid: column 'id' is NOT NULL, and a row has NULL in it"
>>> broken_constraint("RunError: " + null_message("paid", "id"))[0]
"table paid: column 'id' is NOT NULL, and a row has NULL in it"
>>> broken_constraint("RunError: " + rowtime_message("watermark_bid", "ts"))[0]
"operator watermark_bid: 'ts' is the rowtime, and a row has NULL in it"
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


def rowtime_message(operator: str, column: str) -> str:
    """Return the message for a row that has NULL in the rowtime of a watermark assigner."""
    return f"operator {operator}: '{column}' is the rowtime, and a row has NULL in it"


def rowtime_hint(column: str) -> str:
    """Return the way to give a time to each row."""
    return (
        f"declare a computed column with a value for such rows, as in ts AS COALESCE({column}, TIMESTAMP '1970-01-01 "
        "00:00:00'), and the watermark for it"
    )


def broken_constraint(text: str) -> tuple[str, str] | None:
    """Return the message about a NULL that ended a query, with its hint; None if another error did.

    The message alone is no proof: Spark prints the plan of a query that failed, and the plan contains the message.
    """
    for message, hint in ((null_message, null_hint), (rowtime_message, rowtime_hint)):
        match = re.search(_RAISED + f"({message(_TEXT, f'({_TEXT})')})", text)
        if match is not None:
            return match[1], hint(match[2])
    return None

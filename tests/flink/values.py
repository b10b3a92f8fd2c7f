"""Rows of results as JSON can hold them, spelled alike for Flink's and for ours. Knows neither Flink nor Spark.

>>> [plain(v) for v in (None, True, 7, 2.5, float("nan"), "a")]
[None, True, 7, '2.5', 'nan', 'a']
>>> plain([1, None]), plain({"k": None})
('[1, NULL]', '{k=NULL}')
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any


def plain(value: Any) -> Any:
    """``value`` as JSON: numbers that are not whole as text, so that no digit is lost on the way."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dict | frozenset):  # as Flink casts a MAP or a MULTISET to text, but in order
        entries = value.items() if isinstance(value, dict) else value
        return "{" + ", ".join(sorted(f"{plain(key)}={_inside(each)}" for key, each in entries)) + "}"
    if isinstance(value, tuple | list):  # as Flink casts an array to text
        return "[" + ", ".join(map(_inside, value)) + "]"
    return value


def _inside(value: Any) -> str:
    return "NULL" if value is None else str(plain(value))


def typed(value: Any, declared: str) -> Any:
    """A value of programs/tables.py as a row has it, whose column is ``declared`` so."""
    if value is None:
        return None
    if declared.startswith("DECIMAL"):
        return Decimal(value)
    return datetime.fromisoformat(value) if declared.startswith("TIMESTAMP") else value

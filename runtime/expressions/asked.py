"""Predicates that are pushed down to a source, and their SQL for databases.

Constants become bound parameters. Each database quotes column names in its own way.

>>> asked = Junction(operator="OR", parts=(Comparison(column="k", operator="IN", values=(7, 9)),
...     Comparison(column="s", operator="IS NULL")))
>>> asked_sql(asked, lambda name: name)
('(k IN (%s, %s)) OR (s IS NULL)', (7, 9))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``column`` compared with ``values`` by one of ``= <> < <= > >= BETWEEN IN IS NULL IS NOT NULL``."""

    column: str
    operator: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Junction:
    """A conjunction (``AND``) or disjunction (``OR``) of ``parts``."""

    operator: str
    parts: tuple[Asked, ...]


Asked = Comparison | Junction


def asked_sql(asked: Asked, column: Callable[[str], str]) -> tuple[str, tuple[Any, ...]]:
    """Return the predicate in SQL with ``%s`` for each value, and the values; ``column`` quotes a column name."""
    if isinstance(asked, Junction):
        parts = [asked_sql(part, column) for part in asked.parts]
        text = f" {asked.operator} ".join(f"({sql})" for sql, _ in parts)
        return text, tuple(value for _, values in parts for value in values)
    written = f"{column(asked.column)} {asked.operator}"
    if asked.operator == "BETWEEN":
        return f"{written} %s AND %s", asked.values
    if asked.operator == "IN":
        return f"{written} ({', '.join(['%s'] * len(asked.values))})", asked.values
    return (f"{written} %s" if asked.values else written), asked.values

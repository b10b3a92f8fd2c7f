"""Predicates that are pushed down to a source, and their SQL for databases.

Constants become bound parameters. Each database quotes column names in its own way.

>>> condition = Junction(operator="OR", parts=(Comparison(column="k", operator="IN", values=(7, 9)),
...     Comparison(column="s", operator="IS NULL")))
>>> pushed_filter_sql(condition, lambda name: name)
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
    parts: tuple[PushedFilter, ...]


PushedFilter = Comparison | Junction


def pushed_filter_sql(condition: PushedFilter, column: Callable[[str], str]) -> tuple[str, tuple[Any, ...]]:
    """Return the predicate in SQL with ``%s`` for each value, and the values; ``column`` quotes a column name."""
    if isinstance(condition, Junction):
        parts = [pushed_filter_sql(part, column) for part in condition.parts]
        text = f" {condition.operator} ".join(f"({sql})" for sql, _ in parts)
        return text, tuple(value for _, values in parts for value in values)
    written = f"{column(condition.column)} {condition.operator}"
    if condition.operator == "BETWEEN":
        return f"{written} %s AND %s", condition.values
    if condition.operator == "IN":
        return f"{written} ({', '.join(['%s'] * len(condition.values))})", condition.values
    return (f"{written} %s" if condition.values else written), condition.values

"""Patterns that convert a lookup key to an address: ``rates:{code}``, ``https://rates.example.com/v1/{code}``.

Braces contain a column of the table; ``{{`` and ``}}`` are literal braces. This module treats ``${env:NAME}`` as text,
which the run resolves.

>>> parse_pattern("rates:{base}:{code}")
(Text(text='rates:'), Slot(column='base'), Text(text=':'), Slot(column='code'))
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

_PART = re.compile(
    r"(?P<env>\$\{env:[A-Za-z_][A-Za-z0-9_]*\})|(?P<brace>\{\{|\}\})|\{(?P<column>[^{}]+)\}|(?P<text>[^{}$]+|\$)"
)


@dataclass(frozen=True, slots=True)
class Text:
    """Literal text of a pattern."""

    text: str


@dataclass(frozen=True, slots=True)
class Slot:
    """A placeholder for the value of a key column."""

    column: str


def parse_pattern(pattern: str) -> tuple[Text | Slot, ...]:
    """Return the parts of a pattern in order. Raise ValueError for an unmatched brace."""
    parts: list[Text | Slot] = []
    position = 0
    while position < len(pattern):
        match = _PART.match(pattern, position)
        if match is None:
            raise ValueError("a brace has no partner; a brace that is meant as such is written twice")
        if match["column"] is not None:
            parts.append(Slot(match["column"]))
        else:
            text = match["brace"][0] if match["brace"] else match[0]
            if parts and isinstance(parts[-1], Text):
                parts[-1] = Text(parts[-1].text + text)
            else:
                parts.append(Text(text))
        position = match.end()
    return tuple(parts)


def pattern_columns(pattern: str) -> tuple[str, ...]:
    """Return each column of the pattern once, in order of appearance. Raise ValueError like :func:`parse_pattern`."""
    return tuple(dict.fromkeys(part.column for part in parse_pattern(pattern) if isinstance(part, Slot)))


def check_pattern(path: str, name: str, pattern: str, table: Table) -> Iterator[Diagnostic]:
    """Yield the problems of option ``name`` of ``table``. ``path`` is the path of the table's options."""
    example = next((column.name for column in table.columns if column.is_physical), "column")
    try:
        columns = pattern_columns(pattern)
    except ValueError as error:
        yield Diagnostic(message=f"{name!r}: {error}", hint=f"write, for example, {{{example}}}", path=f"{path}.{name}")
        return
    physical = [column.name for column in table.columns if column.is_physical]
    if not columns:
        yield Diagnostic(
            message=f"{name!r} has no column in braces, so every key would find the same",
            hint=f"put the key column where it belongs, as {{{example}}}",
            path=f"{path}.{name}",
        )
    for column in columns:
        if column not in physical:
            yield Diagnostic(
                message=f"{name!r} refers to {{{column}}}, but the table has no such column",
                hint=f"its columns are {', '.join(physical)}",
                path=f"{path}.{name}",
            )

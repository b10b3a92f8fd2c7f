"""Checks of the columns of a table in a data lake: column names, primary key, and partition columns."""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.connectors.columns import NESTED, physical
from hintplan.plans.declarations.tables import Table
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import Diagnostic

_DIVIDE = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "CHAR", "VARCHAR", "STRING", "DATE")
_UNNAMED = " ,;{}()\n\t=`"


def check_columns(path: str, table: Table) -> Iterator[Diagnostic]:
    """Yield the problems of column names, primary key and partitions, with paths below ``path``."""
    types = {column.name: _root(column.type) for column in physical(table)}
    for name in types:
        if any(character in _UNNAMED for character in name) or not name:
            yield Diagnostic(
                message=f"column {name!r} has a name with one of {_UNNAMED!r}, which such a table cannot have",
                hint="rename the column",
                path=f"{path}.connector",
            )
    yield from _check_key(path, table, types)
    partitions_path = f"{path.removesuffix('.options')}.partitioned-by"
    for name in table.partitioned_by:
        if types.get(name, _DIVIDE[0]) not in _DIVIDE:
            yield Diagnostic(
                message=f"partition column {name!r} is of type {types[name]}, which cannot partition such a table here",
                hint=f"divide the table by columns of {', '.join(_DIVIDE)}",
                path=partitions_path,
            )
    if types and set(types) <= set(table.partitioned_by):
        yield Diagnostic(
            message="all columns are of the partitions, so that files would have none",
            hint="leave one out of PARTITIONED BY",
            path=partitions_path,
        )


def _check_key(path: str, table: Table, types: dict[str, str]) -> Iterator[Diagnostic]:
    for name in table.primary_key:
        if name not in types:
            yield Diagnostic(
                message=f"the primary key column {name!r} is computed, so it is not in the table",
                hint="use physical columns in PRIMARY KEY",
                path=f"{path}.connector",
            )
        elif types[name] in NESTED:
            yield Diagnostic(
                message=f"the primary key column {name!r} is of type {types[name]}, by which rows are not found",
                hint="use columns of plain types in PRIMARY KEY",
                path=f"{path}.connector",
            )


def _root(type_text: str) -> str:
    try:
        return parse_type(type_text).root
    except ValueError:
        return ""  # The column's own check reports a wrong type.

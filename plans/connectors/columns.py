"""Checks of a table's columns that connectors share: physical columns, and types that a format cannot hold."""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import Diagnostic

NESTED = ("ARRAY", "MAP", "MULTISET", "ROW")
BINARY = ("BYTES", "BINARY", "VARBINARY")
_MILLIS = 3


def physical(table: Table) -> tuple[TableColumn, ...]:
    """Return the physical columns: neither computed columns nor METADATA columns."""
    return tuple(column for column in table.columns if column.is_physical)


def refuse_types(path: str, table: Table, roots: tuple[str, ...], message: str, hint: str) -> Iterator[Diagnostic]:
    """Yield a problem for each physical column whose type is one of ``roots``."""
    for column in physical(table):
        try:
            root = parse_type(column.type).root
        except ValueError:
            continue  # The column's own check reports a wrong type.
        if root in roots:
            yield Diagnostic(
                message=f"{message} column {column.name!r} of type {column.type}", hint=hint, path=f"{path}.connector"
            )


def with_other_keys(data_type: DataType) -> str:
    """Return MAP or MULTISET if ``data_type`` contains one whose keys are not text, else an empty text."""
    if data_type.has_entries and not data_type.parts[0].is_text:
        return data_type.root
    return next(filter(None, map(with_other_keys, data_type.children)), "")


def avro_misfit(data_type: DataType) -> str:
    """Return the part of a type that Avro's legacy timestamp mapping cannot hold, else an empty text."""
    if data_type.root == "TIMESTAMP_LTZ" or (data_type.root == "TIMESTAMP" and (data_type.precision or 0) > _MILLIS):
        return str(data_type.as_nullable())
    return next(filter(None, map(avro_misfit, data_type.children)), "")

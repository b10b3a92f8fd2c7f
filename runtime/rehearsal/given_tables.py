"""Rows of a test as tables of Arrow, checked against the columns of their table.

given_table(rows, "orders", columns, zone="UTC", changelog=False)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa

from hintplan.plans.declarations.row_kinds import ALL_KINDS, RowKind
from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.rehearsal.suite import OP, GivenRow, GivenRows
from hintplan.plans.rehearsal.yaml_nodes import Place
from hintplan.plans.text.names import did_you_mean
from hintplan.runtime.operator import KIND
from hintplan.runtime.rehearsal.values import value_of
from hintplan.runtime.types import to_arrow


def given_table(
    given: GivenRows,
    columns: Sequence[Column],
    *,
    zone: str,
    kinds: Collection[RowKind] = (),
    required: Collection[str] = (),
) -> pa.Table:
    """Return the rows with ``columns``; a column that a row leaves out is NULL.

    With ``kinds``, rows are changes: ``op`` is the row kind, ``+I`` if absent, in the column ``KIND``. ``required``
    columns must not be NULL, except in a deletion, which may have the key only. PlanError at the value for any mistake.
    """
    names = [column.name for column in columns]
    changes = OP not in names and bool(kinds)
    for row in given.rows:
        if not row.may_have_more:
            _refuse_unknown(row, given.table, [*names, OP] if changes else names)
    kind_of = [_kind(row, given.table, kinds) if changes else "+I" for row in given.rows]
    arrays = []
    for column in columns:
        kind = parse_type(column.type)
        values = [
            _value(row, column, lambda value, kind=kind: value_of(value, kind, zone))  # type: ignore[misc]
            for row in given.rows
        ]
        for row, value, op in zip(given.rows, values, kind_of, strict=True):
            if value is None and column.name in required and op != "-D":
                message = f"column '{column.name}' of '{given.table}' is NOT NULL, and the row has no value in it"
                raise _error(row.place, message, f"add {column.name}:")
        arrays.append(pa.array(values, to_arrow(column.type)))
    table = pa.table(arrays, pa.schema([(column.name, to_arrow(column.type)) for column in columns]))
    if not kinds:
        return table
    return table.append_column(pa.field(KIND, pa.int8()), pa.array([ALL_KINDS.index(op) for op in kind_of], pa.int8()))


def _refuse_unknown(row: GivenRow, table: str, names: Sequence[str]) -> None:
    for name in row.cells:
        if name not in names:
            place = row.keys.get(name) or row.place
            if name == OP:
                message = f"'{table}' only adds rows, so a row has no op"
                raise _error(place, message, "remove it, or declare the table with a changelog")
            message = f"there is no column '{name}' in '{table}'"
            raise _error(place, message, did_you_mean(name, names, what="columns"))


def _kind(row: GivenRow, table: str, kinds: Collection[RowKind]) -> RowKind:
    if OP not in row.cells:
        return "+I"
    value = row.cells[OP].value
    for kind in kinds:
        if value == kind:
            return kind
    shown = ", ".join(kind for kind in ALL_KINDS if kind in kinds)
    raise row.cells[OP].error(f"'{value}' is no row kind of '{table}'", f"row kinds: {shown}")


def _value(row: GivenRow, column: Column, convert: Callable[[Any], Any]) -> Any:
    cell = row.cells.get(column.name)
    if cell is None:
        return None
    try:
        return convert(cell.value)
    except ValueError as error:
        message, _, hint = str(error).partition(": ")
        text = f"column '{column.name}': {message}"
        raise cell.error(text, hint or f"the column is {column.type}") from error


def _error(place: Place | None, message: str, hint: str) -> PlanError:
    if place is not None:
        return place.error(message, hint)
    return PlanError(diagnostics=(Diagnostic(message=message, hint=hint),))

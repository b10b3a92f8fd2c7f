"""Arguments out of Arrow columns, and what a function returned for them back in Arrow, checked against its declaration.

The result ``ROW<...>`` of a table function has a column per field, and a row has a value for every field: as a tuple or
list in their order, or as a dict by their names. Any other result is one column, and a row is its value. The errors
name the call, the row and the declared type.

>>> declared = returned_rows("ROW<word STRING, length INT>", "table", ("w", "n"))
>>> [str(field.type) for field in declared.schema], declared.wrapped
(['string', 'int32'], False)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.tables import FunctionKind
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.functions.failures import shown
from hintplan.runtime.kernels.found_rows import KeyedRows
from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.types import to_arrow
from hintplan.runtime.worker.values import MISFITS, Fit, fit, row_values

Arguments = tuple[Any, ...]
_MISMATCH = (pa.ArrowException, *MISFITS)
_NOT_ROWS = (str, bytes, Mapping)


def argument_rows(table: pa.Table, names: Sequence[str]) -> list[Arguments]:
    """The arguments of each row's call, as Python values; a MAP is a dict, NULL is None."""
    if not names:
        return [()] * table.num_rows
    return list(zip(*(table[name].to_pylist(maps_as_pydicts="strict") for name in names), strict=True))


def listed(found: Any, where: Callable[[], str]) -> list[Any]:
    """What ``eval`` of a table function returned, as a list; RunError if it cannot be rows. None is no rows."""
    if isinstance(found, list):
        return found
    if found is None:
        return []
    if isinstance(found, _NOT_ROWS):
        raise RunError(
            f"{where()} returned {shown(found)}, which is one value, where any number of rows is expected",
            hint="return a list of rows, or yield each row",
        )
    try:
        rows = iter(found)
    except TypeError as error:
        raise RunError(
            f"{where()} returned {shown(found)}, which is no rows", hint="return a list of rows, or yield each row"
        ) from error
    return list(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedRows:
    """What a function declares to return: the Arrow ``schema`` of its columns and their ``types`` as declared.

    ``columns`` are their names in the plan. ``wrapped`` says that a row is the value of the only column.
    """

    declared: str
    schema: pa.Schema
    types: tuple[str, ...]
    fits: tuple[Fit, ...]
    columns: tuple[str, ...]
    wrapped: bool

    @property
    def table_schema(self) -> pa.Schema:
        """The columns of the tables that :meth:`arrow` makes."""
        return pa.schema([(name, field.type) for name, field in zip(self.columns, self.schema, strict=True)])

    def arrow(self, found: Sequence[list[Any]], where: Callable[[int], str]) -> KeyedRows:
        """The rows of ``found``, a list for each call; ``where`` names the call by its place in ``found``.

        RunError for a row with too few or too many values, and for a value that its declared type cannot hold.
        """
        count = np.fromiter(map(len, found), np.int64, len(found))
        flat = [row for rows in found for row in rows]
        columns: Sequence[list[Any]]
        if self.wrapped:
            columns = [flat]
        else:
            if not all(type(row) is tuple and len(row) == len(self.schema) for row in flat):
                flat = [self._fields(row, partial(_where, where, count, place)) for place, row in enumerate(flat)]
            columns = [[row[index] for row in flat] for index in range(len(self.schema))]
        arrays = []
        for index, values in enumerate(columns):
            try:
                array = self._array(index, values)
            except _MISMATCH as error:
                place, why = self._mismatch(index, values)
                raise self._wrong(
                    index, values[place], flat[place], _where(where, count, place), why or error
                ) from error
            if array.null_count and not self.schema.field(index).nullable:
                place = values.index(None)
                raise self._wrong(index, None, flat[place], _where(where, count, place), None)
            arrays.append(array)
        return KeyedRows(table=pa.table(arrays, names=list(self.columns)), start=np.cumsum(count) - count, count=count)

    def _fields(self, row: Any, where: Callable[[], str]) -> tuple[Any, ...]:
        try:
            return row_values(row, self.schema.names)
        except (TypeError, ValueError) as error:
            raise RunError(f"{where()} returned the row {shown(row)}, which is no {self.declared}: {error}") from error

    def _array(self, index: int, values: list[Any]) -> pa.Array:
        return pa.array(self.fits[index].column(values), self.schema.field(index).type)

    def _mismatch(self, index: int, values: list[Any]) -> tuple[int, Exception | None]:
        """The place of the first of ``values`` that does not fit, and why."""
        for place, value in enumerate(values):
            try:
                self._array(index, [value])
            except _MISMATCH as error:
                return place, error
        return 0, None

    def _wrong(self, index: int, value: Any, row: Any, where: str, error: BaseException | None) -> RunError:
        why = f": {error}" if error else ""
        if self.wrapped:
            return RunError(f"{where} returned {shown(value)}, which is no {self.types[index]}{why}")
        column = f"{self.schema.names[index]!r} is no {self.types[index]}"
        return RunError(f"{where} returned the row {shown(row)}, whose {column}{why}")


def returned_rows(result: str, kind: FunctionKind, columns: tuple[str, ...]) -> ReturnedRows:
    """What a function of ``kind`` that declares ``result`` returns, in ``columns``; ValueError if that is no type."""
    parsed = parse_type(result)
    wrapped = parsed.root != "ROW" or kind not in ("table", "async-table")
    fields = [("value", parsed)] if wrapped else list(zip(parsed.names, parsed.children, strict=True))
    schema = pa.schema([pa.field(name, to_arrow(str(each)), nullable=each.nullable) for name, each in fields])
    types = tuple(str(each) for _, each in fields)
    return ReturnedRows(
        declared=str(parsed),
        schema=schema,
        types=types,
        fits=tuple(fit(each) for _, each in fields),
        columns=columns,
        wrapped=wrapped,
    )


def _where(where: Callable[[int], str], count: Int64s, place: int) -> str:
    """The call that returned the row at ``place`` of all rows."""
    return where(int(np.searchsorted(np.cumsum(count), place, side="right")))

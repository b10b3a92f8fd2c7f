"""Conversion of function arguments from Arrow, and of returned rows to Arrow, checked against the declared result.

A table function with the result ``ROW<...>`` has a column per field. Each of its rows has a value for every field, as a
tuple or list in their order, or as a dict by their names. Any other result is one column, and a row is its value.
Errors name the call, the row and the declared type.

>>> declared = returned_rows("ROW<word STRING, length INT>", "table", ("w", "n"))
>>> [str(field.type) for field in declared.schema], declared.wrapped
(['string', 'int32'], False)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.tables import FunctionKind
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.functions.call import Arguments, short_text
from hintplan.runtime.kernels.found_rows import KeyedRows
from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.types import to_arrow
from hintplan.runtime.worker.values import MISFITS, Fit, fit, row_values

_MISMATCH = (pa.ArrowException, *MISFITS)


def argument_rows(table: pa.Table, names: Sequence[str]) -> list[Arguments]:
    """Return the arguments of each row's call, as Python values; a MAP is a dict, NULL is None."""
    if not names:
        return [()] * table.num_rows
    return list(zip(*(table[name].to_pylist(maps_as_pydicts="strict") for name in names), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedRows:
    """The declared result of a function: the Arrow ``schema`` of its columns, and their ``types`` as declared.

    ``columns`` are their names in the plan. ``wrapped`` is True if a row is the value of the only column.
    """

    declared: str
    schema: pa.Schema
    types: tuple[str, ...]
    fits: tuple[Fit, ...]
    columns: tuple[str, ...]
    wrapped: bool

    @property
    def table_schema(self) -> pa.Schema:
        """The schema of the tables that :meth:`arrow` returns."""
        return pa.schema([(name, field.type) for name, field in zip(self.columns, self.schema, strict=True)])

    def arrow(self, results: Sequence[list[Any]], where: Callable[[int], str]) -> KeyedRows:
        """Return the rows of ``results``, a list for each call; ``where`` names the call by its place in ``results``.

        RunError for a row with too few or too many values, and for a value that its declared type cannot hold.
        """
        count = np.fromiter(map(len, results), np.int64, len(results))
        flat = [row for rows in results for row in rows]
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

    def _fields(self, row: object, where: Callable[[], str]) -> tuple[Any, ...]:
        try:
            return row_values(row, self.schema.names)
        except (TypeError, ValueError) as error:
            raise RunError(
                f"{where()} returned the row {short_text(row)}, which is no {self.declared}: {error}"
            ) from error

    def _array(self, index: int, values: list[Any]) -> pa.Array:
        return pa.array(self.fits[index].column(values), self.schema.field(index).type)

    def _mismatch(self, index: int, values: list[Any]) -> tuple[int, Exception | None]:
        """Return the place of the first of ``values`` that does not fit, and the error."""
        for place, value in enumerate(values):
            try:
                self._array(index, [value])
            except _MISMATCH as error:
                return place, error
        return 0, None

    def _wrong(self, index: int, value: object, row: object, where: str, error: BaseException | None) -> RunError:
        why = f": {error}" if error else ""
        if self.wrapped:
            return RunError(f"{where} returned {short_text(value)}, which is no {self.types[index]}{why}")
        column = f"{self.schema.names[index]!r} is no {self.types[index]}"
        return RunError(f"{where} returned the row {short_text(row)}, whose {column}{why}")


def returned_rows(result: str, kind: FunctionKind, columns: tuple[str, ...]) -> ReturnedRows:
    """Return the declared result of a function of ``kind`` in ``columns``; ValueError if ``result`` is not a type."""
    parsed = parse_type(result)
    wrapped = parsed.root != "ROW" or kind not in ("table", "async-table")
    fields = [("value", parsed)] if wrapped else list(zip(parsed.names, parsed.children, strict=True))
    schema = pa.schema(
        [pa.field(name, to_arrow(str(field_type)), nullable=field_type.nullable) for name, field_type in fields]
    )
    types = tuple(str(field_type) for _, field_type in fields)
    return ReturnedRows(
        declared=str(parsed),
        schema=schema,
        types=types,
        fits=tuple(fit(field_type) for _, field_type in fields),
        columns=columns,
        wrapped=wrapped,
    )


def _where(where: Callable[[int], str], count: Int64s, place: int) -> str:
    """Return the name of the call that returned the row at ``place`` of all rows."""
    return where(int(np.searchsorted(np.cumsum(count), place, side="right")))

"""Conversion of key columns from Arrow, and of fetched rows back to Arrow: the two ends of the vectorised path.

In between, keys are tuples of Python values, which C loops make once per distinct key of a batch. Fetched rows are not
copied per input row before the single ``take`` that joins them.

>>> codes, keys = distinct_keys([pa.array(["EUR", "USD", "EUR"])])
>>> codes.tolist(), keys
([0, 1, 0], [('EUR',), ('USD',)])
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.tables import Column
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.kernels.found_rows import KeyedRows
from hintplan.runtime.lookup.api import Key, Row
from hintplan.runtime.state.identity import encode_groups
from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.worker.values import MISFITS, fit

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60


def distinct_keys(columns: Sequence[pa.Array]) -> tuple[Int64s, list[Key]]:
    """Return the place of each row's key among the distinct keys, and these keys by first appearance.

    The columns must not have nulls.
    """
    codes, first = encode_groups(columns)
    places = pa.array(first)
    return codes, list(zip(*(_values(column.take(places)) for column in columns), strict=True))


def _values(column: pa.Array) -> list[object]:
    values: list[object]
    if pa.types.is_integer(column.type):
        values = column.to_numpy().tolist()
    else:
        values = column.to_pylist()
    return values


def fitted_rows(
    returned: Mapping[Key, Iterable[Any]], declared: tuple[Column, ...], *, where: str
) -> dict[Key, list[Row]]:
    """Return the rows that a user-defined class ``returned``, converted to the types of the ``declared`` columns.

    Raise RunError for a row of another shape, and for a value that its type cannot hold unchanged
    (:mod:`hintplan.runtime.worker.values`). The error has the key, the row and the declared type.
    """
    kinds = _kinds(declared)
    fitted: dict[Key, list[Row]] = {}
    for key, rows in returned.items():
        fitted[key] = []
        for row in rows:
            if not isinstance(row, tuple | list) or len(row) != len(kinds):
                column_names = ", ".join(column.name for column in declared)
                raise RunError(f"{_said(where, key, row)}, which is no tuple with a value for each of {column_names}")
            values = []
            for value, column, (kind, convert) in zip(row, declared, kinds, strict=True):
                try:
                    values.append(None if value is None and kind.nullable else convert(value))
                except MISFITS as error:
                    row_text = _said(where, key, row)
                    raise RunError(f"{row_text}, whose {column.name!r} is no {kind}: {error}") from error
            fitted[key].append(tuple(values))
    return fitted


def _said(where: str, key: Key, row: object) -> str:
    return f"{where}: the source returned for the key {_short.repr(key)} the row {_short.repr(row)}"


@cache
def _kinds(declared: tuple[Column, ...]) -> list[tuple[DataType, Callable[[Any], Any]]]:
    types = [parse_type(column.type) for column in declared]
    return [(kind, fit(kind).value) for kind in types]


def keyed_rows(returned: Sequence[Iterable[Row]], schema: pa.Schema, *, where: str) -> KeyedRows:
    """Convert the rows of each key to Arrow; ``where`` names the lookup in errors.

    RunError if a row has too few or too many values, or if a column's type cannot hold one of its values.
    """
    lists = [rows if isinstance(rows, list | tuple) else list(rows) for rows in returned]
    flat = [row for rows in lists for row in rows]
    count = np.fromiter(map(len, lists), np.int64, len(lists))
    width = len(schema)
    if any(len(row) != width for row in flat):
        wrong = next(row for row in flat if len(row) != width)
        raise RunError(f"{where}: the source returned a row of {len(wrong)} values, expected {width} ({schema.names})")
    columns = []
    for index, field in enumerate(schema):
        try:
            columns.append(pa.array([row[index] for row in flat], field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise RunError(
                f"{where}: the source returned values for column {field.name!r} that are no {field.type}: {error}"
            ) from error
    return KeyedRows(table=pa.table(columns, schema=schema), start=np.cumsum(count) - count, count=count)


def python_rows(table: pa.Table) -> list[Row]:
    """Return the rows of ``table`` as tuples of Python values."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

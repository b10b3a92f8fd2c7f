"""TUMBLE, HOP and CUMULATE without an aggregate: each row once for each of its windows, as a step in Arrow.

The step knows no watermark and drops no row. SESSION needs state
(:mod:`hintplan.runtime.operators.session_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hintplan.plans.declarations.windows import Window
from hintplan.plans.errors import RunError
from hintplan.plans.text.nulls import rowtime_hint, rowtime_message
from hintplan.runtime.kernels.windows import (
    milliseconds,
    rowtimes,
    slice_ends,
    timestamps,
    wall_clock,
    window_starts,
    windows_of,
)
from hintplan.runtime.state.layout import Int64s

Names = tuple[str | None, str | None, str | None]
"""The names of the columns with start, end and rowtime of a window; None for a column that is not wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsOfRows:
    """A step from rows with the rowtime ``time`` to rows with ``schema``, with windows in the columns ``names``."""

    operator: str
    time: str
    window: Window
    names: Names
    schema: pa.Schema

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return each row once for each of its windows, the earliest window first; RunError for a NULL rowtime."""
        slices = slice_ends(self.window, walls(rows, self.time, self.window.zone, self.operator))
        place, ends = windows_of(self.window, slices)
        rows = rows if len(place) == rows.num_rows else rows.take(pa.array(place))
        columns = window_columns(self.schema, self.names, self.window.zone, window_starts(self.window, ends), ends)
        return pa.table(
            [columns[f.name] if f.name in columns else rows[f.name].cast(f.type) for f in self.schema],
            schema=self.schema,
        )


def walls(rows: pa.Table, time: str, zone: str | None, operator: str) -> Int64s:
    """Return the wall clocks of the rowtime ``time`` in ms; RunError, which names the operator, if one is NULL."""
    if rows[time].null_count:
        raise RunError(rowtime_message(operator, time), hint=rowtime_hint(time))
    return wall_clock(milliseconds(rows[time]), zone)


def window_fields(names: Names, zone: str | None) -> list[pa.Field]:
    """Return the fields of the columns ``names``; the rowtime has a zone if the windows have one."""
    kinds = (pa.timestamp("us"), pa.timestamp("us"), pa.timestamp("us", None if zone is None else "UTC"))
    return [pa.field(name, kind) for name, kind in zip(names, kinds, strict=True) if name is not None]


def window_columns(
    schema: pa.Schema, names: Names, zone: str | None, starts: Int64s, ends: Int64s
) -> dict[str, pa.Array]:
    """Return the columns ``names`` of an output ``schema`` for windows, given by wall clocks in ms."""
    start, end, time = names
    columns: dict[str, pa.Array] = {}
    if start is not None:
        columns[start] = timestamps(starts, schema.field(start).type)
    if end is not None:
        columns[end] = timestamps(ends, schema.field(end).type)
    if time is not None:
        columns[time] = timestamps(rowtimes(ends, zone), schema.field(time).type)
    return columns

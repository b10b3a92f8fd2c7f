"""Formats stored rows for people and scripts: keys first, the engine's own columns last.

The hash that orders a segment is left out. ``__count`` is the multiplicity of a row, or the number of rows of a group.
``__partners`` is the number of matching rows of the other side. ``__attempts`` is the number of repeated lookups of a
row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from hintplan.plans.text.counts import shortened
from hintplan.runtime.connectors.rowtext import formatter
from hintplan.runtime.results.text import moment
from hintplan.runtime.state.layout import HASH, WRITE

Cells = list[list[str]]
_WIDEST = 40


def time_text(milliseconds: int, zone: str) -> str:
    """Return a time in the zone, without fractions of a second."""
    return moment(datetime.fromtimestamp(milliseconds / 1000, ZoneInfo(zone)), 0)


def utc(milliseconds: int) -> str:
    """Return a time for scripts, such as ``2026-11-20T10:32:02.898Z``."""
    return moment(datetime.fromtimestamp(milliseconds / 1000, UTC), 3).replace(" ", "T") + "Z"


def row_cells(rows: pa.Table, keys: Sequence[str], zone: str, expires: Callable[[int], str]) -> Cells:
    """Return a line of headings and a line per row; ``expires`` converts the last write of a row to its expiry."""
    names = _ordered(rows, keys)
    columns = [list(map(formatter(rows.schema.field(name).type), rows[name].to_pylist())) for name in names]
    writes = rows[WRITE].to_pylist()
    columns += [[time_text(write, zone) for write in writes], [expires(write) for write in writes]]
    headings = [*(name.removeprefix("__") for name in names), "last write", "expires"]
    return [headings, *([shortened(value, _WIDEST) for value in row] for row in zip(*columns, strict=True))]


def rows_json(rows: pa.Table, keys: Sequence[str], ttl: int | None, now: int) -> list[dict[str, Any]]:
    """Return an object per row, with its ``key``; ``expires`` is null for a row that never expires."""
    names = [name for name in rows.column_names if name not in (HASH, WRITE)]
    columns = {name: _json_values(rows[name]) for name in names}
    objects = []
    for index, write in enumerate(rows[WRITE].to_pylist()):
        due = write + ttl if ttl else None
        objects.append(
            {
                "key": {name: columns[name][index] for name in keys if name in columns},
                "row": {name: values[index] for name, values in columns.items()},
                "last-write": utc(write),
                "expires": None if due is None else utc(due),
                "expired": due is not None and due <= now,
            }
        )
    return objects


def _ordered(rows: pa.Table, keys: Sequence[str]) -> list[str]:
    first = [name for name in keys if name in rows.column_names]
    others = [name for name in rows.column_names if name not in (*first, HASH, WRITE)]
    return [*first, *(name for name in others if not name.startswith("__")), *(n for n in others if n.startswith("__"))]


def _json_values(column: pa.ChunkedArray) -> list[Any]:
    plain = formatter(column.type)

    def value(one: object) -> object:
        exact = isinstance(one, bool | int | str) or (isinstance(one, float) and math.isfinite(one))
        return one if exact or one is None else plain(one)

    return [value(one) for one in column.to_pylist()]

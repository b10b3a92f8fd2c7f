"""Stored rows as people and scripts read them: keys first, what the engine keeps besides them last.

The hash that a segment is sorted by is left out. ``__count`` is how often a row is there, in a table of groups how many
rows a group has; ``__partners`` how many rows of the other side match; ``__attempts`` how often a row was looked up
again.
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


def instant(milliseconds: int, zone: str) -> str:
    """A time without its fraction of a second, in the zone."""
    return moment(datetime.fromtimestamp(milliseconds / 1000, ZoneInfo(zone)), 0)


def utc(milliseconds: int) -> str:
    """A time for scripts: ``2026-11-20T10:32:02.898Z``."""
    return moment(datetime.fromtimestamp(milliseconds / 1000, UTC), 3).replace(" ", "T") + "Z"


def rows_text(rows: pa.Table, keys: Sequence[str], zone: str, expires: Callable[[int], str]) -> Cells:
    """A line of headings and a line per row; ``expires`` says of a last write when the row expires."""
    names = _ordered(rows, keys)
    columns = [list(map(formatter(rows.schema.field(name).type), rows[name].to_pylist())) for name in names]
    writes = rows[WRITE].to_pylist()
    columns += [[instant(write, zone) for write in writes], [expires(write) for write in writes]]
    headings = [*(name.removeprefix("__") for name in names), "last write", "expires"]
    return [headings, *([shortened(value, _WIDEST) for value in row] for row in zip(*columns, strict=True))]


def rows_json(rows: pa.Table, keys: Sequence[str], ttl: int | None, now: int) -> list[dict[str, Any]]:
    """An object per row, with its ``key``; ``expires`` is null for a row that never does."""
    names = [name for name in rows.column_names if name not in (HASH, WRITE)]
    columns = {name: _json_values(rows[name]) for name in names}
    found = []
    for index, write in enumerate(rows[WRITE].to_pylist()):
        due = write + ttl if ttl else None
        found.append(
            {
                "key": {name: columns[name][index] for name in keys if name in columns},
                "row": {name: values[index] for name, values in columns.items()},
                "last-write": utc(write),
                "expires": None if due is None else utc(due),
                "expired": due is not None and due <= now,
            }
        )
    return found


def _ordered(rows: pa.Table, keys: Sequence[str]) -> list[str]:
    first = [name for name in keys if name in rows.column_names]
    rest = [name for name in rows.column_names if name not in (*first, HASH, WRITE)]
    return [*first, *(name for name in rest if not name.startswith("__")), *(n for n in rest if n.startswith("__"))]


def _json_values(column: pa.ChunkedArray) -> list[Any]:
    plain = formatter(column.type)

    def value(one: Any) -> Any:
        exact = isinstance(one, bool | int | str) or (isinstance(one, float) and math.isfinite(one))
        return one if exact or one is None else plain(one)

    return [value(one) for one in column.to_pylist()]

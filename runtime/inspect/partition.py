"""Counts the state of one operator in one partition from its segments, which are read in place and not copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hintplan.runtime.inspect.counts import Counted, count_parked, count_rows
from hintplan.runtime.operators.lookup_retry import read_parked
from hintplan.runtime.state.layout import WRITE, StateLayout, layout_of
from hintplan.runtime.state.manifest import read_tables
from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.local_files import let_pages_go
from hintplan.runtime.storage.manifest import Manifest
from hintplan.runtime.storage.open_segments import OpenSegments
from hintplan.runtime.storage.read import read_segment

PARKED = "parked"
"""The name of the rows that wait for a deferred lookup, as a table and as a state entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A state table to count, and the TTLs in ms to count it under: first the TTL in force, then the edited TTL.

    A layout by time has a table for each bucket.
    """

    layout: StateLayout
    ttls: tuple[int, ...]


def count_tables(
    files: Files, manifest: Manifest, tables: Sequence[Kept], *, now: int, show: int
) -> Iterator[tuple[str, Counted]]:
    """Yield the count of each of ``tables`` with its name; RunError with the file if a segment is damaged."""
    for kept in tables:
        for runs in stored_runs(files, manifest, kept.layout):
            yield kept.layout.name, count_rows(kept.layout, runs, ttls=kept.ttls, now=now, show=show)


def count_parked_rows(files: Files, manifest: Manifest, keys: Sequence[str], *, show: int) -> Counted | None:
    """Count the rows that wait for a lookup by ``keys``; None if there are none. RunError as :func:`count_tables`."""
    tables = parked_rows(files, manifest)
    if not tables:
        return None
    # A converted or constant key is stored under a name of its own.
    columns = tables[0].column_names
    own = (f"__key{index}" for index in range(len(keys)))
    return count_parked(
        [name if name in columns else left for name, left in zip(own, keys, strict=True)], tables, show=show
    )


def stored_runs(files: Files, manifest: Manifest, layout: StateLayout) -> Iterator[list[pa.Table]]:
    """Yield the segments of each state table with ``layout`` from old to new: of one, or one for each bucket of time.

    A large segment is several tables, in order of hash.
    """
    tables = read_tables(manifest.tables) if manifest.tables is not None else {}
    for name, table in tables.items():
        if layout_of(name, [layout]):
            segments = _read(files, manifest, (entry.id for entry in table.segments))
            yield [pa.Table.from_batches([batch]) for segment in segments for batch in segment.to_batches()]


def parked_rows(files: Files, manifest: Manifest) -> list[pa.Table]:
    """Return the segments of parked rows, with the time of their last lookup as ``__write``."""
    waiting = read_parked(manifest.tables)[2] if manifest.tables is not None else []
    tables = _read(files, manifest, (segment.id for segment in waiting))
    return [
        table.append_column(WRITE, pa.array(np.full(table.num_rows, segment.at)))
        for table, segment in zip(tables, waiting, strict=True)
    ]


def _read(files: Files, manifest: Manifest, segments: Iterable[str]) -> list[pa.Table]:
    opened = OpenSegments()
    tables = [read_segment(files, manifest.segments[segment], opened) for segment in segments]
    let_pages_go()  # the checksums read all pages, but counting needs only some columns
    return tables

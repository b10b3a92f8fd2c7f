"""Inherits state tables after a change of the number of partitions: a partition takes its slices of old segments.

No segment is rewritten, because a partition owns a range of hashes and segments are sorted by hash. The observations of
an old partition cannot be divided, so its first heir takes them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import pyarrow as pa

from hintplan.plans.evidence.period import Period
from hintplan.runtime.operator import Inheritance
from hintplan.runtime.state.layout import COUNT, HASH, StateLayout, bucket_end, int64s, layout_of
from hintplan.runtime.state.manifest import SegmentEntry, StateTable, read_manifest, write_manifest
from hintplan.runtime.state.observation import joined_observations
from hintplan.runtime.state.runs import newest_in


def inherit_tables(store: Inheritance, layouts: Sequence[StateLayout]) -> bytes | None:
    """Return the manifest of the inherited parts of tables with ``layouts``; RunError if the layouts differ."""
    before = [read_manifest(manifest, layouts) for manifest in store.manifests]
    tables = {}
    for layout in layouts:
        for own in _tables(layout, before):
            table = _inherited(store, own, before)
            if table.segments or not layout.by_time:
                tables[own.name] = table
    return write_manifest(tables)


def _tables(layout: StateLayout, before: Sequence[dict[str, StateTable]]) -> list[StateLayout]:
    """Return the layout of each table that has ``layout``: of each bucket of old partitions, if it is by time."""
    if not layout.by_time:
        return [layout]
    names = {name for tables in before for name in tables}
    return [layout.at(end) for end in sorted(bucket_end(name) for name in names if layout_of(name, [layout]))]


def _inherited(store: Inheritance, layout: StateLayout, before: Sequence[dict[str, StateTable]]) -> StateTable:
    """Merge the tables of old partitions into one.

    Old partitions share no rows, so only the segments of each of them must stay in order, also if the clock was set
    back between two of them.
    """
    of_parts = [
        [(entry, part) for entry in tables[layout.name].segments]
        for part, tables in enumerate(before)
        if layout.name in tables
    ]
    entries = heapq.merge(*of_parts, key=lambda pair: pair[0].last_write)
    segments: list[SegmentEntry] = []
    older: list[list[pa.Table]] = [[] for _ in before]
    rows = 0
    for entry, part in entries:
        name = f"{layout.name}/{len(segments) + 1}"
        table = store.inherit(name, part, entry.id)
        if not table.num_rows:
            store.delete(name)
            continue
        segment = SegmentEntry(name, table.num_rows, table.nbytes, entry.first_write, entry.last_write, entry.shadows)
        segments.append(segment)
        rows += _added(table, older[part] if entry.shadows else [], layout)
        older[part] += _runs(table)
    observed: tuple[Period, ...] = ()
    for tables, is_heir in zip(before, store.is_first_heir, strict=True):
        if is_heir and layout.name in tables:
            observed = joined_observations(observed, tables[layout.name].observed)
    return StateTable(fingerprint=layout.fingerprint, rows=rows, segments=tuple(segments), observed=observed)


def _added(table: pa.Table, older: Sequence[pa.Table], layout: StateLayout) -> int:
    """Return how many rows ``table`` adds to the ``older`` segments, which are sorted from old to new."""
    added = int((int64s(table, COUNT) > 0).sum())
    if not older:
        return added
    table_of, row_of = newest_in(older, table.select(layout.identity.names), int64s(table, HASH))
    for index, run in enumerate(older):
        added -= int((int64s(run, COUNT)[row_of[table_of == index]] > 0).sum())
    return added


def _runs(table: pa.Table) -> Iterator[pa.Table]:
    """Return the record batches of a segment; a large one has several, with ascending hashes."""
    return (pa.Table.from_batches([batch]) for batch in table.to_batches())

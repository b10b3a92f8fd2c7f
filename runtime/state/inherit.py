"""State tables of partitions that were divided otherwise before: the parts of their segments that are one's own now.

No segment is rewritten: a partition owns a range of hashes, and segments are sorted by hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from hintplan.runtime.operator import Inheritance
from hintplan.runtime.state.layout import COUNT, HASH, StateLayout, int64s
from hintplan.runtime.state.manifest import SegmentEntry, StateTable, read_manifest, write_manifest
from hintplan.runtime.state.runs import newest_in


def inherit_tables(store: Inheritance, layouts: Sequence[StateLayout]) -> bytes | None:
    """The manifest of tables in these ``layouts``, as far as they are inherited; RunError if they have others."""
    fingerprints = {layout.name: layout.fingerprint for layout in layouts}
    before = [read_manifest(manifest, fingerprints) for manifest in store.manifests]
    return write_manifest({layout.name: _inherited(store, layout, before) for layout in layouts})


def _inherited(store: Inheritance, layout: StateLayout, before: Sequence[dict[str, StateTable]]) -> StateTable:
    """One table of several: their rows are others', so only each one's segments must stay in their order."""
    entries = [(entry, part) for part, tables in enumerate(before) for entry in tables[layout.name].segments]
    entries.sort(key=lambda found: found[0].last_write)
    segments: list[SegmentEntry] = []
    older: list[list[pa.Table]] = [[] for _ in before]
    rows = 0
    for entry, part in entries:
        name = f"{layout.name}/{len(segments) + 1}"
        table = store.inherit(name, part, entry.id)
        if not table.num_rows:
            store.delete(name)
            continue
        found = SegmentEntry(name, table.num_rows, table.nbytes, entry.first_write, entry.last_write, entry.shadows)
        segments.append(found)
        rows += _added(table, older[part] if entry.shadows else [], layout)
        older[part] += _runs(table)
    return StateTable(fingerprint=layout.fingerprint, rows=rows, segments=tuple(segments))


def _added(table: pa.Table, older: Sequence[pa.Table], layout: StateLayout) -> int:
    """How many rows there are more with ``table`` than with the ``older`` segments, from old to new, alone."""
    added = int((int64s(table, COUNT) > 0).sum())
    if not older:
        return added
    which, where = newest_in(older, table.select(layout.identity.names), int64s(table, HASH))
    for index, run in enumerate(older):
        added -= int((int64s(run, COUNT)[where[which == index]] > 0).sum())
    return added


def _runs(table: pa.Table) -> Iterator[pa.Table]:
    """Large segments have several record batches, with ascending hashes."""
    return (pa.Table.from_batches([batch]) for batch in table.to_batches())

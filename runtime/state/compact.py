"""State tables without what nobody will see again: rows that are deleted, replaced or expired.

Between batches, while the job stands still; in a batch, :meth:`hintplan.runtime.state.keyed.KeyedState.commit` does
what is due.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hintplan.runtime.operator import SegmentStore
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import StateLayout
from hintplan.runtime.state.manifest import StateTable, read_manifest


def compact_tables(
    store: SegmentStore,
    manifest: bytes | None,
    layouts: Sequence[tuple[StateLayout, int]],
    *,
    now: int,
    anew: Callable[[str], bool],
) -> Mapping[str, StateTable]:
    """The tables of an operator, each layout with its TTL in ms, without what has gone at ``now`` (ms).

    ``anew`` says which segments are written once more, whatever is in them. RunError if they have other layouts.
    """
    tables = read_manifest(manifest, {layout.name: layout.fingerprint for layout, _ in layouts})
    return {
        layout.name: KeyedState(layout, tables[layout.name], store, ttl=ttl, now=now).compact(anew)
        for layout, ttl in layouts
    }

"""Removes rows from state tables that no reader will see again: deleted, replaced or expired rows.

It runs between batches, while the job is stopped. In a batch, :meth:`hintplan.runtime.state.keyed.KeyedState.commit`
does the compactions that are due.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hintplan.runtime.operator import SegmentStore
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import StateLayout, bucket_end, layout_of
from hintplan.runtime.state.manifest import StateTable, read_manifest


def compact_tables(
    store: SegmentStore,
    manifest: bytes | None,
    layouts: Sequence[tuple[StateLayout, int]],
    *,
    now: int,
    anew: Callable[[str], bool],
) -> Mapping[str, StateTable]:
    """Return the tables of an operator without the rows that are gone at ``now`` (ms); each layout has its TTL in ms.

    ``anew`` is True for segments that must be rewritten in any case. Raise RunError if stored tables have other
    layouts.
    """
    ttls = {layout.name: ttl for layout, ttl in layouts}
    tables = read_manifest(manifest, [layout for layout, _ in layouts])
    compacted = {}
    for name, table in tables.items():
        layout = layout_of(name, [layout for layout, _ in layouts])
        assert layout is not None
        own = layout.at(bucket_end(name)) if layout.by_time else layout
        compacted[name] = KeyedState(own, table, store, ttl=ttls[layout.name], now=now).compact(anew)
    return compacted

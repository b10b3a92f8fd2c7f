"""State by time: batches touch the buckets of their rows only, and a bucket that time has passed goes unread."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.state.compact import compact_tables
from hintplan.runtime.state.layout import COUNT, HASH, WRITE, StateLayout
from hintplan.runtime.state.manifest import read_manifest, write_manifest
from hintplan.runtime.state.memory import MemoryStore
from hintplan.runtime.state.time_buckets import TimeBuckets

LAYOUT = StateLayout(
    name="slices(a@b)", identity=pa.schema([("k", pa.int64())]), payload=pa.schema([("x", pa.int64())]), by_time=True
)
PLAIN = StateLayout(name="sums", identity=pa.schema([("k", pa.int64())]), payload=pa.schema([]))


class Reads(MemoryStore):
    """Remembers which segments are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_segments: list[str] = []

    def read(self, segment: str) -> pa.Table:
        self.read_segments.append(segment)
        return super().read(segment)


def put(buckets: TimeBuckets, end: int, rows: dict[int, tuple[int, int]]) -> None:
    """Store rows, as key -> (value, count)."""
    keys = sorted(rows)
    values = [keys, keys, [rows[k][0] for k in keys], [rows[k][1] for k in keys], [0] * len(keys)]
    table = pa.table([pa.array(column, pa.int64()) for column in values], schema=LAYOUT.schema)
    state = buckets.at(end)
    state.put(table, state.find(table.select(["k"]), table[HASH].to_numpy()) >= 0)


def contents(table: pa.Table) -> dict[int, int]:
    assert table.schema.names == [HASH, "k", "x", COUNT, WRITE]
    return dict(zip(table["k"].to_pylist(), table["x"].to_pylist(), strict=True))


def reopened(manifest: bytes | None, store: MemoryStore) -> TimeBuckets:
    return TimeBuckets(LAYOUT, read_manifest(manifest, [LAYOUT]), store, now=0)


def test_a_bucket_has_the_newest_rows_of_all_batches_in_order_of_hash() -> None:
    random = np.random.default_rng(1)
    store, manifest = MemoryStore(), None
    model: dict[int, dict[int, int]] = defaultdict(dict)
    for _ in range(40):
        buckets = reopened(manifest, store)
        for end in random.choice([-5000, 0, 5000], 2, replace=False).tolist():
            rows = {int(k): (int(random.integers(100)), int(random.integers(3))) for k in random.integers(0, 30, 12)}
            put(buckets, end, rows)
            model[end] |= {k: x for k, (x, count) in rows.items() if count}
            for k, (_, count) in rows.items():
                if not count:
                    model[end].pop(k, None)
            assert contents(buckets.rows(end)) == model[end]
        manifest = write_manifest(buckets.commit())
        for end in (-5000, 0, 5000):
            stored = reopened(manifest, store).rows(end)
            assert contents(stored) == model[end]
            assert stored["k"].to_pylist() == sorted(model[end])


def test_a_batch_reads_only_the_buckets_of_its_rows_and_drops_others_unread() -> None:
    store = Reads()
    buckets = reopened(None, store)
    for end in range(1000, 6000, 1000):
        put(buckets, end, {1: (end, 1), 2: (end, 1)})
    manifest = write_manifest(buckets.commit())
    store.read_segments.clear()
    buckets = reopened(manifest, store)
    assert buckets.ends() == [1000, 2000, 3000, 4000, 5000]
    put(buckets, 4000, {1: (7, 1)})
    for end in (1000, 2000):
        buckets.drop(end)
    after = buckets.commit()
    assert store.read_segments == ["slices(a@b)@4000/1"]
    assert sorted(after) == [f"slices(a@b)@{end}" for end in (3000, 4000, 5000)]
    assert sorted(store.segments) == sorted(entry.id for table in after.values() for entry in table.segments)


def test_a_bucket_that_is_dropped_with_rows_of_the_batch_is_never_written() -> None:
    store = MemoryStore()
    buckets = reopened(None, store)
    put(buckets, 1000, {1: (1, 1)})
    assert contents(buckets.rows(1000)) == {1: 1}
    assert not buckets.is_stored(1000)
    buckets.drop(1000)
    assert (buckets.ends(), buckets.commit(), store.segments) == ([], {}, {})


def test_a_bucket_whose_rows_are_all_deleted_leaves_the_manifest() -> None:
    store = MemoryStore()
    buckets = reopened(None, store)
    put(buckets, 1000, {1: (1, 1)})
    manifest = write_manifest(buckets.commit())
    buckets = reopened(manifest, store)
    put(buckets, 1000, {1: (1, 0)})
    assert contents(buckets.rows(1000)) == {}
    tables = buckets.commit()
    compacted = compact_tables(store, write_manifest(tables), [(LAYOUT, 0)], now=0, anew=lambda segment: False)
    assert [table.rows for table in tables.values()] == [0]
    assert (write_manifest(compacted), store.segments) == (None, {})


def test_tables_of_other_layouts_are_refused_beside_those_of_buckets() -> None:
    store = MemoryStore()
    buckets = reopened(None, store)
    put(buckets, 1000, {1: (1, 1)})
    manifest = write_manifest(buckets.commit())
    assert read_manifest(manifest, [LAYOUT]).keys() == {"slices(a@b)@1000"}
    for layouts in (
        [replace(LAYOUT, payload=pa.schema([("x", pa.string())]))],
        [replace(LAYOUT, name="slices")],
        [replace(LAYOUT, by_time=False)],
    ):
        with pytest.raises(RunError, match="has another layout than the plan's operator needs"):
            read_manifest(manifest, layouts)
    with pytest.raises(RunError, match="state table 'sums' has another layout"):
        read_manifest(manifest, [LAYOUT, PLAIN])


def test_compaction_takes_every_bucket() -> None:
    store = MemoryStore()
    manifest = None
    for batch in range(3):
        buckets = reopened(manifest, store)
        for end in (1000, 2000):
            put(buckets, end, {1: (batch, 1), 2 + batch: (batch, 1)})
        manifest = write_manifest(buckets.commit())
    tables = compact_tables(store, manifest, [(LAYOUT, 0)], now=0, anew=lambda segment: False)
    assert {name: len(table.segments) for name, table in tables.items()} == {
        "slices(a@b)@1000": 1,
        "slices(a@b)@2000": 1,
    }
    assert contents(reopened(write_manifest(tables), store).rows(2000)) == {1: 2, 2: 0, 3: 1, 4: 2}

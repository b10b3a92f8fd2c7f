"""The keyed state table: the newest version wins, collisions stay apart, merges keep it small, nothing goes early."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.plans.errors import RunError
from hintplan.runtime.inspect.counts import count_rows
from hintplan.runtime.state import keyed
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import COUNT, HASH, WRITE, StateLayout, prefixed_hash
from hintplan.runtime.state.manifest import StateTable, read_manifest, write_manifest
from hintplan.runtime.state.memory import MemoryStore

LAYOUT = StateLayout(
    name="t",
    identity=pa.schema([("k", pa.int64()), ("r", pa.string())]),
    payload=pa.schema([("x", pa.int64())]),
    key=("k",),
)


class Batches:
    """A state table over several micro-batches; ``hasher`` maps (k, r) to (key hash, row hash)."""

    def __init__(self, ttl: int = 0, hasher=lambda k, r: (hash((k,)), hash((k, r)))) -> None:
        self.ttl = ttl
        self.hasher = hasher
        self.store = MemoryStore()
        self.table = StateTable(fingerprint=LAYOUT.fingerprint)

    def stored(self) -> list[pa.Table]:
        return [self.store.read(entry.id) for entry in self.table.segments]

    def open(self, now: int = 0) -> KeyedState:
        return KeyedState(LAYOUT, self.table, self.store, ttl=self.ttl, now=now)

    def hashes(self, rows):
        pairs = [self.hasher(k, r) for k, r in rows]
        key, row = (np.array([p[i] for p in pairs], np.int64) for i in (0, 1))
        return key, prefixed_hash(key, row)

    def identity(self, rows):
        return pa.table([pa.array([k for k, _ in rows]), pa.array([r for _, r in rows])], schema=LAYOUT.identity)

    def write(self, changes: dict, now: int = 0) -> None:
        """``changes`` maps (k, r) to (x, count)."""
        state = self.open(now)
        rows = list(changes)
        if rows:
            _, hashes = self.hashes(rows)
            codes = state.find(self.identity(rows), hashes)
            table = pa.table(
                [
                    pa.array(hashes),
                    *self.identity(rows).columns,
                    pa.array([changes[row][0] for row in rows], pa.int64()),
                    pa.array([changes[row][1] for row in rows], pa.int64()),
                    pa.array([now] * len(rows), pa.int64()),
                ],
                schema=LAYOUT.schema,
            )
            state.put(table, codes >= 0)
        self.table = state.commit()

    def found(self, rows, now: int = 0) -> dict:
        state = self.open(now)
        _, hashes = self.hashes(rows)
        codes = state.find(self.identity(rows), hashes)
        live = np.flatnonzero(state.live(codes))
        taken = state.take(codes[live], ["x", COUNT]).to_pylist()
        return {rows[place]: (item["x"], item[COUNT]) for place, item in zip(live, taken, strict=True)}

    def scanned(self, keys, now: int = 0) -> dict:
        state = self.open(now)
        hashes = np.array([self.hasher(k, None)[0] for k in keys], np.int64)
        result: dict = {k: {} for k in keys}
        for place, code in state.scan(pa.table({"k": pa.array(keys, pa.int64())}), hashes, limit=3):
            for position, item in zip(place, state.take(code, ["k", "r", "x", COUNT]).to_pylist(), strict=True):
                assert item["k"] == keys[position]
                result[keys[position]][item["r"]] = (item["x"], item[COUNT])
        return result


changes = st.dictionaries(
    st.tuples(st.integers(0, 3), st.sampled_from(["p", "q", None])),
    st.tuples(st.integers(0, 9), st.integers(0, 2)),
    max_size=6,
)
HASHERS = {
    "good": lambda k, r: (k * 0x9E3779B97F4A7C15 % 2**63, (k * 31 + len(str(r)) * 7 + ord(str(r)[0])) * 0x51ED),
    "same key hash": lambda k, r: (99 << 24, ord(str(r)[0])),
    "same everything": lambda k, r: (5, 5),
}


PIECES = {"in one piece": 1 << 28, "row by row": 1}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES.keys())
@pytest.mark.parametrize("hasher", HASHERS.values(), ids=HASHERS.keys())
@pytest.mark.part(of=3)
@settings(max_examples=60, deadline=None)
@given(batches=st.lists(changes, max_size=14))
def test_it_behaves_as_a_dictionary(hasher, piece, batches):
    state = Batches(hasher=hasher)
    model: dict = {}
    every = [(k, r) for k in range(4) for r in ("p", "q", None)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keyed, "_PIECE", piece)
        for batch in batches:
            state.write(batch)
            for row, (x, count) in batch.items():
                model.pop(row, None)
                if count:
                    model[row] = (x, count)
            assert state.found(every) == model
            assert state.scanned([0, 1, 2, 3]) == {
                k: {r: value for (key, r), value in model.items() if key == k} for k in range(4)
            }
            assert state.table.rows == len(model)
            assert len(state.table.segments) <= 4


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES.keys())
@pytest.mark.part(of=3)
@settings(max_examples=80, deadline=None)
@given(
    batches=st.lists(st.tuples(st.integers(0, 30), changes), min_size=4, max_size=30),
    ttl=st.integers(1, 60),
)
def test_rows_expire_by_their_last_write_and_are_dropped_a_quarter_of_the_ttl_later(piece, batches, ttl):
    state = Batches(ttl=ttl, hasher=HASHERS["good"])
    every = [(k, r) for k in range(4) for r in ("p", "q", None)]
    model: dict = {}
    now = 1000
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keyed, "_PIECE", piece)
        for step, batch in batches:
            now += step
            state.write(batch, now=now)
            model |= {row: (now, change) for row, change in batch.items()}
            live = {row: change for row, (at, change) in model.items() if change[1] and at + ttl > now}
            assert state.found(every, now=now) == live
            assert state.scanned([0, 1, 2, 3], now=now) == {
                k: {r: value for (key, r), value in live.items() if key == k} for k in range(4)
            }
            # What is stored is counted independently, and none of it is overdue.
            tables = state.stored()
            assert state.table.rows == count_rows(LAYOUT, tables, ttls=(0,), now=now).under[0].rows
            assert all(at + ttl + max(ttl // 4, 1) > now for table in tables for at in table[WRITE].to_pylist())
            # Whatever TTL comes next, no version shows but the newest.
            ttl_before, state.ttl = state.ttl, 1_000_000
            newest = {row: change for row, (_, change) in model.items() if change[1]}
            assert state.found(every, now=now).items() <= newest.items()
            state.ttl = ttl_before


def test_a_purge_rewrites_only_the_oldest_segment_that_is_due():
    state = Batches(ttl=100)
    for now in (0, 10, 20, 90):  # four alike: merged to one
        state.write({(now * 5000 + n, "p"): (n, 1) for n in range(5000)}, now=now)
    state.write({(n, "q"): (n, 1) for n in range(5000)}, now=95)
    oldest, newer = (entry.id for entry in state.table.segments)
    state.store.segments[newer] = None  # reading it would fail
    state.write({}, now=125)
    ids = [entry.id for entry in state.table.segments]
    assert (len(ids), oldest in ids, ids[1]) == (2, False, newer)
    assert state.table.rows == state.table.segments[0].rows + 5000 == 10_000
    kept = state.table.segments
    state.write({}, now=90 + 124)
    assert state.table.segments == kept
    state.write({}, now=90 + 125)
    assert state.store.segments == {}


def test_large_segments_are_merged_only_if_newer_versions_are_among_them(monkeypatch):
    monkeypatch.setattr(keyed, "_LARGEST_MERGE", 1)
    once, again = Batches(), Batches()
    for batch in range(8):
        once.write({(batch, "p"): (1, 1)})
        again.write({(0, "p"): (batch, 1)})
    assert [entry.rows for entry in once.table.segments] == [1] * 8
    assert len(again.table.segments) <= 4
    assert again.found([(0, "p")]) == {(0, "p"): (7, 1)}


def test_a_row_refreshed_in_a_newer_segment_outlives_its_older_version():
    state = Batches(ttl=100)
    state.write({(1, "p"): (1, 1), (2, "p"): (1, 1)}, now=0)
    state.write({(1, "p"): (2, 1)}, now=90)
    assert state.found([(1, "p"), (2, "p")], now=120) == {(1, "p"): (2, 1)}


def test_an_expired_newer_version_never_uncovers_an_older_one():
    state = Batches(ttl=10)
    state.write({(1, "p"): (1, 1)}, now=0)
    for now in range(1, 12):
        state.write({(1, "p"): (now, 1)}, now=now)
    state.ttl = 1_000_000
    assert state.found([(1, "p")], now=500_000) == {(1, "p"): (11, 1)}


def test_segments_that_expired_as_a_whole_are_dropped_unread():
    state = Batches(ttl=10)
    state.write({(1, "p"): (1, 1)}, now=0)
    (segment,) = state.store.segments
    state.store.segments[segment] = None  # reading it would fail
    state.write({}, now=12)
    assert state.store.segments == {}
    assert (state.table.rows, state.table.segments) == (0, ())


def test_rewrites_stay_logarithmic_and_segments_few():
    written = 0

    class Counting(MemoryStore):
        def write(self, segment, table):
            nonlocal written
            written += table.num_rows
            return super().write(segment, table)

    state = Batches()
    state.store = Counting()
    for batch in range(32):
        state.write({(batch * 5000 + n, "p"): (n, 1) for n in range(5000)})
    assert state.table.rows == 160_000
    assert written <= 160_000 * 4  # once as new, then once per tier of four
    assert len(state.store.segments) == len(state.table.segments) <= 9


def test_a_manifest_of_another_format_is_refused():
    data = json.dumps({"format": 2, "tables": {}}).encode()
    with pytest.raises(RunError, match="has format 2; this version reads format 1"):
        read_manifest(data, [LAYOUT])


def test_state_of_another_layout_is_refused_and_not_dropped():
    state = Batches()
    state.write({(1, "p"): (1, 1)})
    data = write_manifest({"t": state.table})
    assert read_manifest(data, [LAYOUT])["t"] == state.table
    with pytest.raises(RunError, match="state table 't' has another layout"):
        read_manifest(data, [replace(LAYOUT, key=("other",))])
    with pytest.raises(RunError, match="state table 'u' has another layout"):
        read_manifest(data, [LAYOUT, replace(LAYOUT, name="u")])


def test_the_layout_of_stored_state_has_not_changed():
    # State written by earlier versions must stay readable: a change here needs a new format and a migration.
    assert LAYOUT.schema.names == [HASH, "k", "r", "x", COUNT, WRITE]
    assert prefixed_hash(np.array([-1]), np.array([0])).tolist() == [-(1 << 24)]


# --- Compaction -------------------------------------------------------------------------------------------------------


def compacted(table: Batches, now: int = 0, **options: Any) -> list[int]:
    """How many rows each segment has after it."""
    table.table = table.open(now).compact(**options)
    assert sorted(table.store.segments) == sorted(entry.id for entry in table.table.segments)
    return [entry.rows for entry in table.table.segments]


def test_a_compaction_leaves_one_segment_of_what_is_there() -> None:
    table = Batches(ttl=100)
    table.write({(1, "a"): (1, 1), (2, "a"): (2, 1)}, now=0)
    table.write({(2, "a"): (3, 1), (3, "a"): (4, 1)}, now=50)
    table.write({(3, "a"): (4, 0)}, now=60)
    assert compacted(table, now=99) == [2]
    assert table.found([(1, "a"), (2, "a"), (3, "a")], now=99) == {(1, "a"): (1, 1), (2, "a"): (3, 1)}
    assert compacted(table, now=100) == [1]
    assert (table.table.rows, table.found([(2, "a")], now=149)) == (1, {(2, "a"): (3, 1)})
    assert compacted(table, now=150) == []
    assert table.table.rows == 0


def test_a_segment_that_is_compact_stays_unless_it_is_to_be_written_anew() -> None:
    table = Batches()
    table.write({(1, "a"): (1, 1)})
    before = table.table
    assert compacted(table) == [1]
    assert table.table == before
    assert compacted(table, anew=lambda segment: True) == [1]
    assert table.table.segments[0].id != before.segments[0].id


def test_large_segments_stay_apart_and_lose_what_has_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Batches(ttl=100)
    for number in range(3):
        table.write({(number, f"{row}"): (row, 1) for row in range(4)}, now=number * 10)
    monkeypatch.setattr(keyed, "_LARGEST_MERGE", 2 * max(segment.size for segment in table.table.segments))
    assert compacted(table, now=99) == [4, 8]
    assert compacted(table, now=110) == [4]
    assert table.found([(1, "0"), (2, "0")], now=110) == {(2, "0"): (0, 1)}
    assert table.table.rows == 4


def test_large_segments_with_several_versions_of_a_row_become_one(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Batches()
    for number in range(3):
        table.write({(row, "a"): (number, 1) for row in range(4)})
    monkeypatch.setattr(keyed, "_LARGEST_MERGE", 1)
    assert compacted(table) == [4]
    assert table.found([(row, "a") for row in range(4)]) == {(row, "a"): (2, 1) for row in range(4)}

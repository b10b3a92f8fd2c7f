"""Counting a stored state table: newest versions only, expiry by the last write, keys, whatever segments there are."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.engine.saved import Saved
from runtime.engine.segments import Segments
from runtime.inspect import counts as counts_module
from runtime.inspect.counts import HOUR, Under, count_parked, count_rows
from runtime.inspect.partition import Kept, Parked, Question, count_partition, read_counted
from runtime.operators.lookup_retry import ATTEMPTS
from runtime.state.layout import COUNT, HASH, WRITE, StateLayout, prefixed_hash
from runtime.state.manifest import SegmentEntry, StateTable, write_manifest

MINUTE = 60_000
LAYOUT = StateLayout(
    name="left",
    identity=pa.schema([("k", pa.int64()), ("r", pa.string())]),
    payload=pa.schema([]),
    key=("k",),
)


def segment(rows: list[tuple[int, str, int, int]], hasher=lambda value: hash(value)) -> pa.Table:
    """Rows of (k, r, count, write) as the engine stores them, sorted by hash."""
    keys = np.array([hasher((k,)) for k, *_ in rows], np.int64)
    hashes = prefixed_hash(keys, np.array([hasher((k, r)) for k, r, *_ in rows], np.int64))
    columns = [
        pa.array(hashes),
        pa.array([row[0] for row in rows], pa.int64()),
        pa.array([row[1] for row in rows]),
        pa.array([row[2] for row in rows], pa.int64()),
        pa.array([row[3] for row in rows], pa.int64()),
    ]
    return pa.table(columns, schema=LAYOUT.schema).take(np.argsort(hashes, kind="stable"))


def test_hidden_deleted_and_superseded_rows_do_not_count() -> None:
    now = 10 * HOUR
    old = segment([(1, "a", 1, 0), (1, "b", 1, 2 * HOUR), (2, "c", 3, 9 * HOUR), (3, "d", 1, 9 * HOUR)])
    new = segment([(1, "a", 2, 9 * HOUR + 30 * MINUTE), (3, "d", 0, 9 * HOUR + 40 * MINUTE), (4, "e", 1, 10 * HOUR)])
    # By hand: (1,a) was written again at 9:30 and (3,d) was deleted, so there are (1,a) 9:30, (1,b) 2:00, (2,c) 9:00
    # and (4,e) 10:00. Under 90 minutes (1,b) has expired, (2,c) expires at 10:30 and (1,a) at 11:00, which is within
    # an hour. Under an hour (2,c), written at 9:00, has just expired too, and both others go by 11:00. Under 8 hours
    # (1,b) expires at 10:00, which is now; 0 never expires.
    counted = count_rows(LAYOUT, [old, new], ttls=(90 * MINUTE, HOUR, 8 * HOUR, 0), now=now)
    assert counted.under == (
        Under(rows=3, expired=1, soon=2),
        Under(rows=2, expired=2, soon=2),
        Under(rows=3, expired=1, soon=0),
        Under(rows=4, expired=0, soon=0),
    )
    assert (counted.keys, counted.oldest, counted.newest) == (3, 9 * HOUR, 10 * HOUR)


def test_a_row_that_expires_in_exactly_an_hour_expires_within_the_hour() -> None:
    rows = segment([(1, "a", 1, 100), (2, "b", 1, 101)])
    counted = count_rows(LAYOUT, [rows], ttls=(HOUR,), now=100)
    assert counted.under == (Under(rows=2, expired=0, soon=1),)


def test_the_rows_written_last_are_shown_newest_first_and_expired_ones_too() -> None:
    old = segment([(1, "a", 1, 5), (2, "b", 1, 50)])
    new = segment([(1, "a", 4, 70), (3, "c", 1, 60)])
    shown = count_rows(LAYOUT, [old, new], ttls=(15,), now=80, show=3).shown
    assert shown.select(["k", "r", COUNT, WRITE]).to_pylist() == [
        {"k": 1, "r": "a", COUNT: 4, WRITE: 70},
        {"k": 3, "r": "c", COUNT: 1, WRITE: 60},
        {"k": 2, "r": "b", COUNT: 1, WRITE: 50},
    ]
    assert count_rows(LAYOUT, [old, new], ttls=(15,), now=80, show=1).shown.num_rows == 1


def test_an_empty_table_has_nothing() -> None:
    counted = count_rows(LAYOUT, [], ttls=(HOUR, 0), now=5, show=3)
    assert counted.under == (Under(), Under())
    assert (counted.keys, counted.oldest, counted.newest, counted.shown) == (0, None, None, None)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 5), st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 100)),
            unique_by=lambda row: row[:2],
            max_size=12,
        ),
        max_size=5,
    ),
    st.integers(0, 40),
    st.integers(0, 140),
    st.sampled_from([1, 3, 1000]),
    st.booleans(),
)
def test_counts_are_those_of_a_dictionary(batches, ttl, now, rows_at_once, collide) -> None:
    """Against the ten-line reference: later segments win, 0 deletes, ``write + ttl <= now`` hides."""
    newest = {}
    for batch in batches:
        newest |= {(k, r): (count, write) for k, r, count, write in batch}
    there = {row: write for row, (count, write) in newest.items() if count}
    visible = {row: write for row, write in there.items() if not ttl or write + ttl > now}
    soon = [write for write in visible.values() if ttl and write + ttl <= now + HOUR]
    hasher = (lambda value: len(value) << 24) if collide else hash  # all keys, and all rows, share a hash
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts_module, "_RANGE_ROWS", rows_at_once)
        tables = [segment(batch, hasher) for batch in batches]
        counted = count_rows(LAYOUT, tables, ttls=(ttl,), now=now, show=4)
    assert counted.under == (Under(rows=len(visible), expired=len(there) - len(visible), soon=len(soon)),)
    assert counted.keys == len({k for k, _ in visible})
    assert counted.oldest == min(visible.values(), default=None)
    assert counted.newest == max(visible.values(), default=None)
    shown = [] if counted.shown is None else counted.shown[WRITE].to_pylist()
    assert shown == sorted(there.values(), reverse=True)[:4]


def test_groups_are_their_own_keys_and_a_global_group_is_one() -> None:
    for identity, keys in ((pa.schema([("g", pa.int64())]), [1, 2]), (pa.schema([]), [])):
        layout = StateLayout(name="groups", identity=identity, payload=pa.schema([]))
        size = len(keys) or 1
        columns = [pa.array(range(size), pa.int64()), *([pa.array(keys, pa.int64())] if keys else [])]
        columns += [pa.array([1] * size, pa.int64()), pa.array([7] * size, pa.int64())]
        counted = count_rows(layout, [pa.table(columns, schema=layout.schema)], ttls=(0,), now=9)
        assert (counted.keys, counted.under[0].rows) == (size, size)


def test_parked_rows_count_with_their_last_look() -> None:
    def parked(keys: list[int | None], at: int) -> pa.Table:
        size = len(keys)
        columns = {"id": pa.array(keys, pa.int64()), ATTEMPTS: pa.array([1] * size, pa.int32())}
        return pa.table(columns | {WRITE: pa.array([at] * size, pa.int64())})

    counted = count_parked(["id"], [parked([1, 1, None], 10), parked([2, 1], 30)], show=2)
    assert (counted.under, counted.keys, counted.oldest, counted.newest) == ((Under(rows=5),), 3, 10, 30)
    assert counted.shown["id"].to_pylist() == [2, 1]


class Parts(dict):
    """The state store of a partition, as the engine writes it."""

    def updateValue(self, key, value):
        self[key[0]] = value[0]


def stored_partition(tmp_path, monkeypatch) -> tuple[Saved, Parts]:
    """State of two segments, the first one in several parts."""
    monkeypatch.setattr("runtime.engine.segments.CHUNK_BYTES", 700)
    first = segment([(key, "a", 1, 100) for key in range(50)])
    second = segment([(7, "a", 0, 200), (8, "b", 1, 200)])
    parts = Parts()
    store = Segments({}, parts, tmp_path / "worker")
    sizes = {name: store.write(name, table) for name, table in (("left/1", first), ("left/2", second))}
    stored = store.commit()
    assert stored["left/1"][1] > 2
    entries = (
        SegmentEntry("left/1", 50, sizes["left/1"], 100, 100, False),
        SegmentEntry("left/2", 2, sizes["left/2"], 200, 200, True),
    )
    table = StateTable(fingerprint=LAYOUT.fingerprint, rows=50, segments=entries)
    return Saved(None, 50, 1, stored, write_manifest({"left": table}), "join_a"), parts


def asked(saved: Saved) -> Question:
    tables = (Kept(layout=LAYOUT, ttls=(0, 150)),)
    return Question(query="sink_r", number=3, saved={5: saved}, tables=tables, now=300, show=1)


def rows_of(parts: Parts) -> pa.RecordBatch:
    # RocksDB gives them in the order of their keys, which is not that of the parts from the tenth on.
    names = sorted(parts)
    columns = [pa.array([5] * len(names), pa.int32()), pa.array(names), pa.array([parts[n] for n in names])]
    return pa.record_batch(columns, names=["partition", "id", "data"])


def test_a_task_puts_segments_together_and_leaves_nothing_behind(tmp_path, monkeypatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    saved, parts = stored_partition(tmp_path, monkeypatch)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(scratch))
    parts["dead/0"] = b"of a segment that no manifest names"
    (row,) = [r for b in count_partition(iter([rows_of(parts)]), question=asked(saved)) for r in b.to_pylist()]
    counted = read_counted(row.pop("counted"), row.pop("shown"))
    assert row == {"query": "sink_r", "number": 3, "partition": 5, "table": "left"}
    # 50 rows of 50 keys, one deleted, one more under the same 50 keys; after 150 ms only that one is left.
    assert counted.under == (Under(rows=50), Under(rows=1, expired=49, soon=1))
    assert counted.keys == 49
    assert counted.shown["r"].to_pylist() == ["b"]
    assert list(scratch.iterdir()) == []


def test_a_lost_part_is_an_error(tmp_path, monkeypatch) -> None:
    saved, parts = stored_partition(tmp_path, monkeypatch)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    token, _ = saved.segments["left/1"]
    del parts[f"{token}/1"]
    with pytest.raises(Exception, match="lost part 2 of"):
        list(count_partition(iter([rows_of(parts)]), question=asked(saved)))


def test_parked_rows_are_found_by_the_columns_that_a_lookup_asks_with(tmp_path, monkeypatch) -> None:
    parts = Parts()
    store = Segments({}, parts, tmp_path / "worker")
    table = pa.table({"id": [1, 2, 2], "__key1": ["x", "x", "y"], ATTEMPTS: pa.array([0, 0, 1], pa.int32())})
    store.write("parked/1", table)
    entries = [{"id": "parked/1", "rows": 3, "size": 10, "at": 40}]
    manifest = json.dumps({"format": 1, "columns": "", "number": 1, "segments": entries}).encode()
    saved = Saved(None, 3, 10, store.commit(), manifest, "lookup_a")
    question = Question(query="s", number=0, saved={5: saved}, tables=Parked(key=("id", "")), now=50, show=0)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    (row,) = [r for b in count_partition(iter([rows_of(parts)]), question=question) for r in b.to_pylist()]
    counted = read_counted(row["counted"], row["shown"])
    assert (row["table"], counted.under, counted.keys) == ("parked", (Under(rows=3),), 3)
    assert (counted.oldest, counted.newest) == (40, 40)


def test_the_hash_is_no_part_of_a_row_that_is_read() -> None:
    from runtime.inspect.rows import rows_json, rows_text

    rows = segment([(1, "a\x1b", 2, 1_000)])
    cells = rows_text(rows, ("k",), "Europe/Berlin", lambda write: f"after {write}")
    assert cells == [
        ["k", "r", "count", "last write", "expires"],
        ["1", "a\x1b", "2", "1970-01-01 01:00:01", "after 1000"],
    ]
    (row,) = rows_json(rows, ("k",), 500, 1_600)
    assert row == {
        "key": {"k": 1},
        "row": {"k": 1, "r": "a\x1b", "__count": 2},
        "last-write": "1970-01-01T00:00:01.000Z",
        "expires": "1970-01-01T00:00:01.500Z",
        "expired": True,
    }
    assert HASH not in row["row"]

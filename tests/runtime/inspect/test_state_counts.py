"""Counting a stored state table: newest versions only, expiry by the last write, keys, whatever segments there are."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.plans.errors import RunError
from hintplan.runtime.inspect import counts as counts_module
from hintplan.runtime.inspect.counts import HOUR, Under, count_parked, count_rows
from hintplan.runtime.inspect.partition import Kept, count_parked_rows, count_tables
from hintplan.runtime.operators.lookup_retry import ATTEMPTS
from hintplan.runtime.state.layout import COUNT, HASH, WRITE, StateLayout, prefixed_hash
from hintplan.runtime.state.manifest import SegmentEntry, StateTable, write_manifest
from hintplan.runtime.storage.committed import manifests_in_force
from hintplan.runtime.storage.files import Files, files_at
from hintplan.runtime.storage.manifest import Manifest
from hintplan.runtime.storage.partition import open_partition
from hintplan.runtime.storage.place import Place
from hintplan.runtime.storage.read import read_manifest_file

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


def stored(tmp_path: Path, segments: dict[str, list[pa.Table]], manifest: bytes) -> tuple[Files, Manifest]:
    """A partition with these segments, each in pieces, as a batch leaves it."""
    files, place = files_at(str(tmp_path)), Place(root=str(tmp_path), operator="join_a")
    store = open_partition(files, place, partition=0, batch=0)
    for name, pieces in segments.items():
        store.write_pieces(name, iter(pieces)) if len(pieces) > 1 else store.write(name, pieces[0])
    store.publish(manifest, 1, 1)
    found = manifests_in_force(files, place.scales, 0)
    assert found is not None
    return files, read_manifest_file(files, found.paths[0])


def two_segments(tmp_path: Path) -> tuple[Files, Manifest]:
    first = segment([(key, "a", 1, 100) for key in range(50)])
    second = segment([(7, "a", 0, 200), (8, "b", 1, 200)])
    entries = (
        SegmentEntry("left/1", 50, first.nbytes, 100, 100, False),
        SegmentEntry("left/2", 2, second.nbytes, 200, 200, True),
    )
    table = StateTable(fingerprint=LAYOUT.fingerprint, rows=50, segments=entries)
    pieces = {"left/1": [first.slice(0, 30), first.slice(30)], "left/2": [second]}
    return stored(tmp_path, pieces, write_manifest({"left": table}) or b"")


def test_segments_of_a_partition_are_counted_where_they_are(tmp_path: Path) -> None:
    files, manifest = two_segments(tmp_path)
    ((table, counted),) = count_tables(files, manifest, [Kept(layout=LAYOUT, ttls=(0, 150))], now=300, show=1)
    # 50 rows of 50 keys, one deleted, one more under the same 50 keys; after 150 ms only that one is left.
    assert (table, counted.under) == ("left", (Under(rows=50), Under(rows=1, expired=49, soon=1)))
    assert counted.keys == 49
    assert counted.shown["r"].to_pylist() == ["b"]


def test_the_buckets_of_a_table_by_time_are_counted_each(tmp_path: Path) -> None:
    layout = replace(LAYOUT, by_time=True)
    tables, pieces = {}, {}
    for end, keys in ((-5000, 3), (5000, 2)):
        rows, name = segment([(key, "a", 1, 100) for key in range(keys)]), layout.at(end).name
        entry = SegmentEntry(f"{name}/1", keys, rows.nbytes, 100, 100, False)
        tables[name] = StateTable(fingerprint=layout.fingerprint, rows=keys, segments=(entry,))
        pieces[f"{name}/1"] = [rows]
    files, manifest = stored(tmp_path, pieces, write_manifest(tables) or b"")
    counts = list(count_tables(files, manifest, [Kept(layout=layout, ttls=(0,))], now=300, show=0))
    assert [(table, counted.under[0].rows) for table, counted in counts] == [("left", 3), ("left", 2)]
    assert not list(count_tables(files, manifest, [Kept(layout=LAYOUT, ttls=(0,))], now=300, show=0))


@pytest.mark.parametrize("damage", ["removed", "cut off", "changed"])
def test_a_segment_that_is_not_what_was_written_is_named(tmp_path: Path, damage: str) -> None:
    files, manifest = two_segments(tmp_path)
    (path,) = tmp_path.glob("0/0/*.arrow")
    data = path.read_bytes()
    path.unlink()
    if damage != "removed":
        path.write_bytes(data[:-8] if damage == "cut off" else data[:300] + b"\xff" + data[301:])
    with pytest.raises(RunError, match=re.escape(f"{path} ")):
        list(count_tables(files, manifest, [Kept(layout=LAYOUT, ttls=(0,))], now=300, show=0))


def test_parked_rows_are_found_by_the_columns_that_a_lookup_asks_with(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 2], "__key1": ["x", "x", "y"], ATTEMPTS: pa.array([0, 0, 1], pa.int32())})
    entries = [{"id": "parked/1", "rows": 3, "size": 10, "at": 40}]
    document = json.dumps({"format": 1, "columns": "", "number": 1, "segments": entries}).encode()
    files, manifest = stored(tmp_path, {"parked/1": [table]}, document)
    counted = count_parked_rows(files, manifest, ("id", ""), show=0)
    assert counted is not None
    assert (counted.under, counted.keys, counted.oldest, counted.newest) == ((Under(rows=3),), 3, 40, 40)


def test_the_hash_is_no_part_of_a_row_that_is_read() -> None:
    from hintplan.runtime.inspect.rows import row_cells, rows_json

    rows = segment([(1, "a\x1b", 2, 1_000)])
    cells = row_cells(rows, ("k",), "Europe/Berlin", lambda write: f"after {write}")
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

"""Reading segments: those of a range of hashes, and none that is not whole."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.storage import partition as writing
from hintplan.runtime.storage.local_files import LocalFiles
from hintplan.runtime.storage.manifest import SegmentRef
from hintplan.runtime.storage.open_segments import OpenSegments
from hintplan.runtime.storage.partition import open_partition
from hintplan.runtime.storage.place import END, Place, bounds
from hintplan.runtime.storage.read import read_manifest_file, read_segment

LOWEST = -END


def rows(*hashes: int) -> pa.Table:
    return pa.table({"__hash": pa.array(sorted(hashes), pa.int64()), "n": pa.array(range(len(hashes)), pa.int64())})


def published(root: Path, *pieces: pa.Table, inline: bool) -> SegmentRef:
    """A segment of ``pieces`` as a store writes it: in its manifest, or as a file."""
    files = LocalFiles(str(root))
    store = open_partition(files, Place(root=str(root), operator="fold"), 0, 0)
    if inline:
        store.write("a", pa.concat_tables(pieces))
    else:
        store.write_pieces("a", pieces)
    store.publish(b"{}", 0, 0)
    (ref,) = read_manifest_file(files, "0/0/0.1.manifest").segments.values()
    return ref


def limited(ref: SegmentRef, low: int, high: int) -> SegmentRef:
    return SegmentRef(ref.file, ref.offset, ref.length, ref.crc, low, high)


PIECES = {
    "one piece": (rows(LOWEST, -5, -5, 0, 3, 3, 3, 9, END - 1),),
    "several pieces": (rows(LOWEST, -5, -5), rows(-5, 0, 3), rows(3, 3), rows(9, END - 1)),
    "one row": (rows(7),),
    "no row": (rows(),),
}
EDGES = (LOWEST, -6, -5, -4, 0, 1, 3, 4, 9, END - 1, END)


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES.keys())
@pytest.mark.parametrize("inline", [True, False], ids=["in the manifest", "as a file"])
def test_a_range_of_hashes_is_what_a_mask_would_choose(
    tmp_path: Path, pieces: tuple[pa.Table, ...], inline: bool
) -> None:
    files, opened, whole = LocalFiles(str(tmp_path)), OpenSegments(), pa.concat_tables(pieces)
    ref = published(tmp_path, *pieces, inline=inline)
    assert read_segment(files, ref, opened) == whole
    hashes = whole["__hash"].to_pylist()
    for low in EDGES[:-1]:
        for high in (edge for edge in EDGES if edge >= low):
            mask = pa.array([low <= value < high for value in hashes], pa.bool_())
            assert read_segment(files, limited(ref, low, high), opened) == whole.filter(mask)


def test_the_ranges_of_all_partitions_make_up_a_segment(tmp_path: Path) -> None:
    hashes = np.random.default_rng(3).integers(LOWEST, END - 1, 1000, np.int64).tolist()
    whole = rows(*hashes)
    files, ref = LocalFiles(str(tmp_path)), published(tmp_path, whole, inline=False)
    parts = [read_segment(files, limited(ref, *bounds(number, 7)), OpenSegments()) for number in range(7)]
    assert pa.concat_tables(parts).combine_chunks() == whole
    assert pc.sum(whole["n"]).as_py() == sum(pc.sum(part["n"]).as_py() for part in parts)


def flip(path: Path, where: int) -> None:
    data = bytearray(path.read_bytes())
    data[where % len(data)] ^= 1
    path.write_bytes(data)


def cut(path: Path, where: int) -> None:
    path.write_bytes(path.read_bytes()[: where % path.stat().st_size])


def zeros(path: Path, where: int) -> None:
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: where % size // 2].ljust(size, b"\0"))


@pytest.mark.parametrize("damage", [flip, cut, zeros], ids=lambda damage: damage.__name__)
def test_a_segment_that_is_not_what_was_written_is_refused_with_its_path(
    tmp_path: Path, damage: Callable[[Path, int], None]
) -> None:
    ref = published(tmp_path, rows(*range(100)), inline=False)
    file, rng = tmp_path / ref.file, random.Random(1)
    right = file.read_bytes()
    for _ in range(50):
        damage(file, rng.randrange(len(right)))
        with pytest.raises(RunError, match=r"has not the \d+ bytes that were written") as caught:
            read_segment(LocalFiles(str(tmp_path)), ref, OpenSegments())
        assert str(file) in str(caught.value)
        file.write_bytes(right)


@pytest.mark.parametrize("inline", [True, False], ids=["in the manifest", "as a file"])
def test_no_changed_bit_of_a_partition_is_read(tmp_path: Path, inline: bool) -> None:
    """A bit of each byte: the manifest is refused, or the segment, or both say what was written."""
    whole = rows(*range(20))
    ref = published(tmp_path, whole, inline=inline)
    name, rng = "0/0/0.1.manifest", random.Random(1)
    for file in {name, ref.file}:
        right = (tmp_path / file).read_bytes()
        refused = 0
        for at, byte in enumerate(right):
            (tmp_path / file).write_bytes(right[:at] + bytes([byte ^ 1 << rng.randrange(8)]) + right[at + 1 :])
            files = LocalFiles(str(tmp_path))
            try:
                (found,) = read_manifest_file(files, name).segments.values()
                assert read_segment(files, found, OpenSegments()) == whole, f"byte {at} of {file}"
            except RunError:
                refused += 1
        # What is between a manifest and its segment, to begin where Arrow reads it in place, says nothing.
        assert refused > len(right) - 64
        (tmp_path / file).write_bytes(right)


def test_a_segment_in_a_manifest_that_is_not_what_was_written_is_refused(tmp_path: Path) -> None:
    ref = published(tmp_path, rows(*range(100)), inline=True)
    file = tmp_path / ref.file
    flip(file, file.stat().st_size - ref.length // 2)
    with pytest.raises(RunError, match=f"{file} has not the"):
        read_segment(LocalFiles(str(tmp_path)), ref, OpenSegments())


@pytest.mark.parametrize("inline", [True, False], ids=["in the manifest", "as a file"])
def test_a_segment_whose_file_is_gone_is_refused(tmp_path: Path, inline: bool) -> None:
    ref = published(tmp_path, rows(1), inline=inline)
    (tmp_path / ref.file).unlink()
    with pytest.raises(RunError, match=f"{ref.file} is missing"):
        read_segment(LocalFiles(str(tmp_path)), ref, OpenSegments())


def test_a_segment_up_to_a_limit_stands_in_its_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "INLINE_BYTES", 160)
    files = LocalFiles(str(tmp_path))
    store = open_partition(files, Place(root=str(tmp_path), operator="fold"), 0, 0)
    store.write("small", rows(*range(10)))
    store.write("large", rows(*range(11)))
    store.publish(b"{}", 0, 0)
    kinds = {
        name: ref.file.rpartition(".")[2]
        for name, ref in read_manifest_file(files, "0/0/0.1.manifest").segments.items()
    }
    assert kinds == {"small": "manifest", "large": "arrow"}

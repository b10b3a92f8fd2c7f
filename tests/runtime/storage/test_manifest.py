"""The file of a manifest: what is written is read, and what was cut off or changed is refused by its path."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.storage.manifest import (
    FORMAT,
    Manifest,
    SegmentRef,
    body_start,
    decode_manifest,
    encode_manifest,
    offsets,
)

INLINE = (b"first", b"", b"x" * 64, b"last one")
WHOLE = Manifest(
    operator="join_ö_c",
    lineage="0123456789abcdef",
    batch=12,
    run=1763860000123,
    partition=3,
    partitions=8,
    state_rows=1 << 40,
    state_bytes=7,
    tables=b'{"format":1,"tables":{}}',
    segments={
        "left/1": SegmentRef("0/3/9.7.ab.arrow", 0, 1 << 33, 0xFFFFFFFF),
        "left/2": SegmentRef("0/3/12.8.manifest", 64, 5, 0, low=-(1 << 63), high=1 << 63),
    },
)
EMPTY = Manifest(operator="fold", batch=0, run=1)
PATH = "/data/checkpoint/0/3/12.8.manifest"


@pytest.mark.parametrize("manifest", [WHOLE, EMPTY], ids=["whole", "empty"])
@pytest.mark.parametrize("inline", [(), INLINE], ids=["without segments", "with segments"])
def test_what_is_written_is_read(manifest: Manifest, inline: tuple[bytes, ...]) -> None:
    data = pa.py_buffer(encode_manifest(manifest, inline))
    assert decode_manifest(data, PATH) == manifest
    behind = data[body_start(data, PATH) :]
    for piece, offset in zip(inline, offsets(map(len, inline)), strict=True):
        assert behind.slice(offset, len(piece)).to_pybytes() == piece


def test_segments_begin_where_arrow_reads_them_in_place() -> None:
    data = pa.py_buffer(encode_manifest(WHOLE, INLINE))
    begin = body_start(data, PATH)
    assert begin % 64 == 0
    assert offsets([5, 0, 64, 8]) == [0, 64, 64, 128]


def test_a_manifest_that_is_cut_off_anywhere_before_its_end_is_refused() -> None:
    data = encode_manifest(WHOLE, ())
    end = data.rindex(b"}") + 2
    for length in range(end):
        with pytest.raises(RunError, match=r"is cut off|does not begin") as caught:
            decode_manifest(data[:length], PATH)
        assert str(caught.value).startswith(f"{PATH} ")


def test_a_manifest_with_a_changed_byte_is_refused_or_says_the_same() -> None:
    data = encode_manifest(WHOLE, ())
    for place in range(data.rindex(b"}") + 1):
        changed = bytearray(data)
        changed[place] ^= 0x01
        try:
            found = decode_manifest(bytes(changed), PATH)
        except RunError as error:
            assert str(error).startswith(PATH)  # noqa: PT017 - it may as well be read
        else:
            assert (place < 40, found) == (True, WHOLE), "blanks of the first line say nothing"


@pytest.mark.parametrize("data", [b"", b"\n", b"PAR1", b"\0" * 4096, b"ARROW1\0\0", b"hintplan-state"])
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(RunError, match="does not begin as a manifest does"):
        decode_manifest(data, PATH)


def test_another_format_is_refused_by_its_number() -> None:
    data = encode_manifest(EMPTY, ()).replace(b"hintplan-state %d" % FORMAT, b"hintplan-state %d" % (FORMAT + 1), 1)
    with pytest.raises(RunError, match=f"{PATH} has state format {FORMAT + 1}, this version of hintplan reads format"):
        decode_manifest(data, PATH)

"""The file of a manifest: what is written is read, and what was cut off or changed is refused by its path."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.storage.manifest import (
    FORMAT,
    WATERMARK_FORMAT,
    Manifest,
    SegmentRef,
    SplitMark,
    StoredWatermark,
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
MARKED = replace(
    WHOLE,
    watermark=StoredWatermark(
        after=-(1 << 63),
        since=1763860000000,
        marks=((SplitMark("", (1 << 63) - 1, 5),), (), (SplitMark("t/0", -1, 6), SplitMark("t/1", -(1 << 63), 7))),
    ),
)
PATH = "/data/checkpoint/0/3/12.8.manifest"


@pytest.mark.parametrize("manifest", [WHOLE, EMPTY, MARKED], ids=["whole", "empty", "with a watermark"])
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
    newer = WATERMARK_FORMAT + 1
    data = encode_manifest(EMPTY, ()).replace(b"hintplan-state %d" % FORMAT, b"hintplan-state %d" % newer, 1)
    wanted = f"{PATH} has state format {newer}, this version of hintplan reads formats {FORMAT} and {WATERMARK_FORMAT}"
    with pytest.raises(RunError, match=wanted):
        decode_manifest(data, PATH)


def test_a_manifest_without_a_watermark_has_the_bytes_that_it_had_before_there_were_any() -> None:
    before = (
        b'hintplan-state 1 140 0d072e84          \n{"operator":"fold","batch":0,"run":1,"lineage":null,"partition":0,'
        b'"partitions":1,"state_rows":0,"state_bytes":0,"tables":null,"segments":{}}\n'
    )
    assert encode_manifest(EMPTY, ()).rstrip(b"\0") == before


def test_older_code_refuses_a_manifest_with_a_watermark_by_its_format() -> None:
    data = encode_manifest(MARKED, ())
    assert data.split()[1] == b"%d" % WATERMARK_FORMAT
    header = json.loads(data[40 : 40 + int(data.split()[2])])
    assert header["watermark"] == {
        "after": -(1 << 63),
        "since": 1763860000000,
        "marks": [[["", (1 << 63) - 1, 5]], [], [["t/0", -1, 6], ["t/1", -(1 << 63), 7]]],
    }

"""Segments that stay open: the last used ones, within their limits, as long as a state names them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hintplan.runtime.storage.open_segments import OpenSegments


def table(rows: int = 1000) -> pa.Table:
    return pa.table({"k": pa.array(range(rows), pa.int64())})


def kept(opened: OpenSegments, names: str) -> str:
    return "".join(name for name in names if opened.find((f"/s/0/1/{name}", 0)) is not None)


@pytest.mark.parametrize("opened", [OpenSegments(limit=20_000), OpenSegments(segments=2)], ids=["bytes", "segments"])
def test_those_that_were_not_used_for_longest_give_way(opened: OpenSegments) -> None:
    for name in "ab":
        opened.keep((f"/s/0/1/{name}", 0), table())
    assert opened.find(("/s/0/1/a", 0)) is not None
    opened.keep(("/s/0/1/c", 0), table())
    assert kept(opened, "abc") == "ac"


def test_one_that_is_too_large_alone_is_not_kept() -> None:
    opened = OpenSegments(limit=7_000)
    opened.keep(("/s/0/1/a", 0), table())
    assert kept(opened, "a") == ""
    opened.keep(("/s/0/1/b", 0), table(10))
    assert kept(opened, "b") == "b"


def test_keeping_a_segment_again_counts_it_once() -> None:
    opened = OpenSegments(limit=20_000)
    for _ in range(5):
        opened.keep(("/s/0/1/a", 0), table())
    opened.keep(("/s/0/1/b", 0), table())
    assert kept(opened, "ab") == "ab"


def test_segments_of_one_file_are_told_apart_by_where_they_begin() -> None:
    opened, one, two = OpenSegments(), table(1), table(2)
    opened.keep(("/s/0/1/m", 0), one)
    opened.keep(("/s/0/1/m", 64), two)
    assert opened.find(("/s/0/1/m", 0)) is one
    assert opened.find(("/s/0/1/m", 64)) is two


def test_what_is_no_longer_named_is_let_go_in_this_folder_only() -> None:
    opened = OpenSegments()
    places = [("/s/0/1/a", 0), ("/s/0/1/b", 0), ("/s/0/10/a", 0), ("/s/0/2/a", 0)]
    for place in places:
        opened.keep(place, table(1))
    opened.forget_unless("/s/0/1", {places[1]}.__contains__)
    assert [place for place in places if opened.find(place) is not None] == places[1:]

"""Watermarks of sources with several splits, idle sources and ended sources, by calculations by hand."""

from __future__ import annotations

from tests.runtime.event_time.times import FOREVER, NEVER
from tests.runtime.event_time.watermarks import Marks, moved


def watermark(marks: Marks, *, delay: int = 0, idle_timeout: int = 0, now: int = 0) -> int | None:
    return marks.watermark(delay=delay, idle_timeout=idle_timeout, now=now)


def test_a_source_without_rows_holds_all_back() -> None:
    assert watermark(Marks()) == NEVER
    assert moved(NEVER, [NEVER, 5]) == NEVER


def test_the_watermark_is_the_lowest_split_less_the_delay() -> None:
    marks = Marks()
    marks.see("0", 20, now=0)
    marks.see("1", 8, now=0)
    assert watermark(marks, delay=2) == 6
    marks.see("1", 30, now=0)
    assert watermark(marks, delay=2) == 18


def test_a_split_counts_from_its_first_row() -> None:
    marks = Marks()
    marks.see("0", 20, now=0)
    assert watermark(marks) == 20
    marks.see("1", 8, now=0)
    assert moved(20, [watermark(marks)]) == 20


def test_rows_without_a_base_move_nothing() -> None:
    marks = Marks()
    marks.see("", NEVER, now=0)
    assert watermark(marks, delay=5) == NEVER
    marks.see("", 20, now=0)
    marks.see("", NEVER, now=0)
    assert watermark(marks) == 20


def test_a_silent_split_does_not_count() -> None:
    marks = Marks()
    marks.see("0", 8, now=0)
    marks.see("1", 20, now=400)
    assert watermark(marks, idle_timeout=500, now=499) == 8
    assert watermark(marks, idle_timeout=500, now=500) == 20
    assert watermark(marks, idle_timeout=500, now=900) is None
    marks.see("0", 9, now=950)
    assert watermark(marks, idle_timeout=500, now=950) == 9


def test_a_source_that_never_had_a_row_is_idle_some_time_after_the_first_batch() -> None:
    marks = Marks()
    marks.begin(100)
    marks.begin(400)
    assert watermark(marks, idle_timeout=500, now=599) == NEVER
    assert watermark(marks, idle_timeout=500, now=600) is None


def test_the_watermark_stays_if_all_sources_are_idle() -> None:
    assert moved(7, [None, None]) == 7


def test_an_ended_source_holds_nothing_back() -> None:
    ended, empty = Marks(), Marks()
    ended.see("0", 8, now=0)
    ended.end()
    empty.end()
    assert watermark(ended, delay=3, idle_timeout=1, now=9) == FOREVER
    assert watermark(empty) == FOREVER
    assert moved(5, [FOREVER, 30]) == 30


def test_a_longer_delay_does_not_move_the_watermark_back() -> None:
    marks = Marks()
    marks.see("", 20, now=0)
    assert moved(18, [watermark(marks, delay=10)]) == 18

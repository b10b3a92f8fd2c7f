"""The watermark of an operator, batch by batch, calculated by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.engine.marks import Marks
from hintplan.runtime.engine.watermarks import EventTime, Holder, MarkSource, Moved, moved_watermark
from hintplan.runtime.operator import FOREVER, NEVER
from hintplan.runtime.storage.manifest import StoredWatermark

ONE, TWO = MarkSource(number=3, delay=10), MarkSource(number=5)
BELOW = MarkSource(number=4, is_operator=True)


def moved_by(stored: StoredWatermark | None, marks: Marks, sources: Sequence[MarkSource], now: int) -> Moved:
    return moved_watermark(stored, marks, EventTime(number=99, sources=tuple(sources)), now)


def after_each(sources: Sequence[MarkSource], batches: Sequence[tuple[int, Marks]]) -> list[int]:
    """The watermark after batches, of which each has its time and its marks."""
    stored, found = None, []
    for now, marks in batches:
        moved = moved_by(stored, marks, sources, now)
        assert moved.watermarks.before == (found[-1] if found else NEVER)
        found.append(moved.watermarks.after)
        stored = moved.stored
    return found


def test_the_delay_is_taken_off_and_the_watermark_never_goes_back() -> None:
    assert after_each([ONE], [(0, {(3, ""): 100}), (1, {(3, ""): 80}), (2, {}), (3, {(3, ""): 111})]) == [
        90,
        90,
        90,
        101,
    ]


def test_a_source_without_rows_holds_all_and_marks_of_others_say_nothing() -> None:
    batches: list[tuple[int, Marks]] = [(0, {(3, ""): 100, (9, ""): 1}), (1, {(5, ""): 20}), (2, {(5, ""): 300})]
    assert after_each([ONE, TWO], batches) == [NEVER, 20, 90]


def test_rows_whose_base_is_null_count_and_move_nothing() -> None:
    batches: list[tuple[int, Marks]] = [
        (0, {(5, "a"): 100}),
        (1, {(5, "b"): NEVER}),
        (2, {(5, "a"): 200}),
        (3, {(5, "b"): 150}),
    ]
    assert after_each([TWO], batches) == [100, 100, 100, 150]


def test_a_split_is_left_out_when_it_has_been_silent_for_the_timeout() -> None:
    source = MarkSource(number=5, idle_timeout=1_000)
    batches: list[tuple[int, Marks]] = [
        (0, {(5, "a"): 100, (5, "b"): 40}),
        (999, {(5, "a"): 200}),
        (1_000, {(5, "a"): 300}),
        (1_001, {(5, "b"): 310}),
        (1_002, {(5, "b"): 330}),
    ]
    assert after_each([source], batches) == [40, 40, 300, 300, 300]


def test_a_table_that_never_had_a_row_is_idle_from_the_first_batch_on() -> None:
    sources = [MarkSource(number=3, idle_timeout=500), TWO]
    assert after_each(sources, [(100, {(5, ""): 7}), (599, {}), (600, {}), (601, {(3, ""): 5})]) == [NEVER, NEVER, 7, 7]


def test_if_all_are_idle_nothing_moves_and_the_operators_above_leave_this_one_out() -> None:
    source = MarkSource(number=5, idle_timeout=500)
    first = moved_by(None, {(5, ""): 100}, [source], 0)
    idle = moved_by(first.stored, {}, [source], 500)
    assert (idle.watermarks.after, idle.holder, idle.mark(0)) == (100, None, None)
    assert (first.holder, first.mark(30)) == (Holder(0, ""), 70)
    batches: list[tuple[int, Marks]] = [
        (0, {(4, ""): 100, (3, ""): 50}),
        (1, {(4, ""): None, (3, ""): 500}),
        (2, {(4, ""): 600}),
    ]
    assert after_each([BELOW, ONE], batches) == [40, 490, 490]


def test_an_operator_that_is_not_called_any_more_is_idle_after_the_timeout_of_its_sources() -> None:
    below = MarkSource(number=4, idle_timeout=500, is_operator=True)
    batches: list[tuple[int, Marks]] = [
        (0, {(4, ""): 30, (3, ""): 50}),
        (499, {(3, ""): 110}),
        (500, {(3, ""): 120}),
        (501, {(4, ""): 130, (3, ""): 200}),
    ]
    assert after_each([below, ONE], batches) == [30, 30, 110, 130]


def test_an_edited_delay_counts_at_once_for_marks_that_were_stored_before() -> None:
    stored = moved_by(None, {(3, ""): 100}, [ONE], 0).stored
    edited = [MarkSource(number=3, delay=delay) for delay in (0, 10, 99)]
    assert [moved_by(stored, {}, [source], 1).watermarks.after for source in edited] == [100, 90, 90]


def test_the_end_of_a_source_is_the_end_of_all_its_splits() -> None:
    end: Marks = {(5, None): FOREVER}
    assert after_each([TWO], [(0, {(5, "a"): 100, (5, "b"): 40}), (1, end)]) == [40, FOREVER]
    assert after_each([ONE, TWO], [(0, end), (1, {(3, None): FOREVER})]) == [NEVER, FOREVER]
    assert moved_by(None, end, [TWO], 0).mark(5_000) == FOREVER


def test_a_source_that_has_ended_leaves_the_watermark_to_the_others() -> None:
    batches: list[tuple[int, Marks]] = [
        (0, {(3, ""): 100, (5, ""): 40}),
        (1, {(5, ""): FOREVER}),
        (2, {(3, ""): 170}),
        (3, {(3, ""): FOREVER}),
    ]
    assert after_each([ONE, TWO], batches) == [40, 90, 160, FOREVER]


def test_a_source_that_is_read_once_never_holds_back() -> None:
    once = MarkSource(number=5, delay=7, read_once=True)
    assert after_each([ONE, once], [(0, {(5, ""): 40}), (1, {(3, ""): 100}), (2, {(3, ""): 200})]) == [NEVER, 90, 190]
    first = moved_by(None, {}, [once], 0)
    assert (first.watermarks.after, first.mark(0)) == (FOREVER, FOREVER)


def test_the_end_of_a_source_does_not_close_the_windows_of_one_that_is_idle() -> None:
    idle = MarkSource(number=3, delay=10, idle_timeout=500)
    batches: list[tuple[int, Marks]] = [
        (0, {(3, ""): 100, (5, ""): 40}),
        (500, {(5, ""): FOREVER}),
        (600, {(3, ""): 170}),
        (700, {(3, ""): FOREVER}),
    ]
    for ending in (TWO, MarkSource(number=5, read_once=True)):
        assert after_each([idle, ending], batches)[1:] == [90 if ending.read_once else 40, 160, FOREVER]
    below: Marks = {(4, ""): None, (5, ""): FOREVER}
    assert after_each([BELOW, TWO], [(0, {(4, ""): 30, (5, ""): 20}), (1, below), (2, {(4, ""): 50})]) == [20, 20, 50]


def test_an_operator_as_a_source_is_stored_without_times_so_that_it_writes_only_what_moves() -> None:
    first = moved_by(None, {(4, ""): 100}, [BELOW], 7).stored
    assert moved_by(first, {(4, ""): 100}, [BELOW], 8).stored == first


def test_a_stored_watermark_of_other_sources_is_refused() -> None:
    stored = moved_by(None, {(5, ""): 100}, [TWO], 0).stored
    with pytest.raises(RunError, match="has 1 sources, and the operator has 2"):
        moved_by(stored, {}, [ONE, TWO], 1)

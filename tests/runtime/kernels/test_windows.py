"""Windows of times: the same as the models have, for all types, in zones, with negative offsets and before 1970."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from hintplan.plans.declarations.windows import Window
from hintplan.runtime.kernels.windows import (
    closing_time,
    first_window_ends,
    last_window_ends,
    milliseconds,
    rowtimes,
    slice_ends,
    timestamps,
    wall_clock,
    window_starts,
    windows_of,
)
from tests.runtime.event_time.models import Windows
from tests.runtime.event_time.times import Zone

MINUTE, HOUR = 60_000, 3_600_000
ZONES = ("Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca")
WINDOWS = [
    Window(type="tumble", size="5 s"),
    Window(type="tumble", size="5 s", offset="2 s"),
    Window(type="tumble", size="7 s", offset="-2500 ms"),
    Window(type="hop", size="10 s", slide="5 s"),
    Window(type="hop", size="12 s", slide="4 s", offset="-1 s"),
    Window(type="cumulate", size="15 s", step="5 s"),
    Window(type="cumulate", size="15 s", step="3 s", offset="-4 s"),
]


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: f"{window.over('ts')}")
def test_a_time_is_in_the_windows_of_the_model(window: Window) -> None:
    model = Windows(window.type, window.size_ms, window.step_ms, window.offset_ms)
    times = np.unique(np.random.default_rng(1).integers(-60_000, 60_000, 500))
    times = np.concatenate((times, np.arange(-20_000, 20_000, 500), np.arange(-20_001, 20_000, 500)))
    ends = slice_ends(window, times)
    places, window_ends = windows_of(window, ends)
    starts = window_starts(window, window_ends)
    for place, time in enumerate(times.tolist()):
        here = places == place
        assert list(zip(starts[here].tolist(), window_ends[here].tolist(), strict=True)) == model.of(time)
        assert last_window_ends(window, ends[[place]])[0] == model.of(time)[-1][1]
        assert ends[place] == model.of(time)[0][1]


@pytest.mark.parametrize(
    "window",
    [
        Window(type="hop", size="10 s", slide="3 s"),
        Window(type="hop", size="10 s", slide="4 s", offset="-1500 ms"),
        Window(type="hop", size="3 s", slide="7 s"),
        Window(type="hop", size="4 s", slide="6 s", offset="1 s"),
    ],
    ids=lambda window: f"{window.over('ts')}",
)
def test_a_time_is_in_the_windows_of_the_model_if_the_size_is_no_multiple_of_the_slide(window: Window) -> None:
    model = Windows("hop", window.size_ms, window.step_ms, window.offset_ms)
    times = np.arange(-30_000, 30_000, 250)
    ends = slice_ends(window, times)
    places, window_ends = windows_of(window, ends)
    starts = window_starts(window, window_ends)
    for place, time in enumerate(times.tolist()):
        here = places == place
        expected = model.of(time)
        assert list(zip(starts[here].tolist(), window_ends[here].tolist(), strict=True)) == expected
        first, last = (of(window, ends[[place]])[0] for of in (first_window_ends, last_window_ends))
        assert (first, last) == (expected[0][1], expected[-1][1]) if expected else first > last


@pytest.mark.parametrize("name", ZONES)
def test_the_clock_of_a_zone_is_that_of_the_model(name: str) -> None:
    zone = Zone(name)
    times = np.random.default_rng(2).integers(at("1965-01-01"), at("2030-01-01"), 2000)
    assert wall_clock(times, name).tolist() == [zone.wall(time) for time in times.tolist()]


@pytest.mark.parametrize("name", ZONES)
def test_a_window_closes_when_no_later_time_can_be_in_it(name: str) -> None:
    zone = Zone(name)
    times = range(at("2024-02-01"), at("2024-12-01"), 15 * MINUTE)
    # A clock that goes back shows a wall clock time again: the last of the times with a lower one counts.
    walls = [zone.wall(time) for time in times]
    lowest_from_here = np.minimum.accumulate(walls[::-1])[::-1].tolist()
    ends = np.arange(walls[1], walls[-1], 15 * MINUTE)
    shown = {*walls}
    later = [times[bisect_left(lowest_from_here, end)] for end in ends.tolist()]
    # As in Flink, the last ms of a window in a gap is the first one after the gap.
    wanted = [time - (end - 15 * MINUTE in shown) for time, end in zip(later, ends.tolist(), strict=True)]
    closing = closing_time(ends, name)
    assert closing.tolist() == wanted
    assert (np.diff(closing) >= 0).all()


@pytest.mark.parametrize("name", ZONES)
def test_a_window_closes_as_in_the_model(name: str) -> None:
    zone = Zone(name)
    ends = np.arange(at("2024-01-01"), at("2025-01-01"), 10 * MINUTE)
    assert closing_time(ends, name).tolist() == [zone.closes(end) for end in ends.tolist()]


def flink_timer(wall: int, zone: ZoneInfo) -> int:
    """The watermark that closes a window whose last ms is ``wall``, by Flink's TimeWindowUtil.toEpochMillsForTimer.

    Java shifts a time in a gap behind it, and takes the first of two equal ones, as Python does with a fold of 0.
    """

    def java(wall: int) -> int:
        local = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=wall)
        return round(local.replace(tzinfo=zone, fold=0).timestamp() * 1000)

    first, an_hour_later = java(wall), java(wall + HOUR)
    if first == an_hour_later:
        return first - first % HOUR
    return first + HOUR if an_hour_later - first > HOUR else first


@pytest.mark.parametrize(
    ("name", "gap", "overlap"),
    [
        ("Europe/Berlin", "2024-03-31", "2024-10-27"),
        ("America/New_York", "2024-03-10", "2024-11-03"),
        ("Australia/Sydney", "2024-10-06", "2024-04-07"),
    ],
)
def test_a_window_closes_as_in_flink_on_the_days_on_which_clocks_are_changed(name: str, gap: str, overlap: str) -> None:
    for day, hours in ((gap, 23), (overlap, 25)):
        ends = np.arange(at(day), at(day) + 24 * HOUR + 1, 15 * MINUTE)
        closing = closing_time(ends, name)
        assert closing.tolist() == [flink_timer(end - 1, ZoneInfo(name)) for end in ends.tolist()]
        assert closing[-1] - closing[0] == hours * HOUR


def test_the_rule_of_flink_is_the_one_in_its_comments() -> None:
    los_angeles = ZoneInfo("America/Los_Angeles")
    walls = ("2021-03-14T02:00", "2021-03-14T02:59:59", "2021-03-14T03:00", "2021-11-07T01:00", "2021-11-07T02:00")
    wanted = [1615716000000, 1615716000000, 1615716000000, 1636275600000, 1636279200000]
    assert [flink_timer(at(wall), los_angeles) for wall in walls] == wanted


def test_days_in_berlin_have_23_and_25_hours() -> None:
    window = Window(type="tumble", size="1 d", zone="Europe/Berlin")
    for day, hours in (("2024-03-31", 23), ("2024-10-27", 25), ("2024-06-01", 24)):
        ends = np.array([at(day), at(day) + 24 * HOUR])
        assert np.diff(closing_time(ends, window.zone)).tolist() == [hours * HOUR]
    before, after = at("2024-10-26T22:00") - 1, at("2024-10-27T23:00")
    times = np.array([before, before + 1, after - 1, after])
    ends = slice_ends(window, wall_clock(times, window.zone))
    assert ends.tolist() == [at("2024-10-27"), at("2024-10-28"), at("2024-10-28"), at("2024-10-29")]


def test_the_time_of_a_window_is_the_first_of_two_equal_clocks_and_behind_a_gap() -> None:
    ends = np.array([at("2024-10-27T03:00"), at("2024-03-31T02:30"), at("2024-06-01T00:00")])
    wanted = [at("2024-10-27T01:00") - 1, at("2024-03-31T01:30") - 1, at("2024-05-31T22:00") - 1]
    assert rowtimes(ends, "Europe/Berlin").tolist() == wanted
    assert closing_time(ends, "Europe/Berlin").tolist() == [
        at("2024-10-27T02:00") - 1,
        at("2024-03-31T01:00"),
        wanted[2],
    ]


def test_without_a_zone_a_clock_is_the_time() -> None:
    times = np.array([-1, 0, 5])
    assert wall_clock(times, None).tolist() == times.tolist()
    assert closing_time(times, None).tolist() == rowtimes(times, None).tolist() == [-2, -1, 4]


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_timestamps_are_rounded_down_to_milliseconds(kind: pa.DataType) -> None:
    times = pa.array([-1, 0, 999, 1000, -1001], pa.int64()).cast(kind)
    assert milliseconds(times).tolist() == [-1, 0, 0, 1, -2]
    assert timestamps(np.array([-1, 2]), kind).cast(pa.int64()).to_pylist() == [-1000, 2000]


def test_closing_times_rise_with_ends_in_all_zones() -> None:
    for zone in ZONES:
        ends = np.arange(at("1969-12-01"), at("1970-02-01"), 15 * MINUTE)
        assert all(later >= earlier for earlier, later in pairwise(closing_time(ends, zone).tolist()))

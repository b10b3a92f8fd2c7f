"""Durations as Flink 2.3 was measured to accept, refuse and print them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hintplan.plans.declarations.durations import DurationError, format_duration, parse_duration

HOUR, DAY = 3_600_000, 86_400_000

UNITS = (
    "DAYS: (d | day | days), HOURS: (h | hour | hours), MINUTES: (min | m | minute | minutes), "
    "SECONDS: (s | sec | secs | second | seconds), "
    "MILLISECONDS: (ms | milli | millis | millisecond | milliseconds), "
    "MICROSECONDS: (µs | micro | micros | microsecond | microseconds), "
    "NANOSECONDS: (ns | nano | nanos | nanosecond | nanoseconds)"
)


@pytest.mark.parametrize("text", ["1d", "24h", "86400000", "P1D", "1 day", " 1  DAYS ", "p1d", "PT24H", "86400 s"])
def test_every_spelling_of_a_day_is_a_day(text: str) -> None:
    assert parse_duration(text) == DAY


@pytest.mark.parametrize("text", ["1m", "1 M", "1min", "1 minute", "60 secs", "PT1M", "60000000 micros"])
def test_m_means_minute(text: str) -> None:
    assert parse_duration(text) == 60_000


@pytest.mark.parametrize("text", ["0", "0s", "PT0S", "0 ns"])
def test_zero_is_zero(text: str) -> None:
    assert parse_duration(text) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT1H30M", 5_400_000), ("P2DT3S", 172_803_000), ("pt20m", 1_200_000), ("PT1.5S", 1500), ("PT1H-30M", 1_800_000)],
)
def test_iso_8601_is_accepted(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["abc", "-1d", "+5s", "P1W", "PT", "P", "P1DT"])
def test_text_without_a_leading_number_is_refused_as_in_flink(text: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == (
        f"text does not start with a number, and is not a valid ISO-8601 duration format: {text}"
    )


@pytest.mark.parametrize("text", ["PT-1H", "P-1D", "-PT1S", "PT-0.001S"])
def test_negative_iso_durations_are_refused_as_in_flink(text: str) -> None:
    with pytest.raises(ValueError, match=r"^negative duration is not supported$"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_blank_text_is_refused_as_in_flink(text: str) -> None:
    with pytest.raises(ValueError, match=r"^argument is an empty- or whitespace-only string$"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "label", "hint"),
    [
        ("1.5h", ".5h", "write a whole number of a smaller unit, such as '90 min' for 1.5 h"),
        ("1d 2h", "d 2h", "write one number and one unit, such as '26 h' for 1 d 2 h, or ISO-8601, such as 'P1DT2H'"),
        ("1 w", "w", "write '7 d'"),
        ("1 us", "us", None),
        ("1 mins", "mins", "write '1 min'"),
        ("1 hrs", "hrs", "write '1 h'"),
    ],
)
def test_unknown_units_are_refused_as_in_flink_with_what_to_write_instead(
    text: str, label: str, hint: str | None
) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == (
        f"Time interval unit label '{label}' does not match any of the recognized units: {UNITS}"
    )
    assert caught.value.hint == hint


@pytest.mark.parametrize("number", ["9223372036854775807 d", "99999999999999999999", "9" * 5000, "9223372036854775808"])
def test_more_than_a_java_long_of_milliseconds_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be represented as Duration \(numeric overflow\)\.$"):
        parse_duration(number)


def test_the_largest_java_long_is_accepted() -> None:
    assert parse_duration("9223372036854775807 ms") == 2**63 - 1


@pytest.mark.parametrize(("text", "hint"), [("100 ns", "write '1 ms'"), ("1500 micros", "write '2 ms'")])
def test_a_part_of_a_millisecond_is_refused_rather_than_truncated(text: str, hint: str) -> None:
    with pytest.raises(DurationError, match="is not a whole number of milliseconds") as caught:
        parse_duration(text)
    assert caught.value.hint == hint


def test_a_missing_unit_is_refused_where_one_is_required() -> None:
    with pytest.raises(DurationError, match=r"^the duration '5000' has no unit$") as caught:
        parse_duration("5000", require_unit=True)
    assert caught.value.hint == "write its unit: ms, s, min, h or d"
    assert parse_duration("PT5S", require_unit=True) == 5000


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (DAY, "1 d"),
        (36_000_000, "10 h"),
        (26 * HOUR, "26 h"),
        (5_400_000, "90 min"),
        (3_660_000, "61 min"),
        (90_000, "90 s"),
        (1500, "1500 ms"),
        (0, "0 ms"),
        (172_803_000, "172803 s"),
    ],
)
def test_printing_takes_the_largest_unit_that_divides_exactly(milliseconds: int, text: str) -> None:
    assert format_duration(milliseconds) == text


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_what_is_printed_is_read_back(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds), require_unit=True) == milliseconds


@given(st.text(max_size=30))
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    try:
        milliseconds = parse_duration(text)
    except DurationError:
        return
    assert 0 <= milliseconds < 2**63

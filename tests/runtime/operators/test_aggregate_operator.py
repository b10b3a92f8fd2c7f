"""The aggregate kernel against Flink's recorded answers, a record-by-record model, and slicings of the same input."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.aggregates import Run, aggregate, call, inserts
from tests.runtime.changelog import Event, colliding_hash, fold, stable_hash
from tests.runtime.flink_model import AggregateModel

ALL = (
    call("COUNT"),
    call("SUM", "v"),
    call("MIN", "v"),
    call("MAX", "v"),
    call("COUNT", "v", distinct=True),
    call("SUM", "v", distinct=True),
)


def test_row_kinds_follow_the_life_of_a_group():
    run = Run(aggregate(call("COUNT"), call("SUM", "v")))
    assert run.batch(inserts(("a", 1))) == [("+I", ("a", 1, 1))]
    assert run.batch(inserts(("a", 2))) == [("-U", ("a", 1, 1)), ("+U", ("a", 2, 3))]
    assert run.batch([("-D", ("a", 1)), ("-D", ("a", 2))]) == [("-D", ("a", 2, 3))]
    assert run.batch(inserts(("a", 5))) == [("+I", ("a", 1, 5))]


def test_an_upsert_reader_gets_no_update_before():
    run = Run(aggregate(call("COUNT"), kinds=("+I", "+U", "-D")))
    run.batch(inserts(("a", 1)))
    assert run.batch(inserts(("a", 2))) == [("+U", ("a", 2))]
    assert run.batch([("-D", ("a", 1)), ("-D", ("a", 2))]) == [("-D", ("a", 2))]


def test_an_unchanged_result_is_emitted_only_with_a_ttl():
    # Flink emits an identical -U/+U pair on purpose when a TTL is set, to keep state downstream alive.
    for ttl, expected in ((0, []), (1000, [("-U", ("a", 1)), ("+U", ("a", 1))])):
        run = Run(aggregate(call("MAX", "v"), ttl=ttl, changelog=False))
        run.batch(inserts(("a", 1)))
        assert run.batch(inserts(("a", 1))) == expected


def test_a_retraction_before_the_first_insert_is_dropped():
    run = Run(aggregate(call("COUNT")))
    assert run.batch([("-D", ("a", 1)), ("+I", ("a", 1))]) == [("+I", ("a", 1))]


def test_surplus_retractions_are_dropped():
    run = Run(aggregate(call("COUNT"), call("SUM", "v")))
    run.batch(inserts(("a", 1)))
    assert run.batch([("-D", ("a", 1)), ("-D", ("a", 7)), ("+I", ("a", 3))]) == [
        ("-U", ("a", 1, 1)),
        ("+U", ("a", 1, 3)),
    ]


def test_an_update_that_moves_a_row_to_another_group_deletes_the_first():
    run = Run(aggregate(call("COUNT")))
    run.batch(inserts(("a", 1)))
    assert sorted(run.batch([("-U", ("a", 1)), ("+U", ("b", 1))])) == [("+I", ("b", 1)), ("-D", ("a", 1))]


def test_nulls_form_one_group_and_are_skipped_by_calls():
    run = Run(aggregate(call("COUNT"), call("COUNT", "v"), call("SUM", "v"), call("MIN", "v")))
    assert run.batch(inserts((None, None), (None, None))) == [("+I", (None, 2, 0, None, None))]
    assert run.batch(inserts((None, 4)))[-1] == ("+U", (None, 3, 1, 4, 4))


def test_a_row_that_fails_the_filter_still_creates_its_group():
    columns = pa.schema([("k", pa.string()), ("v", pa.int64()), ("f", pa.bool_())])
    calls = (call("COUNT", filter="f"), call("SUM", "v", filter="f"), call("MAX", "v", filter="f"))
    for changelog in (False, True):
        run = Run(aggregate(*calls, columns=columns, changelog=changelog))
        assert run.batch(inserts(("a", 1, False))) == [("+I", ("a", 0, None, None))]
        assert run.batch(inserts(("a", 5, True), ("a", 9, None)))[-1] == ("+U", ("a", 1, 5, 5))


@pytest.mark.parametrize(
    ("function", "arrow", "flink", "values", "expected"),
    [
        ("SUM", pa.int8(), "TINYINT", [127, 127], -2),
        ("SUM", pa.int64(), "BIGINT", [2**63 - 1, 1], -(2**63)),
        ("AVG", pa.int32(), "INT", [-3, -4], -3),
        ("AVG", pa.int32(), "INT", [1, 2], 1),
        ("AVG", pa.float64(), "DOUBLE", [1.0, 2.0], 1.5),
        ("SUM", pa.float64(), "DOUBLE", [None, None], None),
        ("AVG", pa.int32(), "INT", [None], None),
    ],
)
def test_numbers_are_flinks(function, arrow, flink, values, expected):
    columns = pa.schema([("k", pa.string()), ("v", arrow)])
    run = Run(aggregate(call(function, "v", flink), types=(arrow,), columns=columns, changelog=False))
    assert run.batch(inserts(*(("a", value) for value in values))) == [("+I", ("a", expected))]


def test_decimals_sum_to_38_digits_and_average_half_up():
    columns = pa.schema([("k", pa.string()), ("v", pa.decimal128(10, 2))])
    types = (pa.decimal128(38, 2), pa.decimal128(38, 6))
    for changelog in (False, True):
        operator = aggregate(
            call("SUM", "v", "DECIMAL(38, 2)"),
            call("AVG", "v", "DECIMAL(38, 6)"),
            types=types,
            columns=columns,
            changelog=changelog,
        )
        run = Run(operator)
        first = run.batch(inserts(*(("a", Decimal(text)) for text in ("6.00", "7.00", "0.00", "0.00", "0.00", "0.00"))))
        assert first == [("+I", ("a", Decimal("13.00"), Decimal("2.166667")))]
    out = run.batch([("-D", ("a", Decimal("6.00")))])
    assert out[-1] == ("+U", ("a", Decimal("7.00"), Decimal("1.400000")))


def test_minimum_and_maximum_survive_the_retraction_of_the_extreme():
    run = Run(aggregate(call("MIN", "v"), call("MAX", "v")))
    run.batch(inserts(("a", 3), ("a", 1)))
    run.batch(inserts(("a", 2), ("a", 1)))
    assert run.batch([("-D", ("a", 1))]) == []  # one copy of the minimum is left
    assert run.batch([("-D", ("a", 1))])[-1] == ("+U", ("a", 2, 3))
    assert run.batch([("-D", ("a", 3)), ("+I", ("a", 0))])[-1] == ("+U", ("a", 0, 2))


@pytest.mark.parametrize(
    ("arrow", "values", "low", "high"),
    [
        (pa.string(), ["b", "a", "c"], "a", "c"),
        (pa.bool_(), [True, False], False, True),
        (pa.decimal128(5, 1), [Decimal("1.5"), Decimal("-2.0")], Decimal("-2.0"), Decimal("1.5")),
        (pa.date32(), [date(2020, 2, 29), date(1, 1, 1)], date(1, 1, 1), date(2020, 2, 29)),
        (pa.timestamp("us"), [datetime(2020, 2, 29), datetime(1, 1, 1)], datetime(1, 1, 1), datetime(2020, 2, 29)),
        (
            pa.timestamp("us", "UTC"),
            [datetime(2020, 2, 29, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC)],
            datetime(1969, 12, 31, tzinfo=UTC),
            datetime(2020, 2, 29, tzinfo=UTC),
        ),
    ],
)
@pytest.mark.parametrize("changelog", [False, True])
def test_extremes_work_for_every_comparable_type(arrow, values, low, high, changelog):
    columns = pa.schema([("k", pa.string()), ("v", arrow)])
    calls = (call("MIN", "v"), call("MAX", "v"))
    run = Run(aggregate(*calls, types=(arrow, arrow), columns=columns, changelog=changelog))
    out = []
    for value in values:
        out += run.batch(inserts(("a", value)))
    assert out[-1][1] == ("a", low, high)


def test_a_global_aggregate_has_one_group_and_ends_with_a_delete():
    run = Run(aggregate(call("COUNT"), call("SUM", "v"), keys=()))
    assert run.batch([]) == []
    assert run.batch(inserts(("a", 1), ("b", 2))) == [("+I", (2, 3))]
    assert run.batch([("-D", ("a", 1)), ("-D", ("b", 2))]) == [("-D", (2, 3))]


def test_distinct_without_calls_emits_each_row_once():
    run = Run(aggregate(keys=("k", "v")))
    assert run.batch(inserts(("a", 1), ("a", 1), ("a", None))) == inserts(("a", 1), ("a", None))
    assert run.batch(inserts(("a", 1))) == []
    assert run.batch([("-D", ("a", None))]) == [("-D", ("a", None))]


def test_distinct_of_insert_only_input_stays_insert_only_with_a_ttl():
    run = Run(aggregate(keys=("k", "v"), changelog=False, kinds=("+I",), ttl=1000))
    assert run.batch(inserts(("a", 1)), now=0) == inserts(("a", 1))
    assert run.batch(inserts(("a", 1)), now=900) == []
    assert run.batch(inserts(("a", 1)), now=1800) == []  # refreshed, hence still known
    assert run.batch(inserts(("a", 1)), now=2800) == inserts(("a", 1))
    assert "__kind" not in run.result.output.column_names


def test_distinct_sums_wrap_and_average():
    columns = pa.schema([("k", pa.string()), ("v", pa.int32())])
    calls = (call("AVG", "v", "INT", distinct=True), call("SUM", "v", "INT", distinct=True))
    run = Run(aggregate(*calls, types=(pa.int32(), pa.int32()), columns=columns))
    assert run.batch(inserts(("a", 5), ("a", 5), ("a", 2))) == [("+I", ("a", 3, 7))]
    assert run.batch([("-D", ("a", 5))]) == []
    assert run.batch([("-D", ("a", 5))])[-1] == ("+U", ("a", 2, 2))


# --- TTL --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("age", "expected"), [(999, ("+U", ("a", 2))), (1000, ("+I", ("a", 1)))])
def test_a_group_expires_to_the_millisecond(age, expected):
    run = Run(aggregate(call("COUNT"), ttl=1000))
    run.batch(inserts(("a", 1)), now=7000)
    assert run.batch(inserts(("a", 1)), now=7000 + age)[-1] == expected


def test_every_row_refreshes_its_group_even_when_it_cancels_out():
    run = Run(aggregate(call("COUNT"), ttl=1000))
    run.batch(inserts(("a", 1)), now=0)
    run.batch([("+I", ("a", 2)), ("-D", ("a", 2))], now=900)
    assert run.batch(inserts(("a", 1)), now=1800)[-1] == ("+U", ("a", 2))


def test_an_update_of_an_expired_group_starts_it_afresh():
    run = Run(aggregate(call("COUNT"), call("SUM", "v"), ttl=1000))
    run.batch(inserts(("a", 1)), now=0)
    assert run.batch([("-U", ("a", 1)), ("+U", ("a", 4))], now=2000) == [("+I", ("a", 1, 4))]
    assert run.batch([("-D", ("a", 4))], now=5000) == []


def test_a_distinct_value_expires_while_its_group_lives_on():
    # Flink: TTL 1 s, value 1 at 0 s and 1.2 s, value 2 in between: three distinct values counted.
    run = Run(aggregate(call("COUNT", "v", distinct=True), ttl=1000, changelog=False))
    run.batch(inserts(("a", 1)), now=0)
    run.batch(inserts(("a", 2)), now=600)
    assert run.batch(inserts(("a", 1)), now=1200)[-1] == ("+U", ("a", 3))


def test_a_batch_without_rows_drops_groups_that_have_been_expired_for_a_quarter_of_the_ttl():
    run = Run(aggregate(*ALL, ttl=1000))
    run.batch(inserts(("a", 1), ("b", 2)), now=0)
    run.batch([], now=1249)
    assert run.store.segments
    assert run.batch([], now=1250) == []
    assert run.result.state_rows == 0
    assert not run.store.segments


def test_an_edited_ttl_applies_at_once_to_old_groups():
    run = Run(aggregate(call("COUNT")))
    run.batch(inserts(("a", 1)), now=0)
    for ttl, now, kind in ((0, 10_000, "+U"), (3_600_000, 20_000, "+U"), (0, 30_000, "+U"), (1_000, 40_000, "+I")):
        probe = Run(aggregate(call("COUNT"), ttl=ttl))
        probe.manifest = run.manifest
        probe.store.segments = dict(run.store.segments)
        assert probe.batch(inserts(("a", 1)), now=now)[-1][0] == kind


# --- properties -------------------------------------------------------------------------------------------------------


rows = st.tuples(st.sampled_from([None, "a", "b"]), st.sampled_from([None, -2, 0, 3, 7]))


@st.composite
def histories(draw, size: int = 24):
    present: list[tuple] = []
    events: list[Event] = []
    for _ in range(draw(st.integers(0, size))):
        if present and draw(st.booleans()):
            events.append(("-D", present.pop(draw(st.integers(0, len(present) - 1)))))
        else:
            row = draw(rows)
            present.append(row)
            events.append(("+I", row))
    return events


def cut(items: list, cuts: list[int]) -> list[list]:
    places = sorted({min(c, len(items)) for c in cuts} | {0, len(items)})
    return [items[a:b] for a, b in pairwise(places)] or [[]]


slicings = st.lists(st.integers(0, 24), max_size=20)


def grouped(rows: Counter) -> Counter:
    """SQL's GROUP BY of a multiset, by definition."""
    result: Counter = Counter()
    for key in {row[0] for row in rows}:
        values = [v for (k, v), n in rows.items() for _ in range(n) if k == key]
        known = [v for v in values if v is not None]
        total = sum(known) if known else None
        distinct = sum(set(known)) if known else None
        extremes = (min(known, default=None), max(known, default=None))
        result[(key, len(values), total, *extremes, len(set(known)), distinct)] += 1
    return result


@pytest.mark.parametrize("hasher", [stable_hash, colliding_hash])
@pytest.mark.part(of=3)
@settings(max_examples=150, deadline=None)
@given(history=histories(), cuts=slicings)
def test_any_slicing_folds_to_the_batch_aggregate(hasher, history, cuts):
    run = Run(aggregate(*ALL), hasher)
    input_rows: Counter = Counter()
    output: Counter = Counter()
    for batch in cut(history, cuts):
        output = fold(run.batch(batch), output)
        input_rows = fold(batch, input_rows)
        assert output == grouped(input_rows)


@pytest.mark.part(of=3)
@settings(max_examples=100, deadline=None)
@given(history=st.lists(rows, max_size=24), cuts=slicings)
def test_insert_only_input_gives_the_same_without_remembering_values(history, cuts):
    run = Run(aggregate(*ALL[:4], changelog=False))
    input_rows: Counter = Counter()
    output: Counter = Counter()
    for batch in cut(inserts(*history), cuts):
        output = fold(run.batch(batch), output)
        input_rows = fold(batch, input_rows)
        assert {row[:5] for row in output} == {row[:5] for row in grouped(input_rows)}
    assert len(run.operator.layouts) == 1


@pytest.mark.part(of=3)
@settings(max_examples=150, deadline=None)
@given(
    events=st.lists(st.tuples(st.sampled_from(["+I", "-D"]), rows), max_size=20),
    ttl=st.sampled_from([0, 3, 10]),
    steps=st.lists(st.integers(0, 4), min_size=20, max_size=20),
)
def test_record_by_record_it_emits_what_flinks_model_emits(events, ttl, steps):
    # Any history, retractions of what was never inserted included.
    run = Run(aggregate(call("COUNT"), call("SUM", "v"), ttl=ttl))
    model = AggregateModel(ttl=ttl)
    now = 0
    for event, step in zip(events, steps, strict=False):
        now += step
        expected = [(kind, row[:3]) for kind, row in model.process(event, now)]
        if len(expected) == 2 and expected[0][1] == expected[1][1] and not ttl:
            expected = []
        assert run.batch([event], now) == expected


@pytest.mark.part(of=3)
@settings(max_examples=150, deadline=None)
@given(
    history=histories(),
    cuts=slicings,
    ttl=st.sampled_from([0, 3, 10]),
    steps=st.lists(st.integers(0, 4), min_size=30, max_size=30),
)
def test_with_a_ttl_every_batch_nets_to_what_flinks_model_emits(history, cuts, ttl, steps):
    run = Run(aggregate(call("COUNT"), call("SUM", "v"), call("COUNT", "v", distinct=True), ttl=ttl))
    model = AggregateModel(ttl=ttl)
    now = 0
    held: dict = {}
    written: dict = {}
    for events, step in zip(cut(history, cuts), steps, strict=False):
        now += step
        batch, expected = [], []
        for kind, row in events:
            # A row that expired since it came, or its group, is not retracted here: what becomes of that say the tests
            # above; and a batch does not tell a group that ends and begins again in it from one that continues.
            group = model.groups.get(row[0])
            if group is None or not model.live(group["write"], now):
                held[row[0]] = Counter()
            if kind == "-D" and (not held[row[0]][row] or (ttl and written[row] + ttl <= now)):
                continue
            held[row[0]][row] += 1 if kind == "+I" else -1
            written[row] = now
            batch.append((kind, row))
            expected += [(k, (*r[:3], r[5])) for k, r in model.process((kind, row), now)]
        assert fold(run.batch(batch, now)) == fold(expected)


def test_a_sum_with_too_many_digits_is_null_until_its_group_is_gone() -> None:
    most = Decimal("9" * 38)
    columns = pa.schema([("k", pa.string()), ("v", pa.decimal128(38, 0))])
    calls = (call("SUM", "v", "DECIMAL(38, 0)"), call("AVG", "v", "DECIMAL(38, 6)"), call("COUNT", "v"))
    types = (pa.decimal128(38, 0), pa.decimal128(38, 6), pa.int64())
    run = Run(aggregate(*calls, types=types, columns=columns))
    left = fold(run.batch(inserts(("a", most), ("b", most), ("c", Decimal(4)))))
    assert left == Counter([("a", most, None, 1), ("b", most, None, 1), ("c", 4, 4, 1)])
    left = fold(run.batch(inserts(("a", Decimal(1)), ("b", most), ("b", most), ("c", None))), left)
    assert left == Counter([("a", None, None, 2), ("b", None, None, 3), ("c", 4, 4, 1)])
    left = fold(run.batch([("-D", ("a", Decimal(1))), ("+I", ("b", Decimal(5)))]), left)
    assert left == Counter([("a", None, None, 1), ("b", None, None, 4), ("c", 4, 4, 1)])
    left = fold(run.batch([("-D", ("a", most))]), left)
    left = fold(run.batch(inserts(("a", Decimal(3)))), left)
    assert left == Counter([("a", 3, 3, 1), ("b", None, None, 4), ("c", 4, 4, 1)])

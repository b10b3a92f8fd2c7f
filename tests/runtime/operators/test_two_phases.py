"""Aggregates in two phases: the same output, and the same stored bytes, as from the rows themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.plans.operators import Aggregate, AggregateCall
from hintplan.runtime.engine.process import joined
from hintplan.runtime.kernels.partial import ROWS, WEIGHT
from hintplan.runtime.operators.aggregate import AggregateOperator
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import Event, colliding_hash, delta, events_of, stable_hash

COLUMNS = pa.schema([("k", pa.string()), ("v", pa.int64()), ("m", pa.decimal128(10, 2)), ("f", pa.bool_())])


def call(function: str, argument: str | None = None, kind: str = "BIGINT", **options) -> AggregateCall:
    name = f"{function}_{argument}_{options}"
    return AggregateCall(name=name, function=function, argument=argument, type=kind, **options)


LINEAR = (
    (call("COUNT"), pa.int64()),
    (call("COUNT", "v"), pa.int64()),
    (call("SUM", "v"), pa.int64()),
    (call("AVG", "v"), pa.int64()),
    (call("SUM", "m", "DECIMAL(38, 2)"), pa.decimal128(38, 2)),
    (call("SUM", "v", filter="f"), pa.int64()),
    (call("COLLECT", "v", "MULTISET<BIGINT>"), pa.map_(pa.int64(), pa.int32())),
    (call("COLLECT", "m", "MULTISET<DECIMAL(10, 2)>", filter="f"), pa.map_(pa.decimal128(10, 2), pa.int32())),
)
OF_INSERTS = (
    *LINEAR,
    (call("MIN", "v"), pa.int64()),
    (call("MAX", "m", "DECIMAL(10, 2)"), pa.decimal128(10, 2)),
    (call("MAX", "v", filter="f"), pa.int64()),
    (call("FIRST_VALUE", "v"), pa.int64()),
    (call("LAST_VALUE", "v"), pa.int64()),
    (call("LISTAGG", "k", "STRING", separator="/"), pa.string()),
    (call("ARRAY_AGG", "v", "ARRAY<BIGINT>", filter="f"), pa.list_(pa.int64())),
)


def aggregate(
    *, changelog: bool, ttl: int = 0, keys: tuple[str, ...] = ("k",), phases="TWO_PHASE"
) -> AggregateOperator:
    calls = LINEAR if changelog else OF_INSERTS
    return AggregateOperator(
        columns=COLUMNS,
        changelog=changelog,
        keys=keys,
        calls=tuple(each for each, _ in calls),
        types=tuple(kind for _, kind in calls),
        ttl=ttl,
        kinds=("+I", "-U", "+U", "-D"),
        phases=phases,
    )


class Run:
    """An operator that gets each batch in pieces, as from several tasks; ``sums`` says which are summed up."""

    def __init__(self, operator: AggregateOperator, hasher=stable_hash) -> None:
        self.operator, self.hasher = operator, hasher
        self.store, self.manifest = MemoryStore(), None

    def batch(self, pieces: list[list[Event]], sums: list[bool], now: int) -> list[Event]:
        (spec,) = self.operator.inputs
        tables = []
        for piece, summed in zip(pieces, sums, strict=True):
            table = delta(spec, piece, self.hasher)
            if table is not None:
                tables.append(spec.presum.sum_up(table) if summed and spec.presum is not None else table)
        rows = joined(tables, spec.presum) if tables else None
        result = self.operator.process((rows,), self.manifest, self.store, now)
        self.manifest = result.manifest
        assert result.rows_in == sum(len(piece) for piece in pieces)
        return events_of(result.output)

    @property
    def stored(self) -> tuple[bytes | None, dict[str, list[Event]]]:
        return self.manifest, {name: events_of(table) for name, table in self.store.segments.items()}

    @property
    def rows_in_any_order(self) -> dict[str, Counter[Event]]:
        return {name: Counter(events_of(table)) for name, table in self.store.segments.items()}


rows = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.one_of(st.none(), st.integers(-3, 3), st.just(2**63 - 1)),
    st.one_of(st.none(), st.sampled_from([Decimal("0.05"), Decimal("-12345678.90")])),
    st.sampled_from([True, False, None]),
)


def batches(kinds: list[str]):
    piece = st.lists(st.tuples(st.sampled_from(kinds), rows), max_size=8)
    batch = st.tuples(st.lists(st.tuples(piece, st.booleans()), min_size=1, max_size=4), st.integers(0, 40))
    return st.lists(batch, min_size=1, max_size=4)


@pytest.mark.parametrize("changelog", [False, True])
@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    ttl=st.sampled_from([0, 50]),
    keys=st.sampled_from([("k",), (), ("k", "f")]),
    collide=st.booleans(),
)
def test_two_phases_store_and_put_out_what_one_phase_does(changelog, data, ttl, keys, collide) -> None:
    # Retractions come for rows that never were, too, and for rows whose state has expired.
    hasher = colliding_hash if collide else stable_hash
    two = Run(aggregate(changelog=changelog, ttl=ttl, keys=keys), hasher)
    one = Run(replace(two.operator, phases="ONE_PHASE"), hasher)
    now = 0
    for pieces, passed in data.draw(batches(["+I", "-U", "+U", "-D"] if changelog else ["+I"])):
        now += passed
        events, sums = [events for events, _ in pieces], [summed for _, summed in pieces]
        expected = one.batch(events, sums, now)
        found = two.batch(events, sums, now)
        assert Counter(found) == Counter(expected)
        # Of different keys under one hash, the one that comes first stands first: only that may differ.
        assert (two.rows_in_any_order == one.rows_in_any_order) if collide else (two.stored == one.stored)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), switches=st.lists(st.sampled_from(["AUTO", "ONE_PHASE", "TWO_PHASE"]), min_size=4, max_size=4))
def test_the_setting_may_change_between_batches_of_one_checkpoint(data, switches) -> None:
    edited = Run(aggregate(changelog=True, ttl=50))
    steady = Run(replace(edited.operator, phases="ONE_PHASE"))
    now = 0
    for (pieces, passed), phases in zip(data.draw(batches(["+I", "-U", "+U", "-D"])), switches, strict=False):
        now += passed
        edited.operator = replace(edited.operator, phases=phases)
        events, sums = [events for events, _ in pieces], [summed for _, summed in pieces]
        # In AUTO a piece that would not shrink stays as it is; the test asks the operator.
        expected = steady.batch(events, sums, now)
        worth = [summed and _shrinks(edited, piece) for piece, summed in zip(events, sums, strict=True)]
        assert sorted(map(repr, edited.batch(events, worth, now))) == sorted(map(repr, expected))
        assert edited.stored == steady.stored


def _shrinks(run: Run, piece: list[Event]) -> bool:
    (spec,) = run.operator.inputs
    table = delta(spec, piece, run.hasher)
    return table is not None and spec.presum is not None and spec.presum.sum_up(table) is not None


def summed_up(operator: AggregateOperator, events: list[Event]) -> list[dict]:
    (spec,) = operator.inputs
    return spec.presum.sum_up(delta(spec, events)).to_pylist()


def counts() -> AggregateOperator:
    columns = pa.schema([("k", pa.string())])
    return replace(aggregate(changelog=True), columns=columns, calls=(call("COUNT"),), types=(pa.int64(),))


def test_a_group_that_is_updated_often_becomes_a_retraction_and_two_sums() -> None:
    found = summed_up(counts(), [("-U", ("a",)), ("+U", ("a",))] * 5)
    # A group of one row is empty behind each -U: the four +U that are taken back again do not count with the last one.
    assert [(row[WEIGHT], row[ROWS]) for row in found] == [(-1, 1), (0, 8), (1, 1)]


def test_rows_that_cancel_out_leave_a_row_that_weighs_nothing_and_counts_as_a_write() -> None:
    assert [(row[WEIGHT], row[ROWS]) for row in summed_up(counts(), [("+I", ("a",)), ("-D", ("a",))])] == [(0, 2)]
    run = Run(replace(counts(), ttl=100))
    run.batch([[("+I", ("a",))]], [True], now=0)
    run.batch([[("+I", ("a",)), ("-D", ("a",))]], [True], now=90)
    assert run.batch([[("+I", ("a",))]], [True], now=150) == [("-U", ("a", 1)), ("+U", ("a", 2))]


def test_auto_leaves_rows_alone_that_would_not_become_a_quarter_as_many() -> None:
    auto = replace(counts(), phases="AUTO").inputs[0]
    few = delta(auto, [("+I", (key,)) for key in "ab"] * 4)
    many = delta(auto, [("+I", (key,)) for key in "abcbabab"])
    assert auto.presum.sum_up(few).num_rows == 2
    assert auto.presum.sum_up(many) is None


@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize(
    "each",
    [call("COUNT", "v", distinct=True), call("MIN", "v"), call("MAX", "v", distinct=True), *(c for c, _ in LINEAR)],
)
def test_the_plan_says_in_one_phase_of_exactly_those_aggregates_that_run_in_one(each, changelog) -> None:
    operator = replace(aggregate(changelog=changelog), calls=(each,), types=(pa.int64(),))
    planned = Aggregate(id="a", inputs=("i",), keys=("k",), aggregates=(each,), state=(), changelog=("+I",))
    assert (operator.inputs[0].presum is None) == (planned.one_phase_because(insert_only=not changelog) is not None)


def test_floating_sums_differ_by_no_more_than_their_rounding() -> None:
    columns = pa.schema([("k", pa.string()), ("d", pa.float64())])
    calls = (call("SUM", "d", "DOUBLE"),)
    two = replace(aggregate(changelog=False), columns=columns, calls=calls, types=(pa.float64(),))
    values = [0.1 * n for n in range(40)]
    pieces = [[("+I", ("a", value)) for value in values[begin : begin + 10]] for begin in range(0, 40, 10)]
    answers = [Run(replace(two, phases=phases)).batch(pieces, [True] * 4, 0) for phases in ("ONE_PHASE", "TWO_PHASE")]
    assert answers[1][0][1][1] == pytest.approx(answers[0][0][1][1], rel=1e-12)
    assert answers[0][0][1][1] == pytest.approx(sum(values), rel=1e-12)

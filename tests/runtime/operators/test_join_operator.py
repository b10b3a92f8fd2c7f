"""The join kernel against Flink's recorded changelogs, a record-by-record model, and slicings of the same input."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.plans.operators import Join, JoinColumn
from hintplan.runtime.operators.join import JoinOperator
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import Event, colliding_hash, delta, events_of, fold, stable_hash
from tests.runtime.expressions.checking import compiled_condition
from tests.runtime.flink_model import JoinModel

LEFT = pa.schema([("k", pa.int64()), ("a", pa.string())])
RIGHT = pa.schema([("k", pa.int64()), ("b", pa.string())])
KINDS = ("inner", "left", "right", "full", "semi", "anti")


def join(kind: str, *, ttls=(0, 0), condition: str | None = None, changelog=(True, True)) -> JoinOperator:
    columns = [("lk", "left", "k"), ("a", "left", "a")]
    if kind not in ("semi", "anti"):
        columns += [("rk", "right", "k"), ("b", "right", "b")]
    compiled = None
    if condition:
        output = tuple(JoinColumn(name=n, type="STRING", side=s, column=c) for n, s, c in columns)
        op = Join(
            id="join_l_r", inputs=("l", "r"), join_type=kind, keys=(), condition=condition, state=(), output=output,
            changelog=("+I", "-D"),
        )  # fmt: skip
        compiled = compiled_condition(op, LEFT, RIGHT)
    return JoinOperator(
        kind=kind,
        left=LEFT,
        right=RIGHT,
        left_keys=("k",),
        right_keys=("k",),
        changelog=changelog,
        condition=compiled,
        ttls=ttls,
        columns=tuple(columns),
        emits_changelog=True,
    )


class Run:
    """Feeds an operator batch by batch and keeps its state."""

    def __init__(self, operator: JoinOperator, hasher=stable_hash) -> None:
        self.operator = operator
        self.hasher = hasher
        self.store = MemoryStore()
        self.manifest: bytes | None = None
        self.result = None

    def batch(self, left: list[Event], right: list[Event], now: int = 0) -> list[Event]:
        specs = self.operator.inputs
        deltas = (delta(specs[0], left, self.hasher), delta(specs[1], right, self.hasher))
        self.result = self.operator.process(deltas, self.manifest, self.store, now)
        self.manifest = self.result.manifest
        return events_of(self.result.output)


def parse(text: str) -> list[tuple[int, Event]]:
    """``L+I1|a1, R-D∅|b1`` as (side, event) pairs."""
    events = []
    for item in text.split(","):
        item = item.strip()
        side, kind, rest = item[0], item[1:3], item[3:]
        key, value = rest.split("|")
        events.append((0 if side == "L" else 1, (kind, (None if key == "∅" else int(key), value))))
    return events


E1 = "L+I1|a1, R+I1|b1, L+I1|a2, R+I1|b2, R+I2|b3, L+I2|a3, L+I1|a1"
E2 = "L+I1|a1, R+I1|b1, R-U1|b1, R+U1|b2, L+I1|a2, R-D1|b2, R+I1|b3, R+I1|b4, R-D1|b3, R-D1|b4"
E3 = "R+I1|b1, L+I1|a1, L-U1|a1, L+U1|a2, L-D1|a2, L+I3|a3, L-U3|a3, L+U3|a4, L-D3|a4"
E4 = "L+I∅|a1, R+I∅|b1, L+I1|a2, R+I1|b2"

# What Flink 2.3's recorded changelogs of these inputs fold to.
FLINK = [
    (E1, "inner", {("a1", "b1"): 2, ("a1", "b2"): 2, ("a2", "b1"): 1, ("a2", "b2"): 1, ("a3", "b3"): 1}),
    (E1, "left", {("a1", "b1"): 2, ("a1", "b2"): 2, ("a2", "b1"): 1, ("a2", "b2"): 1, ("a3", "b3"): 1}),
    (E1, "full", {("a1", "b1"): 2, ("a1", "b2"): 2, ("a2", "b1"): 1, ("a2", "b2"): 1, ("a3", "b3"): 1}),
    (E1, "semi", {("a1",): 2, ("a2",): 1, ("a3",): 1}),
    (E1, "anti", {}),
    (E2, "inner", {}),
    (E2, "left", {("a1", None): 1, ("a2", None): 1}),
    (E2, "right", {}),
    (E2, "full", {("a1", None): 1, ("a2", None): 1}),
    (E2, "semi", {}),
    (E2, "anti", {("a1",): 1, ("a2",): 1}),
    (E3, "inner", {}),
    (E3, "left", {}),
    (E3, "right", {(None, "b1"): 1}),
    (E3, "full", {(None, "b1"): 1}),
    (E3, "semi", {}),
    (E3, "anti", {}),
    (E4, "inner", {("a2", "b2"): 1}),
    (E4, "left", {("a2", "b2"): 1, ("a1", None): 1}),
    (E4, "right", {("a2", "b2"): 1, (None, "b1"): 1}),
    (E4, "full", {("a2", "b2"): 1, ("a1", None): 1, (None, "b1"): 1}),
    (E4, "semi", {("a2",): 1}),
    (E4, "anti", {("a1",): 1}),
]


@pytest.mark.parametrize(("text", "kind", "expected"), FLINK)
@pytest.mark.parametrize("at_once", [False, True])
def test_recorded_flink_inputs_fold_to_flinks_result(text, kind, expected, at_once):
    run = Run(join(kind))
    events = parse(text)
    batches = [events] if at_once else [[event] for event in events]
    out: list[Event] = []
    for batch in batches:
        out += run.batch([e for s, e in batch if s == 0], [e for s, e in batch if s == 1])
    values = Counter()
    for row, count in fold(out).items():
        values[(row[1], row[3]) if len(row) == 4 else (row[1],)] += count
    assert values == expected


# One event a batch: Flink's recorded output, with -U as -D and +U as +I, which is what they mean to a reader.
EXACT = [
    (E1, "left", ["+a1∅", "-a1∅ +a1b1", "+a2b1", "+a1b2 +a2b2", "", "+a3b3", "+a1b1 +a1b2"]),
    (
        E2,
        "left",
        [
            "+a1∅", "-a1∅ +a1b1", "-a1b1 +a1∅", "-a1∅ +a1b2", "+a2b2", "-a1b2 +a1∅ -a2b2 +a2∅",
            "-a1∅ +a1b3 -a2∅ +a2b3", "+a1b4 +a2b4", "-a1b3 -a2b3", "-a1b4 +a1∅ -a2b4 +a2∅",
        ],
    ),
    (E2, "semi", ["", "+a1", "-a1", "+a1", "+a2", "-a1 -a2", "+a1 +a2", "", "", "-a1 -a2"]),
    (E2, "anti", ["+a1", "-a1", "+a1", "-a1", "", "+a1 +a2", "-a1 -a2", "", "", "+a1 +a2"]),
    (
        E3,
        "right",
        ["+∅b1", "-∅b1 +a1b1", "-a1b1 +∅b1", "-∅b1 +a2b1", "-a2b1 +∅b1", "", "", "", ""],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "expected"), EXACT)
def test_each_event_emits_what_flink_emits(text, kind, expected):
    run = Run(join(kind))
    for (side, event), wanted in zip(parse(text), expected, strict=True):
        out = run.batch([event] if side == 0 else [], [event] if side == 1 else [])
        shown = [("+" if k == "+I" else "-") + "".join("∅" if v is None else v for v in row[1::2]) for k, row in out]
        assert sorted(shown) == sorted(wanted.split())


def test_deletes_leave_before_inserts():
    run = Run(join("left"))
    run.batch([("+I", (1, "a1"))], [])
    assert run.batch([], [("+I", (1, "b1"))]) == [("-D", (1, "a1", None, None)), ("+I", (1, "a1", 1, "b1"))]


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_rows_leave_in_the_order_in_which_they_came_where_that_matters(kind):
    names = [f"a{number}" for number in range(40)]
    run = Run(replace(join(kind), in_order=True))
    run.batch([], [("+I", (key, f"b{key}")) for key in range(3)])
    out = run.batch([("+I", (number % 4, name)) for number, name in enumerate(names)], [])
    assert [row[1] for _, row in out if row[2] is not None or kind == "left"] == [
        name for number, name in enumerate(names) if number % 4 < 3 or kind == "left"
    ]


def test_rows_of_one_batch_meet_before_they_are_padded():
    run = Run(join("left"))
    assert run.batch([("+I", (1, "a1"))], [("+I", (1, "b1"))]) == [("+I", (1, "a1", 1, "b1"))]


def test_null_keys_are_not_stored():
    run = Run(join("full"))
    run.batch([("+I", (None, "a"))], [("+I", (None, "b"))])
    assert run.result.state_rows == 0
    assert not run.store.segments


rows = st.tuples(st.sampled_from([None, 1, 2, 3]), st.sampled_from(["x", "y"]))


@st.composite
def histories(draw, changelog: bool = True, size: int = 24):
    """Legal histories: (side, event) lists in which only present rows are deleted."""
    present: list[list] = [[], []]
    events = []
    for _ in range(draw(st.integers(0, size))):
        side = draw(st.integers(0, 1))
        if changelog and present[side] and draw(st.booleans()):
            row = present[side].pop(draw(st.integers(0, len(present[side]) - 1)))
            events.append((side, ("-D", row)))
        else:
            row = draw(rows)
            present[side].append(row)
            events.append((side, ("+I", row)))
    return events


def cut(items: list, cuts: list[int]) -> list[list]:
    places = sorted({min(c, len(items)) for c in cuts} | {0, len(items)})
    return [items[a:b] for a, b in pairwise(places)] or [[]]


slicings = st.lists(st.integers(0, 24), max_size=20)


def batch_join(kind: str, left: Counter, right: Counter) -> Counter:
    """SQL's join of two multisets, by definition."""
    result: Counter = Counter()
    matched_right: set = set()
    for l_row, l_count in left.items():
        partners = {r: n for r, n in right.items() if l_row[0] is not None and r[0] == l_row[0]}
        matched_right |= set(partners)
        if kind == "semi":
            result[l_row] += l_count if partners else 0
        elif kind == "anti":
            result[l_row] += 0 if partners else l_count
        else:
            for r_row, r_count in partners.items():
                result[l_row + r_row] += l_count * r_count
            if not partners and kind in ("left", "full"):
                result[(*l_row, None, None)] += l_count
    if kind in ("right", "full"):
        for r_row, r_count in right.items():
            if r_row not in matched_right:
                result[(None, None, *r_row)] += r_count
    return +result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hasher", [stable_hash, colliding_hash])
@pytest.mark.part(of=3)
@settings(max_examples=60, deadline=None)
@given(history=histories(), cuts=slicings)
def test_any_slicing_folds_to_the_batch_join(kind, hasher, history, cuts):
    run = Run(join(kind), hasher)
    inputs = (Counter(), Counter())
    output: Counter = Counter()
    for batch in cut(history, cuts):
        left, right = ([e for s, e in batch if s == side] for side in (0, 1))
        output = fold(run.batch(left, right), output)
        assert all(count > 0 for count in output.values()), "deleted what was not inserted"
        inputs = (fold(left, inputs[0]), fold(right, inputs[1]))
        assert output == batch_join(kind, *inputs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.part(of=3)
@settings(max_examples=60, deadline=None)
@given(
    history=histories(),
    cuts=slicings,
    ttls=st.tuples(st.sampled_from([0, 3, 10]), st.sampled_from([0, 3, 10])),
    steps=st.lists(st.integers(0, 5), min_size=30, max_size=30),
)
def test_with_a_ttl_every_batch_nets_to_what_flinks_model_emits(kind, history, cuts, ttls, steps):
    run = Run(join(kind, ttls=ttls))
    model = JoinModel(kind=kind, keys=((0,), (0,)), widths=(2, 2), ttls=ttls)
    first = 1 if kind in ("left", "semi", "anti") else 0
    now = 0
    for events, step in zip(cut(history, cuts), steps, strict=False):
        now += step
        expected: list[Event] = []
        batch: list = [[], []]
        for side in (first, 1 - first):
            for kind_, row in (e for s, e in events if s == side):
                # Expired rows are not retracted here: within a batch Flink's outcome depends on the order of arrival.
                if kind_ == "-D" and row not in model.live(side, now):
                    continue
                batch[side].append((kind_, row))
                expected += model.process(side, (kind_, row), now)
        assert fold(run.batch(*batch, now)) == fold(expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.part(of=3)
@settings(max_examples=60, deadline=None)
@given(
    history=histories(),
    ttls=st.tuples(st.sampled_from([0, 3, 10]), st.sampled_from([0, 3, 10])),
    steps=st.lists(st.integers(0, 5), min_size=24, max_size=24),
)
def test_record_by_record_it_emits_what_flinks_model_emits(kind, history, ttls, steps):
    run = Run(join(kind, ttls=ttls))
    model = JoinModel(kind=kind, keys=((0,), (0,)), widths=(2, 2), ttls=ttls)
    now = 0
    for (side, event), step in zip(history, steps, strict=False):
        now += step
        batch: list = [[], []]
        batch[side] = [event]
        assert fold(run.batch(*batch, now)) == fold(model.process(side, event, now))


def test_updating_an_expired_row_takes_back_the_padding_of_its_partner():
    run = Run(join("right", ttls=(1000, 0)))
    run.batch([("+I", (1, "a1"))], [], now=0)
    assert run.batch([], [("+I", (1, "b1"))], now=2000) == [("+I", (None, None, 1, "b1"))]
    out = run.batch([("-U", (1, "a1")), ("+U", (1, "a2"))], [], now=2001)
    assert fold(out)[(None, None, 1, "b1")] == -1
    assert fold(out)[(1, "a2", 1, "b1")] == 1


def test_a_row_that_is_taken_back_and_comes_again_has_only_partners_that_live():
    run = Run(join("left", ttls=(0, 1000)))
    run.batch([("+I", (1, "a"))], [("+I", (1, "old"))], now=0)
    assert fold(run.batch([("-D", (1, "a")), ("+I", (1, "a"))], [], now=1000)) == {}
    # Flink has put out the row without a partner meanwhile, and takes that back.
    assert fold(run.batch([], [("+I", (1, "new"))], now=1000)) == {(1, "a", None, None): -1, (1, "a", 1, "new"): 1}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.part(of=3)
@settings(max_examples=40, deadline=None)
@given(history=histories(), cuts=slicings)
def test_a_condition_counts_only_partners_that_satisfy_it(kind, history, cuts):
    run = Run(join(kind, condition="l.a <= r.b AND (l.k + r.k < 6 OR r.b IS NULL)"))
    model = JoinModel(
        kind=kind,
        keys=((0,), (0,)),
        widths=(2, 2),
        condition=lambda left, right: left[1] <= right[1] and left[0] + right[0] < 6,
    )
    first = 1 if kind in ("left", "semi", "anti") else 0
    for batch in cut(history, cuts):
        expected: list[Event] = []
        for side in (first, 1 - first):
            for event in (e for s, e in batch if s == side):
                expected += model.process(side, event, 0)
        left, right = ([e for s, e in batch if s == side] for side in (0, 1))
        assert fold(run.batch(left, right)) == fold(expected)


@pytest.mark.parametrize("condition", ["1 = 2", "NULL", "1 < 2"])
def test_a_condition_may_be_about_no_column(condition):
    run = Run(join("left", condition=condition))
    out = run.batch([("+I", (1, "a1")), ("+I", (1, "a2")), ("+I", (2, "a"))], [("+I", (1, "b1")), ("+I", (1, "b2"))])
    partners = ("b1", "b2") if condition == "1 < 2" else (None,)
    pairs = {(1, a, b and 1, b): 1 for a in ("a1", "a2") for b in partners}
    assert fold(out) == {**pairs, (2, "a", None, None): 1}


@pytest.mark.parametrize(("age", "joined"), [(999, True), (1000, False)])
@pytest.mark.parametrize("side", [0, 1])
def test_a_row_expires_to_the_millisecond(age, joined, side):
    run = Run(join("inner", ttls=(1000, 0) if side == 0 else (0, 1000)))
    rows = ([("+I", (1, "a1"))], [("+I", (1, "b1"))])
    first: list = [[], []]
    first[side] = rows[side]
    second: list = [[], []]
    second[1 - side] = rows[1 - side]
    run.batch(*first, now=5000)
    assert bool(run.batch(*second, now=5000 + age)) is joined


def test_a_match_refreshes_a_preserved_row_but_not_an_inner_one():
    # Flink, left TTL 1 s, right rows every 0.6 s: LEFT still joined 1.8 s after its arrival, INNER gone at 1.2 s.
    for kind, joined in (("left", True), ("inner", False)):
        run = Run(join(kind, ttls=(1000, 0)))
        run.batch([("+I", (1, "a1"))], [], now=0)
        assert run.batch([], [("+I", (1, "b1"))], now=600)
        run.batch([], [("+I", (1, "b2"))], now=1200)
        assert bool(run.batch([], [("+I", (1, "b3"))], now=1800)) is joined


def test_an_identical_row_refreshes_all_copies():
    run = Run(join("inner", ttls=(1000, 0)))
    run.batch([("+I", (1, "a1"))], [], now=0)
    run.batch([("+I", (1, "a1"))], [], now=900)
    assert len(run.batch([], [("+I", (1, "b1"))], now=1800)) == 2


def test_retracting_an_expired_row_is_still_emitted_for_its_partners():
    run = Run(join("left", ttls=(0, 1000)))
    run.batch([("+I", (1, "a1"))], [("+I", (1, "b1"))], now=0)
    out = run.batch([], [("-D", (1, "b1"))], now=5000)
    assert out == [("-D", (1, "a1", 1, "b1")), ("+I", (1, "a1", None, None))]


def test_batches_without_rows_drop_state_that_has_been_expired_for_a_quarter_of_the_ttl():
    run = Run(join("inner", ttls=(1000, 4000)))
    run.batch([("+I", (1, "a1"))], [("+I", (2, "b1"))], now=0)
    for now, rows in ((1249, 2), (1250, 1), (4999, 1), (5000, 0)):
        run.batch([], [], now=now)
        assert run.result.state_rows == rows
    assert not run.store.segments


def test_an_edited_ttl_applies_at_once_to_old_rows():
    run = Run(join("inner", ttls=(0, 0)))
    run.batch([("+I", (1, "a1"))], [], now=0)
    for ttl, now, joined in ((0, 10_000, True), (3_600_000, 20_000, True), (0, 30_000, True), (1_000, 40_000, False)):
        probe = Run(join("inner", ttls=(ttl, 0)))
        probe.store, probe.manifest = run.store, run.manifest
        probe.store.segments = dict(run.store.segments)
        assert bool(probe.batch([], [("+I", (1, "b1"))], now=now)) is joined


def test_state_stays_bounded_when_rows_come_and_go():
    run = Run(join("inner"))
    for n in range(200):
        run.batch([("+I", (n, "a"))], [])
        run.batch([("-D", (n, "a"))], [])
    assert run.result.state_rows == 0
    assert sum(table.num_rows for table in run.store.segments.values()) <= 8


def test_duplicates_are_counted_and_retracted_one_by_one():
    run = Run(join("inner"))
    run.batch([("+I", (1, "a")), ("+I", (1, "a"))], [])
    run.batch([("+I", (1, "a"))], [])
    assert len(run.batch([], [("+I", (1, "b"))])) == 3
    assert run.batch([("-D", (1, "a"))], []) == [("-D", (1, "a", 1, "b"))]


def test_many_partners_are_joined_in_portions():
    run = Run(join("inner"))
    run.batch([("+I", (1, str(n))) for n in range(2000)], [])
    scan = partial(run.batch, [], [("+I", (1, f"b{n}")) for n in range(1200)])
    assert len(scan()) == 2_400_000

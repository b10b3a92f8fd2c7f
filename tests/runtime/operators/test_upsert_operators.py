"""Upserts made a changelog, and rows kept for a sink, against record-by-record models of Flink and hand-made cases."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.planner.compile import compile_sql
from hintplan.runtime.inspect.entries import entries_of
from hintplan.runtime.operator import StatefulOperator
from hintplan.runtime.operators.changelog_normalize import ChangelogNormalizeOperator
from hintplan.runtime.operators.sink_materialize import SinkMaterializeOperator
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import Event, colliding_hash, delta, events_of, fold, net, stable_hash
from tests.runtime.flink_model import MaterializeModel, NormalizeModel

COLUMNS = pa.schema([("k", pa.string()), ("v", pa.int64()), ("s", pa.string())])
WHOLE = ("+I", "-U", "+U", "-D")


def normalize(ttl: int = 0, kinds: tuple = WHOLE) -> ChangelogNormalizeOperator:
    return ChangelogNormalizeOperator(columns=COLUMNS, key=("k",), ttl=ttl, kinds=kinds)


def materialize(ttl: int = 0, *, changelog: bool = True) -> SinkMaterializeOperator:
    return SinkMaterializeOperator(columns=COLUMNS, key=("k",), changelog=changelog, ttl=ttl)


class Run:
    """An operator with its state; what a batch emits is checked to follow from what was emitted before."""

    def __init__(self, operator: StatefulOperator, hasher=stable_hash) -> None:
        self.operator, self.hasher = operator, hasher
        self.store, self.manifest = MemoryStore(), None
        self.result = None

    def batch(self, events: list[Event], now: int = 0) -> list[Event]:
        rows = delta(self.operator.inputs[0], events, self.hasher)
        self.result = self.operator.process([rows], self.manifest, self.store, now)
        self.manifest = self.result.manifest
        return events_of(self.result.output)


def table_of(events: list[Event], into: dict) -> dict:
    """What a sink that upserts by the first column has after ``events``."""
    found = dict(into)
    for kind, row in events:
        if kind in ("+I", "+U"):
            found[row[0]] = row
        else:
            found.pop(row[0], None)
    return found


def cut(events: list[Event], count: int) -> list[list[Event]]:
    bounds = [index * len(events) // count for index in range(count + 1)]
    return [events[begin:end] for begin, end in pairwise(bounds)]


ROWS = st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(0, 2) | st.none(), st.sampled_from(["x", "y"]))
UPSERTS = st.lists(st.tuples(st.sampled_from(["+I", "+U", "-D", "-U"]), ROWS), max_size=40)


@st.composite
def changes(draw) -> list[Event]:
    """A changelog: rows that come, several times too, and go; now and then one that was never there goes."""
    events: list[Event] = []
    there: list[tuple] = []
    for _ in range(draw(st.integers(0, 40))):
        if there and draw(st.booleans()):
            row = there.pop(draw(st.integers(0, len(there) - 1)))
            events.append((draw(st.sampled_from(["-U", "-D"])), row))
        else:
            row = draw(ROWS)
            idle = draw(st.integers(0, 9)) == 0
            events.append(("-D" if idle else draw(st.sampled_from(["+I", "+U"])), row))
            if not idle:
                there.append(row)
            elif row in there:
                there.remove(row)
    return events


@pytest.mark.parametrize(("count", "hasher"), [(1, stable_hash), (3, colliding_hash), (17, stable_hash)])
@given(events=UPSERTS)
@settings(max_examples=30, deadline=None)
def test_upserts_leave_the_last_row_of_each_key_however_they_are_cut(events: list[Event], count: int, hasher) -> None:
    run, model = Run(normalize(), hasher), NormalizeModel(key=(0,))
    kept: Counter = Counter()
    for piece in cut(events, count):
        expected = [each for event in piece for each in model.process(event, 0)]
        found = run.batch(piece)
        assert net(found) == net(expected)
        for kind, row in found:
            kept[row] += 1 if kind in ("+I", "+U") else -1
            assert kept[row] >= 0, f"{kind} of {row}, which is not there"
        for place, (kind, row) in enumerate(found):
            if kind == "-U":
                after, replacing = found[place + 1]
                assert (after, replacing[0]) == ("+U", row[0])
    assert +kept == Counter(row for row, _ in model.state.values())


@given(events=UPSERTS, ttl=st.integers(1, 6), steps=st.lists(st.integers(0, 4), min_size=8, max_size=8))
@settings(max_examples=50, deadline=None)
def test_upserts_expire_by_the_last_write_of_their_key(events: list[Event], ttl: int, steps: list[int]) -> None:
    run, model = Run(normalize(ttl)), NormalizeModel(key=(0,), ttl=ttl)
    now = 100
    for piece, step in zip(cut(events, len(steps)), steps, strict=True):
        now += step
        expected = [each for event in piece for each in model.process(event, now)]
        assert net(run.batch(piece, now)) == net(expected)


def test_without_update_before_only_the_new_row_is_emitted() -> None:
    run = Run(normalize(kinds=("+I", "+U", "-D")))
    assert run.batch([("+I", ("a", 1, "x"))]) == [("+I", ("a", 1, "x"))]
    assert run.batch([("+U", ("a", 2, "x"))]) == [("+U", ("a", 2, "x"))]
    assert run.batch([("-D", ("a", None, None))]) == [("-D", ("a", 2, "x"))]


def test_an_equal_row_is_emitted_again_only_with_a_ttl() -> None:
    """Recorded: Flink emits +I, -U, +U for a row that comes twice with a TTL, and +I without one."""
    row = ("a", 1, "x")
    for ttl, expected in ((0, []), (10, [("-U", row), ("+U", row)])):
        run = Run(normalize(ttl))
        run.batch([("+I", row)])
        assert run.batch([("+I", row)], now=5) == expected


@pytest.mark.parametrize(("count", "hasher"), [(1, stable_hash), (3, colliding_hash), (17, stable_hash)])
@given(events=changes())
@settings(max_examples=30, deadline=None)
def test_a_sink_has_the_latest_row_of_each_key_however_rows_are_cut(events: list[Event], count: int, hasher) -> None:
    run, model = Run(materialize(), hasher), MaterializeModel(key=(0,))
    found: dict = {}
    expected: dict = {}
    for piece in cut(events, count):
        emitted = run.batch(piece)
        assert len({row[0] for _, row in emitted}) == len(emitted), "a key is written once a batch"
        for kind, row in emitted:
            assert (kind == "+I") == (row[0] not in found)
            assert kind != "-D" or found[row[0]] == row
        found = table_of(emitted, found)
        expected = table_of([each for event in piece for each in model.process(event, 0)], expected)
        assert found == expected


@given(events=changes(), ttl=st.integers(1, 6), steps=st.lists(st.integers(0, 4), min_size=8, max_size=8))
@settings(max_examples=50, deadline=None)
def test_rows_of_a_sink_expire_by_the_last_change_of_their_key(events: list[Event], ttl: int, steps: list[int]) -> None:
    run, model = Run(materialize(ttl)), MaterializeModel(key=(0,), ttl=ttl)
    now = 100
    found: dict = {}
    expected: dict = {}
    for piece, step in zip(cut(events, len(steps)), steps, strict=True):
        now += step
        found = table_of(run.batch(piece, now), found)
        expected = table_of([each for event in piece for each in model.process(event, now)], expected)
        assert found == expected


def test_what_was_there_before_comes_again() -> None:
    run = Run(materialize())
    first, second, third = ("a", 1, "x"), ("a", 2, "x"), ("a", 3, "x")
    assert run.batch([("+I", first)]) == [("+I", first)]
    assert run.batch([("+I", second), ("+I", third)]) == [("+U", third)]
    assert run.batch([("-D", second)]) == []
    assert run.batch([("-D", third)]) == [("+U", first)]
    assert run.batch([("-U", first), ("+U", second)]) == [("+U", second)]
    assert run.batch([("-D", second)]) == [("-D", second)]
    assert run.result.state_rows == 0


def test_rows_that_only_come_have_no_kinds() -> None:
    run = Run(materialize(changelog=False))
    assert run.batch([("+I", ("a", 1, "x")), ("+I", ("a", 2, "x")), ("+I", ("b", 1, "x"))]) == [
        ("+I", ("a", 2, "x")),
        ("+I", ("b", 1, "x")),
    ]


def test_an_edited_ttl_holds_for_rows_that_are_there() -> None:
    run = Run(materialize(10))
    run.batch([("+I", ("a", 1, "x"))], now=0)
    run.operator = materialize(100)
    assert run.batch([("+I", ("a", 2, "x"))], now=50) == [("+U", ("a", 2, "x"))]
    run.operator = materialize(20)
    assert run.batch([("-D", ("a", 2, "x"))], now=60) == [("+U", ("a", 1, "x"))]
    assert run.batch([("+I", ("a", 3, "x"))], now=80) == [("+I", ("a", 3, "x"))]


def test_a_batch_without_rows_forgets_keys_that_nobody_writes() -> None:
    for operator in (normalize(8), materialize(8)):
        run = Run(operator)
        run.batch([("+I", (str(number), number, "x")) for number in range(100)], now=0)
        assert run.batch([], now=9) == []
        assert run.result.state_rows == 100
        assert run.batch([], now=10) == []
        assert run.result.state_rows == 0


def test_many_batches_of_many_keys_fold_to_the_last_rows() -> None:
    """Segments are merged on the way; the reference is a dictionary."""
    chance = np.random.default_rng(7)
    whole, sink = Run(normalize()), Run(materialize())
    expected: dict = {}
    folded: Counter = Counter()
    table: dict = {}
    for batch in range(30):
        keys = chance.integers(0, 3000, 1000)
        gone = chance.random(1000) < 0.2
        events = [
            ("-D" if d else "+I", (str(k), int(batch * 1000 + i), "x"))
            for i, (k, d) in enumerate(zip(keys, gone, strict=True))
        ]
        for kind, row in events:
            if kind == "-D":
                expected.pop(row[0], None)
            else:
                expected[row[0]] = row
        emitted = whole.batch(events)
        folded = fold(emitted, folded)
        table = table_of(sink.batch(emitted), table)
    assert folded == Counter(expected.values())
    assert table == expected


def test_stored_rows_are_found_under_the_states_of_the_plan() -> None:
    files = "'connector' = 'filesystem', 'format' = 'json', 'path' = 'x', 'source.changelog' = 'upsert'"
    table = "'connector' = 'jdbc', 'url' = 'jdbc:sqlite:x', 'table-name' = 't'"
    plan = compile_sql(
        f"CREATE TABLE u (k BIGINT, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ({files});"
        f"CREATE TABLE t (v BIGINT, k BIGINT, PRIMARY KEY (v) NOT ENFORCED) WITH ({table});"
        "INSERT INTO t SELECT v, k FROM u ON CONFLICT DO DEDUPLICATE;"
    )
    found = {name: [(entry.name, entry.keys) for entry in entries] for name, entries in entries_of(plan, None).items()}
    assert found == {
        "normalize_u": [("changelogNormalizeState", ("k",))],
        "materialize_t": [("sinkMaterializeState", ("v",))],
    }

"""A limit on the rows of a key that a side of a join keeps, against the record-by-record model and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hintplan
from hintplan.planner.compile import compile_sql
from hintplan.plans.lint.loss_rules import lossy_settings
from hintplan.runtime.state.layout import prefixed_hash
from tests.runtime.changelog import Event, fold, stable_hash
from tests.runtime.flink_model import JoinModel
from tests.runtime.operators.test_join_operator import KINDS, Run, join
from tests.runtime.pipeline import Pipeline

EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from(["+I", "+I", "+I", "-D"]),
        st.tuples(st.sampled_from([1, 1, 2, None]), st.sampled_from("abcdef")),
    ),
    max_size=40,
)


def limited(kind: str, left: int | None, right: int | None = None, **more: object) -> Run:
    return Run(replace(join(kind, **more), limits=(left, right)))


def oldest_first(item: tuple) -> tuple:
    """Rows of one write that no batch tells apart go by their hash."""
    row, entry = item
    key, whole = (np.array([stable_hash(values)]) for values in (row[:1], row))
    return entry.write, int(prefixed_hash(key, whole)[0])


def trim(model: JoinModel, side: int, limit: int | None, now: int) -> int:
    gone = 0
    for key in {row[0] for row in model.state[side]} if limit is not None else ():
        rows = sorted(((r, e) for r, e in model.live(side, now).items() if r[0] == key), key=oldest_first)
        for row, _ in rows[: max(len(rows) - limit, 0)]:
            del model.state[side][row]
            gone += 1
    return gone


@pytest.mark.parametrize("ttls", [(0, 0), (7, 4)])
@pytest.mark.parametrize(("left", "right"), [(1, None), (2, 3)])
@pytest.mark.parametrize("kind", KINDS)
@given(events=EVENTS)
@settings(max_examples=15, deadline=None)
def test_what_goes_is_the_oldest_and_goes_as_if_it_had_expired(events, kind, left, right, ttls) -> None:
    run = limited(kind, left, right, ttls=ttls)
    model = JoinModel(kind=kind, keys=((0,), (0,)), widths=(2, 2), ttls=ttls)
    forgets = [bool(ttl) or limit is not None for ttl, limit in zip(ttls, (left, right), strict=True)]
    for now, (side, *event) in enumerate(events, 100):
        op, row = event
        # Where no row is forgotten, one that is not there cannot be taken back; of rows without a key nothing is kept.
        broken = op == "-D" and not forgets[side] and row[0] is not None and row not in model.state[side]
        expected = [] if broken else model.process(side, tuple(event), now)
        gone = trim(model, side, (left, right)[side], now)
        found = run.batch(*([tuple(event)] if each == side else [] for each in (0, 1)), now=now)
        assert fold(found) == fold(expected)
        assert run.result.metrics == (gone,)


def test_of_one_batch_the_rows_that_came_first_go() -> None:
    run = limited("inner", 2)
    run.batch([("+I", (1, value)) for value in "cab"] + [("+I", (2, "z"))], [])
    assert run.result.metrics == (1,)
    assert run.result.state_rows == 3
    found = run.batch([], [("+I", (1, "r")), ("+I", (2, "r"))], now=1)
    assert fold(found) == {(1, "a", 1, "r"): 1, (1, "b", 1, "r"): 1, (2, "z", 2, "r"): 1}


def test_a_row_that_comes_again_is_new_again_and_counts_once() -> None:
    run = limited("inner", 2)
    run.batch([("+I", (1, "a")), ("+I", (1, "b"))], [], now=1)
    run.batch([("+I", (1, "a"))], [], now=2)
    run.batch([("+I", (1, "c"))], [], now=3)
    assert run.result.metrics == (1,)
    assert fold(run.batch([], [("+I", (1, "r"))], now=4)) == {(1, "a", 1, "r"): 2, (1, "c", 1, "r"): 1}


def test_a_limit_may_come_shrink_and_go_between_runs() -> None:
    """State keeps its layout: it is read whatever the limit was when it was written."""
    run = Run(join("inner"))
    run.batch([("+I", (1, value)) for value in "abcd"], [], now=1)
    for limit, added, left in ((3, "e", 3), (1, "f", 1), (None, "g", 2)):
        operator = replace(join("inner"), limits=(limit, None))
        assert [layout.fingerprint for layout in operator.layouts] == [
            layout.fingerprint for layout in run.operator.layouts
        ]
        run.operator = operator
        run.batch([("+I", (1, added))], [], now=2 + ord(added))
        assert run.result.state_rows == left


def test_a_key_that_gets_no_row_keeps_what_it_has() -> None:
    run = Run(join("inner"))
    run.batch([("+I", (1, value)) for value in "abc"], [], now=1)
    run.operator = replace(join("inner"), limits=(1, None))
    run.batch([("+I", (2, "z"))], [("+I", (1, "r"))], now=2)
    assert run.result.metrics == (0,)
    assert run.result.state_rows == 5


def test_a_padded_row_that_went_is_not_taken_back() -> None:
    """As with a row that has expired: nothing is retracted, and what it would have met stays away."""
    run = limited("left", 1)
    first: list[Event] = run.batch([("+I", (1, "a"))], [], now=1)
    second = run.batch([("+I", (1, "b"))], [], now=2)
    third = run.batch([], [("+I", (1, "r"))], now=3)
    assert fold([*first, *second]) == {(1, "a", None, None): 1, (1, "b", None, None): 1}
    assert fold(third) == {(1, "b", None, None): -1, (1, "b", 1, "r"): 1}


@pytest.mark.parametrize("limit", [1, 3])
def test_a_join_without_keys_has_one_key(limit: int) -> None:
    operator = replace(join("inner"), left_keys=(), right_keys=(), limits=(limit, None))
    run = Run(operator)
    run.batch([("+I", (key, "a")) for key in range(5)], [], now=1)
    assert run.result.metrics == (5 - limit,)
    assert len(run.batch([], [("+I", (9, "r"))], now=2)) == limit


SCRIPT = """
SET 'table.exec.join.max-rows-per-key' = '2';
CREATE TABLE o (id BIGINT, c BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE c (id BIGINT, name STRING) WITH ('connector' = 'filesystem', 'path' = 'c', 'format' = 'json');
CREATE TABLE r (id BIGINT, name STRING) WITH ('connector' = 'print');
INSERT INTO r SELECT o.id, c.name FROM o JOIN c ON o.c = c.id;
"""


@pytest.mark.parametrize(
    ("edits", "left"),
    [({}, {2, 3}), ({"left": 1}, {3}), ({"left": 0}, {1, 2, 3}), ({"right": 1}, {2, 3})],
)
def test_config_limits_both_sides_and_an_edit_one(edits: dict[str, int], left: set[int]) -> None:
    plan = compile_sql(SCRIPT)
    for side, limit in edits.items():
        plan = hintplan.set(plan, f"join_o_c.max-rows-per-key.{side}", limit)
    pipeline = Pipeline(hintplan.loads(hintplan.dumps(plan)))
    pipeline.batch({"o": [(1, 7), (2, 7), (3, 7)]})
    pipeline.batch({"c": [(7, "x")]})
    assert +pipeline.result == {(number, "x"): 1 for number in left}


def test_it_is_explained_and_linted_where_it_is_set_and_absent_where_not() -> None:
    limited_plan = hintplan.set(compile_sql(SCRIPT), "join_o_c.max-rows-per-key.right", 0)
    shown = str(hintplan.explain(limited_plan))
    assert "max-rows-per-key             left 2 (config) · right 0 (edit · config 2)" in shown
    assert [found.path for found in lossy_settings(limited_plan)] == ["operators.join_o_c.max-rows-per-key.left"]
    plan = compile_sql(SCRIPT.replace("SET 'table.exec.join.max-rows-per-key' = '2';", ""))
    assert "max-rows-per-key" not in hintplan.dumps(plan).decode()
    assert list(lossy_settings(plan)) == []


def test_a_batch_plan_has_none() -> None:
    batch = "SET 'execution.runtime-mode' = 'batch';" + SCRIPT
    assert "max-rows-per-key" not in str(hintplan.explain(compile_sql(batch)).text().partition("\n\n")[2])
    with pytest.raises(hintplan.PlanError, match="a batch job keeps no state"):
        hintplan.set(compile_sql(batch), "join_o_c.max-rows-per-key.left", 3)

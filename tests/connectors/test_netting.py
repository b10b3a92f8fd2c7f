"""Netting a batch against a reference that applies the changelog row by row."""

from __future__ import annotations

import math

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.runtime import operator
from hintplan.runtime.connectors.netted_rows import DELETED, net_rows
from hintplan.runtime.connectors.netting import Net, net
from hintplan.runtime.operator import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE

KIND = {"+I": INSERT, "-U": UPDATE_BEFORE, "+U": UPDATE_AFTER, "-D": DELETE}


def netted(*changes: tuple[str, tuple]) -> Net:
    return net([row for _, row in changes], [KIND[kind] for kind, _ in changes], key=(0,))


def test_a_row_that_is_added_and_taken_back_leaves_no_trace():
    assert netted(("+I", ("a", 1)), ("-D", ("a", 1))) == Net(upserts=(), deletes=())


def test_an_update_writes_only_the_new_row():
    assert netted(("-U", ("a", 1)), ("+U", ("a", 2))) == Net(upserts=(("a", 2),), deletes=())


def test_the_old_row_may_be_taken_back_after_the_new_one_is_added():
    assert netted(("+I", ("a", 2)), ("-D", ("a", 1))) == Net(upserts=(("a", 2),), deletes=())


def test_a_row_that_is_only_taken_back_deletes_its_key():
    assert netted(("-D", ("a", 1))) == Net(upserts=(), deletes=(("a",),))


def test_without_update_before_the_last_row_of_a_key_decides():
    assert netted(("+U", ("a", 1)), ("+U", ("a", 2))).upserts == (("a", 2),)
    assert netted(("+U", ("a", 1)), ("+U", ("a", 2)), ("-D", ("a", 2))).deletes == (("a",),)


def test_a_key_of_several_columns_is_deleted_as_a_whole():
    found = net([("a", 1, "x"), ("a", 2, "y")], [DELETE, INSERT], key=(1, 0))
    assert found == Net(upserts=(("a", 2, "y"),), deletes=((1, "a"),))


def test_rows_with_null_cancel_like_any_other():
    assert netted(("+I", ("a", None)), ("-D", ("a", None))) == Net(upserts=(), deletes=())


# A table's life is a list of (key, new value or None for gone); it starts from `before` and ends as a dict says.
VALUES = st.none() | st.integers(0, 3)
TABLES = st.dictionaries(st.integers(0, 4), st.integers(0, 3))
STEPS = st.lists(st.tuples(st.integers(0, 4), VALUES), max_size=30)


def changelog(before: dict, steps: list, *, update_before: bool) -> tuple[list, list, dict]:
    """The changes that turn `before` into what the steps say, and that end, applied one by one."""
    state, rows, kinds = dict(before), [], []

    def emit(kind: int, key: int, value: int) -> None:
        rows.append((key, value))
        kinds.append(kind)

    for key, value in steps:
        if value is None:
            if key in state:
                emit(DELETE, key, state.pop(key))
        elif key not in state:
            emit(INSERT, key, value)
            state[key] = value
        else:
            if update_before:
                emit(UPDATE_BEFORE, key, state[key])
            emit(UPDATE_AFTER, key, value)
            state[key] = value
    return rows, kinds, state


def applied(before: dict, changes: Net) -> dict:
    result = {key: value for key, value in before.items() if (key,) not in changes.deletes}
    return result | dict(changes.upserts)


@given(TABLES, STEPS)
def test_netting_a_changelog_ends_where_applying_it_row_by_row_ends(before, steps):
    rows, kinds, after = changelog(before, steps, update_before=True)
    assert applied(before, net(rows, kinds, key=(0,))) == after


@given(TABLES, STEPS)
def test_netting_a_changelog_without_update_before_ends_where_applying_it_ends(before, steps):
    rows, kinds, after = changelog(before, steps, update_before=False)
    assert applied(before, net(rows, kinds, key=(0,))) == after


@given(TABLES, STEPS, st.randoms(use_true_random=False))
def test_the_order_of_a_batch_of_inserts_and_deletes_does_not_matter(before, steps, random):
    """Joins give no order within a batch; only the surplus of each row says what is there in the end."""
    rows, kinds, after = changelog(before, steps, update_before=True)
    plain = [INSERT if kind == UPDATE_AFTER else DELETE if kind == UPDATE_BEFORE else kind for kind in kinds]
    shuffled = list(zip(rows, plain, strict=True))
    random.shuffle(shuffled)
    changes = net([row for row, _ in shuffled], [kind for _, kind in shuffled], key=(0,))
    assert applied(before, changes) == after


@given(TABLES, STEPS)
def test_no_key_is_both_written_and_deleted_and_none_twice(before, steps):
    rows, kinds, _ = changelog(before, steps, update_before=True)
    changes = net(rows, kinds, key=(0,))
    keys = [row[:1] for row in changes.upserts] + list(changes.deletes)
    assert len(keys) == len(set(keys))


# Rows in Arrow, against the rows above: nested values and floats included, and changes that make no sense.
ROWS = st.lists(
    st.tuples(
        st.sampled_from([INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE]),
        st.tuples(st.integers(0, 2), st.sampled_from(["a", "b"])),
        st.sampled_from([(1.5, (1, None)), (0.0, None), (None, ()), (1.5, (2,))]),
    ),
    max_size=25,
)


@settings(deadline=None)  # the first call loads what it needs
@given(ROWS, st.booleans())
def test_rows_in_arrow_are_netted_like_any_other(changes, only_added):
    kinds = [INSERT if only_added else kind for kind, *_ in changes]
    rows = [(*key, *values) for _, key, values in changes]
    found = net(rows, kinds, key=(0, 1))
    table = pa.table(
        {
            "a": pa.array([row[0] for row in rows], pa.int32()),
            "b": pa.array([row[1] for row in rows], pa.string()),
            "f": pa.array([row[2] for row in rows], pa.float64()),
            "n": pa.array([row[3] for row in rows], pa.list_(pa.int32())),
            operator.KIND: pa.array(kinds, pa.int8()),
        }
    )
    if only_added:
        table = table.drop_columns([operator.KIND])
    netted_rows = net_rows(table, ("a", "b")).to_pylist()
    told = [(row["a"], row["b"], row["f"], None if row["n"] is None else tuple(row["n"])) for row in netted_rows]
    deleted = [row[DELETED] for row in netted_rows]
    assert sorted(map(str, (row for row, gone in zip(told, deleted, strict=True) if not gone))) == sorted(
        map(str, found.upserts)
    )
    assert sorted(row[:2] for row, gone in zip(told, deleted, strict=True) if gone) == sorted(found.deletes)


def test_zeros_and_what_is_no_number_are_one_key_each():
    table = pa.table({"k": [0.0, -0.0, math.nan, -math.nan], "v": [1, 2, 3, 4]})
    assert net_rows(table, ("k",))["v"].to_pylist() == [2, 4]

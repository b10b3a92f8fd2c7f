"""Rows that tasks leave out before the shuffle change nothing: the same output, however batches and tasks are cut."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.plans.operators import SortKey
from hintplan.runtime.kernels.numbering import Numbering
from hintplan.runtime.operators.deduplicate import DeduplicateOperator
from hintplan.runtime.operators.first_rows import FirstRowsOperator
from hintplan.runtime.operators.task_filter import TaskFilter
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import colliding_hash, delta, events_of, stable_hash

COLUMNS = pa.schema([("k", pa.string()), ("at", pa.timestamp("us")), ("v", pa.int64())])
WHOLE = ("+I", "-U", "+U", "-D")
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 3) | st.none(), st.integers(0, 50)), max_size=30
)


def deduplicate(keep: Any, time: str | None) -> DeduplicateOperator:
    kinds: Any = ("+I",) if (keep, time) == ("first", None) else ("+I", "-U", "+U")
    return DeduplicateOperator(columns=COLUMNS, key=("k",), time=time, keep=keep, ttl=0, kinds=kinds)


def rank(end: int, number: str | None) -> FirstRowsOperator:
    order = (SortKey(column="at", direction="desc", nulls="last"),)
    numbering = Numbering(order=order, start=1, end=end, number=number, kinds=WHOLE)
    return FirstRowsOperator(columns=COLUMNS, key=("k",), numbering=numbering, ttl=0)


OPERATORS = {
    "the first by arrival": deduplicate("first", None),
    "the last by arrival": deduplicate("last", None),
    "the first by time": deduplicate("first", "at"),
    "the last by time": deduplicate("last", "at"),
    "the first one": rank(1, "n"),
    "the first three": rank(3, "n"),
}


@pytest.mark.parametrize("hasher", [stable_hash, colliding_hash])
@pytest.mark.parametrize("name", OPERATORS)
@given(rows=ROWS, batch=st.integers(1, 30), task=st.integers(1, 30), every=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_any_pieces_left_thin_give_what_all_rows_give(
    rows: list[tuple[Any, ...]], batch: int, task: int, every: int, name: str, hasher: Any
) -> None:
    """A batch is cut into pieces of tasks, of which each ``every``-th lets its rows be."""
    operator: Any = OPERATORS[name]
    (spec,) = operator.inputs
    thinned = pickle.loads(pickle.dumps(spec.presum))
    assert isinstance(thinned, TaskFilter)
    whole, pieces = (MemoryStore(), None), (MemoryStore(), None)
    for start in range(0, len(rows), batch):
        table = delta(spec, [("+I", row) for row in rows[start : start + batch]], hasher)
        parts = [table.slice(place, task).combine_chunks() for place in range(0, table.num_rows, task)]
        sent = [part if place % every else thinned.chosen(part) for place, part in enumerate(parts, 1)]
        assert all(each.schema == thinned.schema == table.schema for each in sent)
        one = operator.process((table,), whole[1], whole[0], 0)
        other = operator.process((pa.concat_tables(sent),), pieces[1], pieces[0], 0)
        whole, pieces = (whole[0], one.manifest), (pieces[0], other.manifest)
        assert events_of(one.output) == events_of(other.output)
        assert one.state_rows == other.state_rows


@pytest.mark.parametrize("name", OPERATORS)
def test_rows_that_are_hardly_fewer_are_let_be(name: str) -> None:
    (spec,) = OPERATORS[name].inputs
    assert isinstance(spec.presum, TaskFilter)
    rows = delta(spec, [("+I", ("abcd"[place % 4], place, place)) for place in range(40)])
    found = spec.presum.sum_up(rows)
    assert found is not None
    assert found.num_rows == (12 if name == "the first three" else 4)
    assert spec.presum.sum_up(rows.slice(0, 4)) is None
    assert spec.presum.lift(rows) is rows

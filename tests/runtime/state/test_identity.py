"""Rows are grouped by what they are, whatever their hashes, and groups stand in the order of these."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.runtime.state.identity import hashed_groups
from tests.runtime.changelog import stable_hash

ROWS = st.lists(st.tuples(st.sampled_from([None, 1, 2]), st.sampled_from(["x", "y", None])), max_size=30)


@settings(deadline=None)
@given(rows=ROWS, salt=st.integers(0, 100), hashes=st.integers(1, 9))
def test_equal_rows_are_one_group_also_where_others_have_their_hash(rows: list, salt: int, hashes: int) -> None:
    of_row = np.array([stable_hash((salt, row)) % hashes for row in rows], np.int64)
    columns = [pa.array([k for k, _ in rows], pa.int64()), pa.array([s for _, s in rows], pa.string())]
    groups, first = hashed_groups(columns, of_row)
    assert sorted(first.tolist()) == sorted(rows.index(row) for row in set(rows))
    assert [rows[first[group]] for group in groups] == rows
    assert of_row[first].tolist() == sorted(of_row[first].tolist())

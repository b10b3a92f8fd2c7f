"""Rows that come in any order are put in the order that their metadata columns say."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa

from hintplan.runtime.engine.row_order import ROW_ORDER, in_row_order


def test_rows_stand_in_their_order_wherever_their_piece_was_read() -> None:
    # Time, path, block and value: later by time, then path, then block, then place among the rows of a piece.
    pieces = [[(2, "a", 0, 2)], [(1, "z", 64, 1)], [(2, "b", 64, 4), (2, "b", 64, 5)], [(2, "b", 0, 3)]]
    for order in permutations(pieces):
        columns = zip(*(row for piece in order for row in piece), strict=True)
        delta = pa.table(list(columns), names=[*ROW_ORDER.names, "value"])
        assert in_row_order(delta).to_pydict() == {"value": [1, 2, 3, 4, 5]}


def test_rows_without_the_metadata_columns_stay_as_they_are() -> None:
    delta = pa.table({"value": [3, 1, 2]})
    assert in_row_order(delta) is delta


def test_a_delta_without_rows_has_an_order_too() -> None:
    empty = ROW_ORDER.append(pa.field("value", pa.int64())).empty_table()
    assert in_row_order(empty).schema == pa.schema([("value", pa.int64())])

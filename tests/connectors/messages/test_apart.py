"""Which messages of a batch are read one by one, told by readers that note what they are given."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.connectors.messages.apart import read_apart

Found = tuple[pa.Table, "np.ndarray[tuple[int], np.dtype[np.int64]]"]


def read(texts: str, *, known: Collection[str] = ("o",), refused: str = "ox") -> tuple[str, list[str], int]:
    """The rows of messages, what was read by row, and how often the reader in bulk was called.

    A message is a letter and has as many rows as its place in " ab", or else one row. Those in ``refused`` are not read
    in bulk, those in ``known`` are told beforehand.
    """
    by_row: list[str] = []
    calls = 0

    def rows_of(batch: pa.RecordBatch) -> Found:
        letters = batch.column("value").to_pylist()
        counts = [max(" ab".find(letter), 1 if letter not in " ab" else 0) for letter in letters]
        positions = np.repeat(np.arange(len(letters)), counts)
        return pa.table({"value": batch.column("value").take(pa.array(positions))}), positions

    def in_bulk(batch: pa.RecordBatch) -> Found | None:
        nonlocal calls
        calls += 1
        return None if set(batch.column("value").to_pylist()) & set(refused) else rows_of(batch)

    def one_by_one(batch: pa.RecordBatch) -> Found | None:
        by_row.append("".join(batch.column("value").to_pylist()))
        found = rows_of(batch)
        return found if found[0].num_rows else None

    batch = pa.record_batch({"value": pa.array(list(texts))})
    tables = list(
        read_apart(batch, in_bulk, one_by_one, lambda batch: pc.is_in(batch.column("value"), pa.array(list(known))))
    )
    return "".join(value for table in tables for value in table["value"].to_pylist()), by_row, calls


def test_plain_messages_are_read_at_once() -> None:
    assert read("ab a") == ("abba", [], 1)
    assert read("  ") == ("", [], 1)


def test_only_odd_messages_are_read_by_row_in_the_order_of_all() -> None:
    assert read("abo aaoba") == ("abboaaobba", ["oo"], 2)


def test_odd_messages_without_rows_leave_the_others() -> None:
    assert read("ab aaab", known=(" ",), refused=" ") == ("abbaaabb", [" "], 2)


def test_many_odd_messages_are_read_in_pieces() -> None:
    assert read("oooa") == ("oooa", ["oooa"], 1)


def test_messages_that_are_refused_for_another_reason_are_read_in_pieces() -> None:
    assert read("aaaoaax") == ("aaaoaax", ["aaaoaax"], 2)
    texts = "a" * 1500 + "x" + "a" * 1500 + "o" + "a"
    rows, by_row, _ = read(texts)
    assert rows == texts
    assert by_row == [texts[1024:2048], texts[2048:]]

"""Rows for people and scripts: tables, values as Flink's client shows them, values as JSON, and rows kept in files."""

from __future__ import annotations

import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hintplan.plans.client.table import TableWriter
from hintplan.runtime.results.files import KeptRows
from hintplan.runtime.results.json_values import json_value_of
from hintplan.runtime.results.text import cell

MOMENT = datetime(2024, 7, 1, 10, 30, 5, 120_000)


@pytest.mark.parametrize(
    ("type_text", "value", "text", "as_json"),
    [
        ("BOOLEAN", True, "TRUE", True),
        ("BIGINT", -5, "-5", -5),
        ("DOUBLE", 1e10, "1.0E10", 1e10),
        ("DOUBLE", float("nan"), "NaN", "NaN"),
        ("DOUBLE", float("-inf"), "-Infinity", "-Infinity"),
        ("FLOAT", 0.10000000149011612, "0.1", 0.1),
        ("DECIMAL(5, 2)", Decimal("1.50"), "1.50", "1.50"),
        ("STRING", "it's", "it's", "it's"),
        ("DATE", date(2024, 7, 1), "2024-07-01", "2024-07-01"),
        ("TIMESTAMP(3)", MOMENT, "2024-07-01 10:30:05.120", "2024-07-01 10:30:05.120"),
        ("TIMESTAMP(0)", MOMENT, "2024-07-01 10:30:05", "2024-07-01 10:30:05"),
        ("TIMESTAMP_LTZ(3)", MOMENT.replace(tzinfo=UTC), "2024-07-01 12:30:05.120", "2024-07-01 10:30:05.120Z"),
        ("BYTES", b"\x01\xff", "x'01ff'", "Af8="),
        ("ARRAY<INT>", [1, None], "[1, NULL]", [1, None]),
        ("MAP<STRING, INT>", [("a", 1)], "{a=1}", {"a": 1}),
        ("MAP<INT, INT>", [(1, 2)], "{1=2}", [[1, 2]]),
        ("ROW<a INT, b STRING>", {"a": 1, "b": None}, "(1, NULL)", {"a": 1, "b": None}),
        ("BIGINT NOT NULL", None, None, None),
    ],
)
def test_a_value_as_text_and_as_json(type_text: str, value: Any, text: str | None, as_json: Any) -> None:
    assert cell(type_text, "Europe/Berlin")(value) == text
    assert json.loads(json.dumps(json_value_of(type_text)(value))) == as_json


def drawn(headings: tuple[str, ...], rows: list[tuple[str | None, ...]], width: int | None = None) -> list[str]:
    out = io.StringIO()
    table = TableWriter(headings=headings, numbers=(False, True)[: len(headings)], out=out, width=width)
    table.add(rows)
    assert table.end() == len(rows)
    return out.getvalue().splitlines()


def test_a_table_is_cut_to_the_width_of_the_terminal() -> None:
    lines = drawn(("name", "n"), [("a" * 50, "1"), ("b", "1234567")], width=30)
    assert {len(line) for line in lines} == {30}
    assert lines[3] == f"| {'a' * 15}… |       1 |"


def test_a_table_without_a_terminal_is_not_cut() -> None:
    assert drawn(("name", "n"), [("a" * 300, "1")])[3] == f"| {'a' * 300} | 1 |"


def test_wide_characters_take_two_cells() -> None:
    lines = drawn(("name", "n"), [("東京", "1"), ("abcd", "2")])
    assert lines[3:5] == ["| 東京 | 1 |", "| abcd | 2 |"]


def test_a_value_stays_in_its_cell() -> None:
    assert drawn(("a",), [("x\ny\x1b[2J",)])[3] == "| x\\ny\\x1b[2J |"


def test_rows_after_the_first_thousand_are_written_as_they_come() -> None:
    out = io.StringIO()
    table = TableWriter(headings=("n",), numbers=(True,), out=out)
    table.add([(str(n),) for n in range(1000)])
    assert out.getvalue().count("\n") == 1003
    table.add([("1234567",)])
    assert out.getvalue().endswith("| 12… |\n")
    assert table.end() == 1001


def test_kept_rows_come_batch_by_batch_once_and_in_order(tmp_path: Path) -> None:
    def keep(batch: int, part: int, values: list[int], *, complete: bool = True) -> None:
        folder = tmp_path / f"batch-{batch:012d}"
        folder.mkdir(exist_ok=True)
        rows = pa.table({"c0": values, "__kind": pa.array([batch % 4] * len(values), pa.int8())})
        pq.write_table(rows, folder / f"part-{part:05d}.parquet")
        if complete:
            (folder / "_SUCCESS").touch()

    kept = KeptRows(directory=str(tmp_path))

    def new() -> list[tuple[int, int]]:
        pieces = ((piece.column("c0").to_pylist(), kinds or []) for piece, kinds in kept.new())
        return [pair for values, kinds in pieces for pair in zip(values, kinds, strict=True)]

    assert new() == []
    keep(2, 0, [5], complete=False)
    keep(0, 1, [3])
    keep(0, 0, [1, 2])
    keep(10, 0, [9])
    assert new() == [(1, 0), (2, 0), (3, 0), (9, 2)]
    keep(2, 0, [5])
    assert new() == [(5, 2)]
    kept.discard()
    assert not tmp_path.exists()


def test_rows_whose_directory_is_made_while_a_client_looks_for_it_come_later(tmp_path: Path) -> None:
    directory, done = tmp_path / "rows", threading.Event()

    def come_and_go() -> None:
        while not done.is_set():
            directory.mkdir()
            directory.rmdir()

    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(come_and_go)
        try:
            kept = KeptRows(directory=str(directory))
            assert [piece for _ in range(2_000) for piece in kept.new()] == []
        finally:
            done.set()
            coming.result()

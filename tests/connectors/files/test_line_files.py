"""A task writes the lines of its rows to one file: its bytes by hand, its access rights, and faults while it writes."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.text_sink import line_files
from hintplan.runtime.connectors.filesystem.text_sink.java_floating import java_text
from hintplan.runtime.connectors.filesystem.text_sink.line_files import LineFiles, write_file
from hintplan.runtime.connectors.filesystem.text_sink.lines import LineStyle
from hintplan.runtime.connectors.filesystem.text_sink.values import unquoted_texts
from hintplan.runtime.operator import DELETE, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from tests.sample import gate_seed

FORMATS = ("csv", "json")
NAME = r"part-(\d{5})-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-c000\.(json|csv)"
"""Spark's names: the number of the task and a UUID."""
NOON = datetime(2020, 2, 29, 12, 0, 0, 1)
ROWS = pa.table(
    {
        "t": pa.array(["a", "", 'b"c', "d,e\n", "#", None, "\\\t\x01é"]),
        "i": pa.array([1, -128, None, 0, 5, 6, 7], pa.int8()),
        "f": pa.array([1.5, -0.0, 1e7, 0.00012, float("nan"), float("-inf"), None], pa.float64()),
        "d": pa.array([Decimal("1.50"), Decimal("-0.01"), None, Decimal(0), *[Decimal(9)] * 3], pa.decimal128(9, 2)),
        "b": pa.array([True, False, None, True, True, True, True]),
        "n": pa.array([date(1, 1, 1), date(9999, 12, 31), None, *[date(1970, 1, 1)] * 4]),
        "w": pa.array([NOON, None, *[datetime(1969, 12, 31, 23, 59, 59)] * 5], pa.timestamp("us")),
        "z": pa.array([NOON.replace(tzinfo=UTC), *[None] * 6], pa.timestamp("us", "UTC")),
    }
)
OLD = "1969-12-31 23:59:59.000000"
CSV = (
    "a,1,1.5,1.50,true,0001-01-01,2020-02-29 12:00:00.000001,2020-02-29 12:00:00.000001Z\n"
    '"",-128,-0.0,-0.01,false,9999-12-31,,\n'
    f'"b""c",,1.0E7,,,,{OLD},\n'
    f'"d,e\n",0,1.2E-4,0.00,true,1970-01-01,{OLD},\n'
    f'"#",5,NaN,9.00,true,1970-01-01,{OLD},\n'
    f",6,-Infinity,9.00,true,1970-01-01,{OLD},\n"
    f"\\\t\x01é,7,,9.00,true,1970-01-01,{OLD},\n"
)
JSON = (
    '{"t":"a","i":1,"f":1.5,"d":1.50,"b":true,"n":"0001-01-01","w":"2020-02-29 12:00:00.000001",'
    '"z":"2020-02-29 12:00:00.000001Z"}\n'
    '{"t":"","i":-128,"f":-0.0,"d":-0.01,"b":false,"n":"9999-12-31","w":null,"z":null}\n'
    f'{{"t":"b\\"c","i":null,"f":1.0E7,"d":null,"b":null,"n":null,"w":"{OLD}","z":null}}\n'
    f'{{"t":"d,e\\n","i":0,"f":1.2E-4,"d":0.00,"b":true,"n":"1970-01-01","w":"{OLD}","z":null}}\n'
    f'{{"t":"#","i":5,"f":"NaN","d":9.00,"b":true,"n":"1970-01-01","w":"{OLD}","z":null}}\n'
    f'{{"t":null,"i":6,"f":"-Infinity","d":9.00,"b":true,"n":"1970-01-01","w":"{OLD}","z":null}}\n'
    f'{{"t":"\\\\\\t\\u0001é","i":7,"f":null,"d":9.00,"b":true,"n":"1970-01-01","w":"{OLD}","z":null}}\n'
)
"""As Spark has them: NULL is empty or null, texts have quotes where RFC 4180 wants them, numbers are those of Java."""


NUMBERS = pa.schema([("a", pa.int64())])


def files_in(folder: Path, chosen: str = "json", schema: pa.Schema = NUMBERS) -> LineFiles:
    return LineFiles(
        name="t",
        folder=str(folder),
        run="0123456789ab",
        style=LineStyle(format=chosen, names=tuple(schema.names), java=17),
        schema=schema,
        file_mode=0o640,
        folder_mode=0o750,
    )


def parts(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("part-*")}


@pytest.mark.parametrize(("chosen", "text"), [("csv", CSV), ("json", JSON)])
@pytest.mark.parametrize("most_rows", [1, 3, 1 << 16])
@pytest.mark.parametrize("most_bytes", [1, 200, 32 << 20])
def test_lines_are_right_however_the_rows_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, text: str, most_rows: int, most_bytes: int
) -> None:
    monkeypatch.setattr(line_files, "_MOST_ROWS", most_rows)
    monkeypatch.setattr(line_files, "_MOST_BYTES", most_bytes)
    files = files_in(tmp_path, chosen, ROWS.schema)
    name = files.file_name(0, 0, 0)
    facts = write_file(files, name, [ROWS.slice(0, 2), ROWS.slice(2, 0), ROWS.slice(2)])
    assert (tmp_path / name).read_text(encoding="utf-8") == text
    assert facts.drop("modified").to_pylist() == [
        {"name": name, "size": len(text.encode()), "rows": 7, "retried": False}
    ]
    assert facts["modified"].to_pylist() == [(tmp_path / name).stat().st_mtime_ns // 1_000_000]


@pytest.mark.parametrize("chosen", FORMATS)
def test_kinds_of_rows_are_the_last_column(tmp_path: Path, chosen: str) -> None:
    files = files_in(tmp_path, chosen, pa.schema([("a", pa.int64()), ("op", pa.string())]))
    kinds = pa.array([INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE], pa.int8())
    rows = [pa.table({"a": [1, 2, 3, 4], KIND: kinds}), pa.table({"a": [5]})]
    write_file(files, "part-0", rows)
    wanted = [(1, "+I"), (2, "-U"), (3, "+U"), (4, "-D"), (5, "+I")]
    line = "{},{}\n" if chosen == "csv" else '{{"a":{},"op":"{}"}}\n'
    assert (tmp_path / "part-0").read_text() == "".join(line.format(*row) for row in wanted)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_access_rights_are_those_given(tmp_path: Path, mask: int) -> None:
    folder = tmp_path / "a" / "b"
    with umask(mask):
        write_file(files_in(folder), "part-0", [pa.table({"a": [1]})])
    modes = [path.stat().st_mode & 0o777 for path in (folder / "part-0", folder, folder.parent)]
    assert modes == [0o640, 0o750, 0o750]


class Lost(Exception):
    """The operator below fails."""


def lost() -> Iterator[pa.Table]:
    yield pa.table({"a": [1, 2]})
    raise Lost("below")


def source_gone() -> Iterator[pa.Table]:
    yield pa.table({"a": [1, 2]})
    raise FileNotFoundError("in/1.json")


def too_large() -> Iterator[pa.Table]:
    for _ in range(3):
        yield pa.table({"a": range(20_000)})


@contextmanager
def room(size: int) -> Iterator[None]:
    """Let files have at most so many bytes, as if the disk were full then."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


FAULTS: list[tuple[Any, type[Exception], str]] = [
    (lost, Lost, "below"),
    (source_gone, FileNotFoundError, "in/1.json"),
    (too_large, RunError, r"^table t cannot be written to: File too large \(.*/o\)"),
]


@pytest.mark.parametrize("chosen", FORMATS)
@pytest.mark.parametrize(("rows", "kind", "said"), FAULTS)
def test_a_file_that_cannot_be_finished_is_removed(
    tmp_path: Path, chosen: str, rows: Any, kind: type[Exception], said: str
) -> None:
    files = files_in(tmp_path / "o", chosen)

    def seen() -> Iterable[pa.Table]:
        for table in rows():
            assert parts(tmp_path / "o") == {"part-0"}
            yield table

    with room(200_000), pytest.raises(kind, match=said):
        write_file(files, "part-0", seen())
    assert list((tmp_path / "o").iterdir()) == []


def test_a_fault_is_told_even_if_the_file_is_gone(tmp_path: Path) -> None:
    def rows() -> Iterator[pa.Table]:
        (tmp_path / "part-0").unlink()
        yield from lost()

    with pytest.raises(Lost):
        write_file(files_in(tmp_path), "part-0", rows())


def test_what_is_in_the_way_is_named_and_kept(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("mine")
    with pytest.raises(RunError, match=rf"table t cannot be written to: Not a directory \({tmp_path}/f/part-0\)"):
        write_file(files_in(tmp_path / "f"), "part-0", [])
    with pytest.raises(RunError, match=rf"table t cannot be written to: File exists \({tmp_path}/f\)"):
        write_file(files_in(tmp_path), "f", [])
    assert (tmp_path / "f").read_text() == "mine"


@pytest.mark.parametrize("chosen", FORMATS)
def test_files_of_one_batch_of_one_run_are_removed(tmp_path: Path, chosen: str) -> None:
    files = files_in(tmp_path, chosen)
    other = replace(files, run="ab0123456789")
    names = [files.file_name(2, 0, 1), files.file_name(3, 0, 2), files.file_name(3, 1, 3), other.file_name(3, 0, 2)]
    assert all(re.fullmatch(NAME, name) for name in names)
    for name in names:
        (tmp_path / name).write_text("")
    files.remove(3, wanted=[names[1]])
    assert parts(tmp_path) == {names[0], names[1], names[3]}
    files.remove(3)
    assert parts(tmp_path) == {names[0], names[3]}
    replace(files, folder=str(tmp_path / "none")).remove(3)


def test_attempts_and_tasks_have_files_of_their_own(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    names = {files.file_name(batch, task, attempt) for batch in (0, 1) for task in (0, 1) for attempt in (0, 1, 2**40)}
    assert len(names) == 12
    assert files.file_name(0, 2, 9) < files.file_name(0, 10, 3)


RECORDED = [
    (5.5997167e25, True, "5.5997166E25", "5.5997167E25"),
    (2.8000000000000006e25, False, "2.8000000000000005E25", "2.8000000000000006E25"),
    (2e23, False, "1.9999999999999998E23", "2.0E23"),
    (2e-3, False, "0.002", "0.002"),
    (1e10, True, "1.0E10", "1.0E10"),
    (100663296.0, True, "1.00663296E8", "1.006633E8"),
    (5e-324, False, "4.9E-324", "4.9E-324"),
    (1e-45, True, "1.4E-45", "1.4E-45"),
    (2.0**-44, False, "5.6843418860808015E-14", "5.684341886080802E-14"),
]
"""Numbers, FLOAT or DOUBLE, with their texts in Java 17 and in Java 25."""


@pytest.mark.parametrize(("number", "single", "in_17", "in_25"), RECORDED)
def test_numbers_are_those_of_the_version_of_java(number: float, single: bool, in_17: str, in_25: str) -> None:
    kind = pa.float32() if single else pa.float64()
    for java, text in ((17, in_17), (25, in_25)):
        texts = unquoted_texts(kind, java)
        assert texts is not None
        assert texts(pa.array([number, None, -number], kind)).to_pylist() == [text, None, f"-{text}"]


@pytest.mark.parametrize("java", [17, 25])
@pytest.mark.parametrize("single", [True, False])
def test_columns_and_single_numbers_have_the_same_texts(java: int, single: bool) -> None:
    chance = Random(gate_seed())
    most = 37 if single else 300
    numbers = [chance.uniform(-1, 1) * 10.0 ** chance.randrange(-most, most) for _ in range(2_000)]
    numbers += [round(chance.uniform(-1e6, 1e6), chance.randrange(9)) for _ in range(2_000)]
    numbers += [chance.choice((-1, 1)) * 2.0 ** chance.randrange(-most * 3, most * 3) for _ in range(500)]
    column = pa.array(numbers, pa.float32() if single else pa.float64())
    texts = unquoted_texts(column.type, java)
    assert texts is not None
    assert texts(column).to_pylist() == [java_text(n, single=single, java=java) for n in column.to_pylist()]

"""What a scan of a database has read of a batch stays what it is, as tasks see it, without Spark."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hintplan.plans.connectors.jdbc import ScanPart, scan_parts
from hintplan.plans.declarations.tables import Table, TableColumn, physical_columns
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.jdbc.scan import PartsReader, TableScan
from hintplan.runtime.connectors.table import lookup_source
from hintplan.runtime.lookup.api import LookupContext
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.pins import PinPlace, heeded_pins

HALVES = (ScanPart(column="k", low=1, high=2), ScanPart(column="k", low=3, high=4))


def change(database: Path, *statements: str) -> None:
    with sqlite3.connect(database) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("hintplan.runtime.requests.pins.this_task", lambda batch_key: (0, 0))
    change(tmp_path / "in.db", "CREATE TABLE r (k INTEGER)", "INSERT INTO r VALUES (1), (2), (3), (4)")
    return tmp_path / "in.db"


def scan(database: Path, *parts: ScanPart) -> TableScan:
    table = Table(
        columns=(TableColumn(name="k", type="BIGINT"),),
        options={"connector": "jdbc", "url": f"jdbc:sqlite:{database}", "table-name": "r"},
    )
    context = LookupContext(table="r", options=table.options, keys=(), columns=physical_columns(table))
    return TableScan(context=context, source=lookup_source(table.options), parts=parts or (None,))


def pinning(found: TableScan, database: Path, *, run: int, replayed: int = -1) -> TableScan:
    """``found`` as a run with this number does it, which heeds what is there when it begins."""
    root = str(database.parent / "checkpoint")
    names = files_at(root).names("pins/s")
    heeded = heeded_pins(names, replayed, lambda name: files_at(root).read(f"pins/s/{name}")) if replayed >= 0 else ()
    place = PinPlace(root=root, folder="pins/s", operator="scan_r", run=run, replayed=replayed, heeded=heeded)
    return replace(found, pins=place)


def read(found: TableScan, *numbers: int) -> list[int]:
    batches = found.rows([pa.record_batch([pa.array(numbers or (0,), pa.int64())], names=["part"])])
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def test_a_part_is_read_anew_only_where_nothing_depends_on_it(database: Path) -> None:
    free, kept = scan(database), pinning(scan(database), database, run=1)
    assert read(free) == read(kept) == [1, 2, 3, 4]
    change(database, "DELETE FROM r WHERE k > 1")
    assert read(free) == [1]
    assert read(kept) == [1, 2, 3, 4]


def test_the_next_run_heeds_what_was_read_and_reads_the_rest(database: Path) -> None:
    assert read(pinning(scan(database, *HALVES), database, run=1), 0) == [1, 2]
    change(database, "UPDATE r SET k = k - 1 WHERE k > 1", "INSERT INTO r VALUES (4)")
    second = pinning(scan(database, *HALVES), database, run=2, replayed=0)
    assert read(second, 0) == [1, 2]
    assert read(second, 1) == [3, 4]
    change(database, "DELETE FROM r")
    # The third run goes by what both had.
    assert read(pinning(scan(database, *HALVES), database, run=3, replayed=0), 0, 1) == [1, 2, 3, 4]


def test_a_batch_that_runs_again_is_divided_as_before(database: Path) -> None:
    assert read(pinning(scan(database, *HALVES), database, run=1), 0) == [1, 2]
    with pytest.raises(RunError, match="had other splits or another filter when batch 0 began"):
        read(pinning(scan(database), database, run=2, replayed=0))


def test_a_table_is_read_once_whatever_its_parts() -> None:
    for parts in (1, 3):
        reader = PartsReader(parts)
        assert len(reader.partitions(reader.initialOffset(), reader.latestOffset())) == parts
        assert reader.partitions(reader.latestOffset(), PartsReader(7).latestOffset()) == []


@pytest.mark.parametrize(
    ("number", "low", "high", "expected"),
    [
        ("3", "1", "10", [(1, 4), (5, 7), (8, 10)]),
        ("2", "-3", "2", [(-3, -1), (0, 2)]),
        ("9", "5", "7", [(5, 5), (6, 6), (7, 7)]),
        ("1", "0", "0", [(0, 0)]),
    ],
)
def test_a_scan_is_divided_as_flink_divides_it(
    number: str, low: str, high: str, expected: list[tuple[int, int]]
) -> None:
    # By hand, after Flink's JdbcNumericBetweenParametersProvider: the first parts have one value more.
    options = {"scan.partition.column": "k", "scan.partition.num": number}
    options |= {"scan.partition.lower-bound": low, "scan.partition.upper-bound": high}
    assert [(part.low, part.high) for part in scan_parts(Table(columns=(), options=options))] == expected

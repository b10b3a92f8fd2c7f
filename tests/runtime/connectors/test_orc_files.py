"""Files of ORC as workers read them: what fits the columns of a table, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.orc as orc
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.columnar import orc_files
from hintplan.runtime.connectors.filesystem.columnar.orc_files import misfit_of_file, read_orc


def rows_of(path: str, schema: pa.Schema) -> list[dict[str, object]]:
    return [row for table, _ in read_orc(path, schema, "t") for row in table.to_pylist()]


def written(path: Path, table: pa.Table, **options: object) -> str:
    file = path / "rows.orc"
    orc.write_table(table, file, **options)
    return str(file)


def test_rows_come_by_stripe_in_the_order_and_types_of_the_table(tmp_path: Path) -> None:
    numbers = pa.table({"a": pa.array(range(50_000), pa.int32()), "b": [str(n) for n in range(50_000)]})
    file = written(tmp_path, numbers, stripe_size=65_536, batch_size=1000)
    schema = pa.schema([("b", pa.string()), ("c", pa.list_(pa.int8())), ("a", pa.int64())])
    tables = [table for table, _ in read_orc(f"file:{file}", schema, "t")]
    assert len(tables) > 1
    assert all(table.schema == schema for table in tables)
    whole = pa.concat_tables(tables)
    assert whole["a"].to_pylist() == list(range(50_000))
    assert whole["c"].null_count == 50_000


def test_no_column_at_all_still_counts_the_rows(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"a": [1, 2, 3]}))
    for schema in (pa.schema([("b", pa.int64())]), pa.schema([])):
        assert sum(size for _, size in read_orc(file, schema, "t")) == 3


def test_files_are_read_from_other_file_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, pa.table({"a": [1, None]}))
    system = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    monkeypatch.setattr(orc_files, "opened", lambda url: (system, url.rpartition("/")[2]))
    assert rows_of("s3a://lake/t/rows.orc", pa.schema([("a", pa.int64())])) == [{"a": 1}, {"a": None}]


def test_an_integer_that_its_column_cannot_hold_is_null(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"a": [127, 128, None, -128, -129]}))
    found = rows_of(file, pa.schema([("a", pa.int8())]))
    assert [row["a"] for row in found] == [127, None, None, -128, None]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (pa.table([[1], [2]], ["a", "a"]), "column a of {file} is there twice"),
        (pa.table({"a": ["x"]}), "column a of {file} is of type string, which cannot be read as int32"),
        (pa.table({"_col0": [1]}), "column _col0 of {file} has no name of its own, and goes by its position"),
    ],
    ids=("twice", "type", "position"),
)
def test_what_spark_reads_in_another_way_is_refused(tmp_path: Path, table: pa.Table, problem: str) -> None:
    file = written(tmp_path, table)
    schema = pa.schema([("a", pa.int32())])
    with pytest.raises(RunError) as caught:
        rows_of(file, schema)
    assert caught.value.diagnostics[0].message == f"table t: {problem.format(file=file)}"
    assert misfit_of_file(pafs.LocalFileSystem(), file, schema) == problem.format(file="rows.orc")


def test_an_empty_file_has_no_rows_and_a_broken_one_is_named(tmp_path: Path) -> None:
    file, schema = tmp_path / "a.orc", pa.schema([("a", pa.int64())])
    file.write_bytes(b"")
    assert rows_of(str(file), schema) == []
    file.write_bytes(b"ORC but no more")
    with pytest.raises(RunError, match=f"table t: {file} cannot be read as ORC: "):
        rows_of(str(file), schema)
    file.unlink()
    with pytest.raises(RunError, match=f"table t: {file} cannot be read as ORC: "):
        rows_of(str(file), schema)

"""What is special to the delta sink: its log, and what other libraries make of it and do to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.delta.write import writing_of
from hintplan.runtime.connectors.lakes.target import lake_target
from hintplan.runtime.connectors.lakes.tasks import written_files
from tests.connectors.lakes.lakes import DeltaLake, lake_table
from tests.connectors.lakes.readers import actions, delta_rows
from tests.connectors.lakes.sinks import arrow, sink, written

pytestmark = pytest.mark.spark


def delta_table(path: Path | str, *columns: tuple[str, str], key: tuple[str, ...] = (), **more: str) -> Table:
    return lake_table(DeltaLake(Path(path).parent), Path(path).name, *columns, key=key, **more)


def test_files_that_a_crash_has_left_are_in_no_version(spark: SparkSession, tmp_path: Path) -> None:
    table = delta_table(tmp_path / "t", ("id", "INT"), ("v", "STRING"))
    write = sink(spark, table)
    first, second = (arrow(table, [("+I", (i, "a"))], changelog=False) for i in (1, 2))
    write(first, 0)
    target = lake_target("r", table, "table-path").here()
    left = written_files(second, target, writing_of(target, ()))  # and there it ends
    assert [(tmp_path / "t" / file.path).is_file() for file in left] == [True]
    write(second, 1)
    assert delta_rows(tmp_path / "t") == [(1, "a"), (2, "a")]
    for added in (each["add"] for each in actions(tmp_path / "t") if "add" in each):
        assert added["modificationTime"] == (tmp_path / "t" / added["path"]).stat().st_mtime_ns // 1_000_000


def test_what_others_write_meanwhile_stays(spark: SparkSession, tmp_path: Path) -> None:
    """Changes by another library, of rows and of files, between the batches; columns that are not declared are kept."""
    schema = pa.schema([("more", pa.string()), ("id", pa.int32()), ("v", pa.string())])
    write_deltalake(tmp_path / "t", pa.table({"more": ["m", "n"], "id": [1, 2], "v": ["a", "b"]}, schema=schema))
    table = delta_table(tmp_path / "t", ("id", "INT"), ("v", "STRING"), key=("id",))
    write = sink(spark, table, changelog=True)
    write(arrow(table, [("+U", (1, "c")), ("+I", (3, "d"))]), 0)
    write_deltalake(tmp_path / "t", pa.table({"more": ["o"], "id": [4], "v": ["e"]}, schema=schema), mode="append")
    DeltaTable(tmp_path / "t").optimize.compact()
    write(arrow(table, [("-D", (2, "b")), ("+U", (4, "f"))]), 1)
    assert delta_rows(tmp_path / "t") == [("m", 1, "c"), ("o", 4, "f"), (None, 3, "d")]
    plain = delta_table(tmp_path / "t", ("v", "STRING"), ("id", "INT"))
    sink(spark, plain)(arrow(plain, [("+I", ("g", 5))], changelog=False), 2)
    assert delta_rows(tmp_path / "t") == [("m", 1, "c"), ("o", 4, "f"), (None, 3, "d"), (None, 5, "g")]


@pytest.mark.parametrize(
    ("made", "columns", "more", "said"),
    [
        ({"v": pa.int32()}, [("v", "BIGINT")], {}, "column 'v' is BIGINT here, but \"integer\" in the Delta table"),
        ({"v": pa.int32()}, [("w", "INT")], {}, "has no column 'w'"),
        ({"v": pa.list_(pa.int32())}, [("v", "ARRAY<BIGINT>")], {}, "column 'v' is ARRAY<BIGINT> here, but"),
        ({"v": pa.int32(), "w": pa.field("w", pa.int32(), nullable=False)}, [("v", "INT")], {}, "'w' of the Delta"),
        ({"v": pa.int32(), "p": pa.int32()}, [("v", "INT"), ("p", "INT")], {"partitioned_by": "p"}, "by nothing"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_refused_before_anything_starts(
    spark: SparkSession, tmp_path: Path, made: dict[str, Any], columns: Any, more: dict[str, str], said: str
) -> None:
    fields = [kind if isinstance(kind, pa.Field) else pa.field(name, kind) for name, kind in made.items()]
    DeltaTable.create(tmp_path / "t", pa.schema(fields))
    with pytest.raises(RunError) as caught:
        sink(spark, delta_table(tmp_path / "t", *columns, **more))
    assert said in str(caught.value)
    assert "tables.r" in str(caught.value)
    assert "hint: " in str(caught.value)


@pytest.mark.parametrize("type_", ["TIMESTAMP(3)", "ROW<t TIMESTAMP(3)>", "INT"])
def test_what_readers_and_writers_must_know_is_listed(spark: SparkSession, tmp_path: Path, type_: str) -> None:
    """Of a table with features, Spark's own reader wants NOT NULL among them."""
    table = delta_table(tmp_path / "t", ("id", "INT NOT NULL"), ("v", type_))
    sink(spark, table)(arrow(table, [("+I", (1, None))], changelog=False), 0)
    (protocol,) = (each["protocol"] for each in actions(tmp_path / "t") if "protocol" in each)
    if type_ == "INT":
        assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}
    else:
        assert {"invariants", "timestampNtz"} <= set(protocol["writerFeatures"])
        assert protocol["readerFeatures"] == ["timestampNtz"]


def test_a_version_that_is_there_is_not_written_to(spark: SparkSession, tmp_path: Path) -> None:
    table = delta_table(tmp_path / "t", ("v", "INT"), versionAsOf="1")
    with pytest.raises(RunError, match="is one version of a table, which nobody writes to"):
        sink(spark, table)
    with pytest.raises(RunError, match="is one version of a table, which nobody writes to"):
        written(spark, table, [(1,)])


def test_what_only_other_writers_keep_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    made = DeltaTable.create(tmp_path / "t", pa.schema([("v", pa.int32())]))
    made.alter.add_constraint({"small": "v < 10"})
    with pytest.raises(RunError, match=r"has delta\.constraints.small, which this sink does not keep"):
        sink(spark, delta_table(tmp_path / "t", ("v", "INT")))


def test_a_directory_of_other_files_does_not_become_a_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "letter.txt").write_text("Dear all")
    with pytest.raises(RunError, match="has files, but no log of a Delta table"):
        sink(spark, delta_table(tmp_path / "t", ("v", "INT")))
    with pytest.raises(RunError, match=r"letter\.txt is a file"):
        sink(spark, delta_table(tmp_path / "t" / "letter.txt", ("v", "INT")))


def test_an_empty_text_is_no_partition(spark: SparkSession, tmp_path: Path) -> None:
    table = delta_table(tmp_path / "t", ("v", "INT"), ("p", "STRING"), partitioned_by="p")
    with pytest.raises(RunError, match="an empty text in column 'p' of the partitions, which readers take for NULL"):
        sink(spark, table)(arrow(table, [("+I", (1, ""))], changelog=False), 0)

"""Delta tables with features that other engines turn on: right, or refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.table import batch_overwriter
from tests.connectors.lakes.deletion_vectors import commit, delete_rows, require
from tests.connectors.lakes.lakes import DeltaLake, lake_table
from tests.connectors.lakes.readers import actions
from tests.connectors.lakes.sinks import arrow, in_order, read_back, sink, written

pytestmark = pytest.mark.spark
COLUMNS = (("id", "INT"), ("p", "STRING"), ("v", "STRING"))
NAMES = ("a b%/é", "x:y=z", "n")
"""Values of partitions, of which the names of directories are urls."""


def table_of(path: Path, key: tuple[str, ...] = ()) -> Table:
    return lake_table(DeltaLake(path), "t", *COLUMNS, key=key)


def made(path: Path, *, divided: bool) -> list[tuple[int, str, str]]:
    """A table by another library, of three commits."""
    rows = [(10 * number + i, NAMES[number], "abc"[number]) for number in range(3) for i in range(5)]
    for number in range(3):
        some = [row for row in rows if row[0] // 10 == number]
        schema = pa.schema([("id", pa.int32()), ("p", pa.string()), ("v", pa.string())])
        found = pa.table([list(column) for column in zip(*some, strict=True)], schema=schema)
        write_deltalake(path / "t", found, mode="append", partition_by=["p"] if divided else None)
    return rows


def delete(path: Path, *ids: int) -> None:
    """Commit a version for each file with rows of these ids, without them."""
    gone = 0
    for each in actions(path / "t"):
        if "add" in each and "deletionVector" not in each["add"]:
            file = pq.ParquetFile(path / "t" / unquote(each["add"]["path"])).read(["id"])
            places = [at for at, found in enumerate(file["id"].to_pylist()) if found in ids]
            if places:
                delete_rows(path / "t", each["add"], places)
                gone += len(places)
    assert gone == len(ids)


def by_delta_rs(path: Path) -> list[tuple[Any, ...]]:
    found = pa.table(DeltaTable(path / "t").scan().read_all())
    return in_order(tuple(row[name] for name, _ in COLUMNS) for row in found.to_pylist())


@pytest.mark.sampled
@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("key", [(), ("id",), ("p", "id")])
def test_rows_that_deletion_vectors_take_away_stay_away(
    spark: SparkSession, tmp_path: Path, key: tuple[str, ...], divided: bool
) -> None:
    rows = made(tmp_path, divided=divided)
    require(tmp_path / "t", "deletionVectors", configuration={"delta.enableDeletionVectors": "true"})
    delete(tmp_path, 0, 3, 12, 24)
    there = [row for row in rows if row[0] not in (0, 3, 12, 24)]
    assert read_back(spark, table_of(tmp_path)) == in_order(there)
    table = table_of(tmp_path, key)
    changes = [("+I", (0, NAMES[0], "new")), ("+I", (40, "o", "new")), ("+U" if key else "+I", (1, NAMES[0], "newer"))]
    sink(spark, table, changelog=bool(key))(arrow(table, changes, changelog=bool(key)), 0)
    left = [row for row in there if not key or row[0] != 1] + [row for _, row in changes]
    assert read_back(spark, table) == in_order(left)
    assert by_delta_rs(tmp_path) == in_order(left)
    if key:
        sink(spark, table, changelog=True)(arrow(table, [("-D", (2, NAMES[0], "a")), ("-D", rows[14])]), 1)
        left = [row for row in left if row[0] not in (2, rows[14][0])]
        assert read_back(spark, table) == by_delta_rs(tmp_path) == in_order(left)
    assert read_back(spark, lake_table(DeltaLake(tmp_path), "t", ("p", "STRING"))) == in_order((r[1],) for r in left)


@pytest.mark.sampled
@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("by", ["", "p"])
def test_a_table_with_deletion_vectors_is_overwritten_as_a_whole(
    spark: SparkSession, tmp_path: Path, by: str, vectors: bool
) -> None:
    """Not a partition of it: an action that takes a file away has to name its vector, which delta-rs cannot."""
    rows = made(tmp_path, divided=True)
    require(tmp_path / "t", "deletionVectors", configuration={"delta.enableDeletionVectors": "true"})
    if vectors:
        delete(tmp_path, 0, 3)
    before = [row for row in rows if not vectors or row[0] not in (0, 3)]
    table = lake_table(DeltaLake(tmp_path), "t", *COLUMNS, partitioned_by=by)
    new = (7, NAMES[0], "new")
    overwrite = batch_overwriter(spark.createDataFrame([new], "id INT, p STRING, v STRING"), "t", table)
    if vectors and by:
        with pytest.raises(RunError, match="has files with deletion vectors"):
            overwrite()
        left = before
    else:
        overwrite()
        left = [new, *(row for row in rows if by and row[1] != NAMES[0])]
    assert read_back(spark, table_of(tmp_path)) == by_delta_rs(tmp_path) == in_order(left)


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "fits"), [("p=a%20b/x.parquet", True), ("p=é/x.parquet", False),
                                            ("p=%C3%A9/x.parquet", True), ("p=%c3%a9/x.parquet", False),
                                            ("p=%41/x.parquet", False), ("p=*/x.parquet", False)])  # fmt: skip
@pytest.mark.parametrize("way", ["append", "upsert", "overwrite", "overwrite partitions"])
def test_a_file_that_would_not_be_taken_away_is_refused(
    spark: SparkSession, tmp_path: Path, way: str, name: str, fits: bool
) -> None:
    """Spark writes "é" into the log as it is, delta-rs takes "%C3%A9" away and continues to read the other."""
    made(tmp_path, divided=True)
    (first, *_) = [each["add"] for each in actions(tmp_path / "t") if "add" in each]
    (tmp_path / "t" / unquote(name)).parent.mkdir()
    (tmp_path / "t" / unquote(first["path"])).rename(tmp_path / "t" / unquote(name))
    log = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace(json.dumps(first["path"]), json.dumps(name)))
    before = read_back(spark, table_of(tmp_path))
    assert len(before) == 15
    by, row = ("p" if way == "overwrite partitions" else ""), (0, NAMES[0], "new")
    frame = spark.createDataFrame([row], "id INT, p STRING, v STRING")

    def write() -> None:
        if way.startswith("overwrite"):
            batch_overwriter(frame, "t", lake_table(DeltaLake(tmp_path), "t", *COLUMNS, partitioned_by=by))()
        else:
            written(spark, table_of(tmp_path, ("id",) if way == "upsert" else ()), [row])

    if fits or way == "append":
        write()
        left = {"append": [*before, row], "upsert": [row, *before[1:]], "overwrite": [row]}
        rest = [each for each in before if each[1] != NAMES[0]]
        expected = in_order(left.get(way, [row, *rest]))
    else:
        with pytest.raises(RunError, match="whose name in the log this sink would write otherwise"):
            write()
        expected = before
    assert read_back(spark, table_of(tmp_path)) == by_delta_rs(tmp_path) == expected


KEPT: dict[str, dict[str, str]] = {
    "appendOnly": {}, "changeDataFeed": {}, "checkConstraints": {}, "generatedColumns": {}, "invariants": {},
    "columnMapping": {"delta.columnMapping.mode": "none"}, "deletionVectors": {}, "timestampNtz": {},
    "v2Checkpoint": {},
}  # fmt: skip
"""Features that a table may have; those that ask something of writers only as the table is configured."""
REFUSED = (
    "allowColumnDefaults", "checkpointProtection", "clustering", "collations", "domainMetadata",
    "icebergCompatV1", "icebergCompatV2", "identityColumns", "inCommitTimestamp", "materializePartitionColumns",
    "rowTracking", "typeWidening", "variantType", "made-up",
)  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("key", [(), ("id",)])
@pytest.mark.parametrize("feature", KEPT)
def test_a_table_with_such_a_feature_is_written_to(
    spark: SparkSession, tmp_path: Path, feature: str, key: tuple[str, ...]
) -> None:
    rows = made(tmp_path, divided=False)
    require(tmp_path / "t", feature, configuration=KEPT[feature])
    table = table_of(tmp_path, key)
    sink(spark, table, changelog=bool(key))(arrow(table, [("+I", (0, "q", "new"))], changelog=bool(key)), 0)
    left = [row for row in rows if not key or row[0]] + [(0, "q", "new")]
    assert read_back(spark, table) == by_delta_rs(tmp_path) == in_order(left)


@pytest.mark.parametrize("feature", REFUSED)
def test_a_table_with_another_feature_is_not_written_to(spark: SparkSession, tmp_path: Path, feature: str) -> None:
    made(tmp_path, divided=False)
    require(tmp_path / "t", feature)
    before = list((tmp_path / "t").rglob("*"))
    with pytest.raises(RunError, match=f"has the feature {feature}, which this sink does not keep") as caught:
        sink(spark, table_of(tmp_path))
    assert "tables.r" in str(caught.value)
    assert list((tmp_path / "t").rglob("*")) == before


def test_a_table_that_is_only_appended_to_is_not_upserted_to(spark: SparkSession, tmp_path: Path) -> None:
    rows = made(tmp_path, divided=False)
    require(tmp_path / "t", "appendOnly", configuration={"delta.appendOnly": "true"})
    with pytest.raises(RunError, match=r"has delta\.appendOnly, and a sink with a PRIMARY KEY replaces rows"):
        sink(spark, table_of(tmp_path, ("id",)), changelog=True)
    table = table_of(tmp_path)
    sink(spark, table)(arrow(table, [("+I", (0, "q", "new"))], changelog=False), 0)
    assert by_delta_rs(tmp_path) == in_order([*rows, (0, "q", "new")])


def test_a_change_data_feed_has_the_changes_of_an_upsert(spark: SparkSession, tmp_path: Path) -> None:
    rows = made(tmp_path, divided=False)
    require(tmp_path / "t", "changeDataFeed", configuration={"delta.enableChangeDataFeed": "true"})
    table = table_of(tmp_path, ("id",))
    start = DeltaTable(tmp_path / "t").version() + 1
    changes = [("+U", (0, "q", "new")), ("-D", rows[1]), ("+I", (99, "q", "new"))]
    sink(spark, table, changelog=True)(arrow(table, changes), 0)
    found = pa.table(DeltaTable(tmp_path / "t").load_cdf(starting_version=start).read_all()).to_pylist()
    assert sorted((each["_change_type"], each["id"], each["v"]) for each in found) == [
        ("delete", 1, "a"), ("insert", 99, "new"), ("update_postimage", 0, "new"), ("update_preimage", 0, "a"),
    ]  # fmt: skip


def test_a_mapping_of_columns_is_neither_read_nor_written(spark: SparkSession, tmp_path: Path) -> None:
    made(tmp_path, divided=False)
    require(tmp_path / "t", "columnMapping", configuration={"delta.columnMapping.mode": "name"})
    (metadata,) = [each["metaData"] for each in actions(tmp_path / "t") if "metaData" in each][-1:]
    fields = json.loads(metadata["schemaString"])["fields"]
    for number, field in enumerate(fields):
        field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
    mapped = json.dumps({"type": "struct", "fields": fields})
    commit(tmp_path / "t", {"metaData": {**metadata, "schemaString": mapped}})
    with pytest.raises(RunError, match=r"has delta\.columnMapping\.mode, which this sink does not keep"):
        sink(spark, table_of(tmp_path))
    with pytest.raises(RunError, match=r"cannot be read: .* has the feature columnMapping, which hintplan"):
        read_back(spark, table_of(tmp_path))


def test_files_of_narrower_types_are_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = made(tmp_path, divided=False)
    require(tmp_path / "t", "typeWidening")
    (metadata,) = [each["metaData"] for each in actions(tmp_path / "t") if "metaData" in each][-1:]
    wider = metadata["schemaString"].replace('"integer"', '"long"')
    assert wider != metadata["schemaString"]
    commit(tmp_path / "t", {"metaData": {**metadata, "schemaString": wider}})
    table = lake_table(DeltaLake(tmp_path), "t", ("id", "BIGINT"), *COLUMNS[1:])
    assert read_back(spark, table) == in_order(rows)


def test_a_table_with_a_feature_that_readers_must_know_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    made(tmp_path, divided=False)
    require(tmp_path / "t", "variantType")
    with pytest.raises(RunError, match=r"table r cannot be read: .* has the feature variantType, which hintplan"):
        read_back(spark, table_of(tmp_path))


def test_the_vectors_are_as_the_protocol_has_them(tmp_path: Path) -> None:
    """Another reader of them, which takes the rows away that were asked for, and no others."""
    made(tmp_path, divided=False)
    require(tmp_path / "t", "deletionVectors")
    delete(tmp_path, 0, 3)
    (found,) = pa.table(DeltaTable(tmp_path / "t").deletion_vectors()).to_pylist()
    assert found["selection_vector"][:4] == [False, True, True, False]

"""Delta tables whose log leads elsewhere: nothing outside of them is read, and nothing is written there."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from hintplan.plans.connectors.delta import PATH
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.delta.files import files_of
from hintplan.runtime.connectors.delta.table import open_delta_table
from hintplan.runtime.connectors.lakes.target import LakeTarget, lake_target
from tests.connectors.lakes import deletion_vectors
from tests.connectors.lakes.lakes import DeltaLake, lake_table
from tests.connectors.lakes.readers import actions

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32())})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "lake" / "t", ROWS)
    return tmp_path / "lake" / "t"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    pq.write_table(ROWS, tmp_path / "outside" / "s.parquet")
    return tmp_path / "outside"


def target(table: Path, *, key: bool = False) -> LakeTarget:
    declared = lake_table(DeltaLake(table.parent), table.name, ("id", "INT"))
    return lake_target("t", replace(declared, primary_key=("id",) if key else ()), PATH).here()


def add(table: Path, path: str, size: int) -> None:
    added = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
    deletion_vectors.commit(table, {"add": added})


PATHS = [
    "../../outside/s.parquet", "x/../../../outside/s.parquet", "..%2F..%2Foutside%2Fs.parquet", "%2E%2E/x.parquet",
    "{}/s.parquet", "file://{}/s.parquet", "file:{}/s.parquet", "s3://bucket/s.parquet", "https://x/s.parquet",
    "//x/s.parquet",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_no_file_elsewhere_is_read_or_merged(table: Path, outside: Path, path: str) -> None:
    assert len(files_of(target(table), None)) == 1
    add(table, path.format(outside), (outside / "s.parquet").stat().st_size)
    with pytest.raises(RunError, match="has a file elsewhere"):
        files_of(target(table), None)
    with pytest.raises(RunError, match=r"has a file elsewhere|would write otherwise"):
        open_delta_table(target(table, key=True))


def linked(place: Path, outside: Path) -> None:
    place.symlink_to(place.rename(outside / place.name))


def file_by_a_link(table: Path, outside: Path) -> None:
    (file,) = table.glob("*.parquet")
    linked(file, outside)


def log_by_a_link(table: Path, outside: Path) -> None:
    linked(table / "_delta_log", outside)


def commit_by_a_link(table: Path, outside: Path) -> None:
    linked(table / "_delta_log" / f"{0:020d}.json", outside)


@pytest.mark.parametrize("change", [file_by_a_link, log_by_a_link, commit_by_a_link], ids=lambda each: each.__name__)
def test_no_link_leads_out_of_a_table(table: Path, outside: Path, change: Callable[[Path, Path], None]) -> None:
    change(table, outside)
    before = sorted(os.listdir(outside))
    for used in (lambda: files_of(target(table), None), lambda: open_delta_table(target(table, key=True))):
        with pytest.raises(RunError, match="elsewhere"):
            used()
    assert sorted(os.listdir(outside)) == before


VECTORS = [("p", "file://{}/dv.bin"), ("p", "{}/dv.bin"), ("p", "https://x/dv.bin"), ("u", "../../outside/" + "0" * 20)]


@pytest.mark.parametrize("by", ["commit", "checkpoint", "compacted"])
@pytest.mark.parametrize(("kind", "path"), VECTORS)
def test_no_deletion_vector_elsewhere_is_read(table: Path, outside: Path, kind: str, path: str, by: str) -> None:
    deletion_vectors.require(table, "deletionVectors")
    data = struct.pack("<Iqi", 1681511377, 1, 0) + struct.pack("<IIHHI", 12346, 1, 0, 0, 16) + struct.pack("<H", 1)
    found = b"\x01" + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (outside / "dv.bin").write_bytes(found)
    (added,) = [each["add"] for each in actions(table) if "add" in each]
    vector = {
        "storageType": kind, "pathOrInlineDv": path.format(outside), "offset": 1, "sizeInBytes": len(data),
        "cardinality": 1,
    }  # fmt: skip
    changed = {**added, "dataChange": True, "deletionVector": vector}
    removed = {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}
    if by == "compacted":
        lines = [json.dumps(each) for each in ({"remove": removed}, {"add": changed})]
        (table / "_delta_log" / f"{0:020d}.{1:020d}.compacted.json").write_text("\n".join(lines))
    else:
        deletion_vectors.commit(table, {"remove": removed}, {"add": changed})
    if by == "checkpoint":
        DeltaTable(table).create_checkpoint()
        for file in (table / "_delta_log").glob("*.json"):
            file.unlink()
    with pytest.raises(RunError, match="has a deletion vector elsewhere"):
        files_of(target(table), None)
    with pytest.raises(RunError):
        open_delta_table(target(table, key=True))


def test_deletion_vectors_in_the_table_are_read(table: Path) -> None:
    deletion_vectors.require(table, "deletionVectors")
    (added,) = [each["add"] for each in actions(table) if "add" in each]
    deletion_vectors.delete_rows(table, added, [1])
    (file,) = files_of(target(table), None)
    assert file.deleted is not None

"""Reads an Iceberg table as its protocol says, without the library that writes it.

The catalog's row by sqlite3, metadata as JSON, manifests by fastavro, files by DuckDB, columns by their ids. It knows
what tables of tests have: deletes by position at most, and partitions by values as they are.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow.parquet as pq

Row = tuple[Any, ...]


def metadata(catalog: Path, name: str) -> Mapping[str, Any]:
    """The newest metadata of a table, empty if the catalog does not know it."""
    if not catalog.exists():
        return {}
    connection = sqlite3.connect(catalog)
    try:
        asked = "SELECT metadata_location FROM iceberg_tables WHERE table_name = ?"
        is_new = not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'").fetchall()
        found = [] if is_new else connection.execute(asked, [name]).fetchall()
    finally:
        connection.close()
    return json.loads(_path(found[0][0]).read_text(encoding="utf-8")) if found else {}


def snapshots(catalog: Path, name: str) -> list[Mapping[str, Any]]:
    """The snapshots of a table, the oldest first."""
    return sorted(metadata(catalog, name).get("snapshots", ()), key=lambda each: int(each["sequence-number"]))


def iceberg_rows(catalog: Path, name: str, snapshot: Mapping[str, Any] | None = None) -> list[Row]:
    """The rows of a snapshot, in order; those of the newest if None."""
    told = metadata(catalog, name)
    found = snapshots(catalog, name)
    if not found:
        return []
    chosen = found[-1] if snapshot is None else snapshot
    (schema,) = (each for each in told["schemas"] if each["schema-id"] == told["current-schema-id"])
    rows: list[Row] = []
    files, deleted = [], set[tuple[str, int]]()
    for manifest in _avro(chosen["manifest-list"]):
        there = [entry["data_file"] for entry in _avro(manifest["manifest_path"]) if entry["status"] != 2]
        if manifest["content"] == 0:
            files += there
        for file in there if manifest["content"] == 1 else ():
            assert file["content"] == 1
            deletes = pq.read_table(_path(file["file_path"])).to_pylist()
            deleted |= {(each["file_path"], each["pos"]) for each in deletes}
    for file in files:
        found_rows = enumerate(_of_file(file, schema["fields"], told))
        rows += [row for at, row in found_rows if (file["file_path"], at) not in deleted]
    return sorted(rows, key=lambda row: tuple((value is None, str(value)) for value in row))


def _of_file(told: Mapping[str, Any], fields: list[Mapping[str, Any]], table: Mapping[str, Any]) -> list[Row]:
    path = _path(told["file_path"])
    assert path.stat().st_size == told["file_size_in_bytes"]
    ids = {int(f.metadata[b"PARQUET:field_id"]): f.name for f in pq.read_schema(path)}
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        read = "SELECT * FROM read_parquet(?, hive_partitioning = false)"
        found = connection.execute(read, [str(path)]).to_arrow_table().to_pylist(maps_as_pydicts="strict")
    assert len(found) == told["record_count"]
    for field in fields:
        name = ids.get(field["id"])
        nulls = {each["key"]: each["value"] for each in told["null_value_counts"]}
        if name is not None and isinstance(field["type"], str):
            assert nulls[field["id"]] == sum(row[name] is None for row in found)
    (spec,) = (each for each in table["partition-specs"] if each["spec-id"] == table["default-spec-id"])
    for part in spec["fields"]:
        value = told["partition"][part["name"]]
        assert {row[ids[part["source-id"]]] for row in found} == {value}
    return [tuple(row.get(ids.get(field["id"], "")) for field in fields) for row in found]


def _avro(location: str) -> list[Mapping[str, Any]]:
    with _path(location).open("rb") as source:
        return list(fastavro.reader(source))


def _path(location: str) -> Path:
    return Path(location.removeprefix("file:").replace("//", "/"))

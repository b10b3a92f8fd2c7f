"""Reads a Delta table as its protocol says, without the library that writes it: the log by hand, files by DuckDB.

Of the log, it knows what tables of tests have: versions as JSON, without checkpoints and deletion vectors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb

Row = tuple[Any, ...]

_SQL = {
    "byte": "TINYINT", "short": "SMALLINT", "integer": "INTEGER", "long": "BIGINT", "string": "VARCHAR",
    "boolean": "BOOLEAN", "date": "DATE",
}  # fmt: skip


def versions(table: Path) -> list[Path]:
    """The files of the log, of which the number of each is its version."""
    return sorted((table / "_delta_log").glob("[0-9]*.json"))


def actions(table: Path, version: int | None = None) -> list[Mapping[str, Any]]:
    """What the log says up to a version, all if None."""
    files = versions(table) if (table / "_delta_log").is_dir() else []
    some = files if version is None else files[: version + 1]
    return [json.loads(line) for file in some for line in file.read_text(encoding="utf-8").splitlines() if line]


def transactions(table: Path) -> dict[str, int]:
    """The last batch of each writer."""
    return {each["txn"]["appId"]: each["txn"]["version"] for each in actions(table) if "txn" in each}


def delta_rows(table: Path, version: int | None = None) -> list[Row]:
    """The rows of a version, in order; those of the newest if None."""
    files: dict[str, Mapping[str, Any]] = {}
    fields: list[Mapping[str, Any]] = []
    for action in actions(table, version):
        if "metaData" in action:
            fields = json.loads(action["metaData"]["schemaString"])["fields"]
        elif "add" in action:
            files[action["add"]["path"]] = action["add"]
        elif "remove" in action:
            del files[action["remove"]["path"]]
    rows: list[Row] = []
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for path, added in files.items():
            read = "SELECT * FROM read_parquet(?, hive_partitioning = false)"
            found = connection.execute(read, [str(table / unquote(path))]).to_arrow_table()
            assert found.num_rows == json.loads(added["stats"])["numRecords"]
            texts = added["partitionValues"]
            given = {}
            for field in fields:
                if field["name"] in texts:
                    cast = f"SELECT CAST(? AS {_SQL[field['type']]})"
                    (given[field["name"]],) = connection.execute(cast, [texts[field["name"]]]).fetchone()
            for row in found.to_pylist(maps_as_pydicts="strict"):
                values = {**row, **given}
                rows.append(tuple(values.get(field["name"]) for field in fields))
    return sorted(rows, key=lambda row: tuple((value is None, str(value)) for value in row))

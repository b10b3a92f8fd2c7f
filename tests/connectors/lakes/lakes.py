"""The lakes, each with its tables below a directory, and with readers that are not the libraries that write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as IcebergTable

from hintplan.plans.declarations.tables import Table, TableColumn
from tests.connectors.lakes import iceberg_reader, readers


class Lake(Protocol):
    """Tables by their names. A commit is a version of a table or a snapshot, from 1 on; 0 is the empty table."""

    def options(self, name: str) -> dict[str, str]: ...

    def commits(self, name: str) -> int: ...

    def rows(self, name: str, commit: int | None = None) -> list[tuple[Any, ...]]: ...

    def remembered(self, name: str) -> Mapping[str, int]: ...

    def files(self, name: str) -> int: ...

    def by_library(self, name: str) -> int:
        """How many rows the library that writes reads."""

    def travel(self, name: str, commit: int) -> list[tuple[str, str]]:
        """The options, each alone, with which a source reads a commit."""


class DeltaLake:
    def __init__(self, root: Path) -> None:
        self.root = root

    def options(self, name: str) -> dict[str, str]:
        return {"connector": "delta", "table-path": f"{self.root}/{name}"}

    def commits(self, name: str) -> int:
        return max(len(readers.versions(self.root / name)) - 1, 0)

    def rows(self, name: str, commit: int | None = None) -> list[tuple[Any, ...]]:
        return readers.delta_rows(self.root / name, commit)

    def remembered(self, name: str) -> Mapping[str, int]:
        return readers.transactions(self.root / name)

    def files(self, name: str) -> int:
        return len(list((self.root / name).glob("*.parquet")))

    def by_library(self, name: str) -> int:
        return int(pa.table(DeltaTable(self.root / name).scan().read_all()).num_rows)

    def travel(self, name: str, commit: int) -> list[tuple[str, str]]:
        return [("versionAsOf", str(commit))]


class IcebergLake:
    """Tables in a catalog of SQLite."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.catalog = root / "catalog.db"
        root.mkdir(parents=True, exist_ok=True)

    def options(self, name: str) -> dict[str, str]:
        return {
            "connector": "iceberg", "catalog-name": "lake", "catalog-type": "jdbc",
            "uri": f"jdbc:sqlite:{self.catalog}", "catalog-database": "db", "catalog-table": name,
            "warehouse": f"{self.root}/tables",
        }  # fmt: skip

    def commits(self, name: str) -> int:
        return len(iceberg_reader.snapshots(self.catalog, name))

    def rows(self, name: str, commit: int | None = None) -> list[tuple[Any, ...]]:
        if commit == 0:
            return []
        found = None if commit is None else iceberg_reader.snapshots(self.catalog, name)[commit - 1]
        return iceberg_reader.iceberg_rows(self.catalog, name, found)

    def remembered(self, name: str) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for snapshot in iceberg_reader.snapshots(self.catalog, name):
            told = snapshot["summary"]
            if "hintplan.query" in told:
                found[told["hintplan.query"]] = int(told["hintplan.batch"])
        return found

    def files(self, name: str) -> int:
        return len(list((self.root / "tables" / "db" / name / "data").glob("*.parquet")))

    def by_library(self, name: str) -> int:
        return self.table(name).scan().to_arrow().num_rows

    def travel(self, name: str, commit: int) -> list[tuple[str, str]]:
        found = iceberg_reader.snapshots(self.catalog, name)[commit - 1]
        self.table(name).manage_snapshots().create_tag(found["snapshot-id"], "then").commit()
        return [
            ("snapshot-id", str(found["snapshot-id"])), ("as-of-timestamp", str(found["timestamp-ms"])),
            ("tag", "then"),
        ]  # fmt: skip

    def table(self, name: str) -> IcebergTable:
        return SqlCatalog("lake", uri=f"sqlite:///{self.catalog}").load_table(("db", name))


LAKES: Mapping[str, Callable[[Path], Lake]] = {"delta": DeltaLake, "iceberg": IcebergLake}


def lake_table(
    lake: Lake, name: str, *columns: tuple[str, str], key: tuple[str, ...] = (), partitioned_by: str = "", **more: str
) -> Table:
    """A table with ``columns``, and ``more`` options, in whose names ``_`` is ``-``.

    Columns of PARTITIONED BY have ``;`` between them.
    """
    return Table(
        columns=tuple(TableColumn(name=column, type=type_) for column, type_ in columns),
        options={**lake.options(name), **{k.replace("_", "-"): v for k, v in more.items()}},
        primary_key=key,
        partitioned_by=tuple(filter(None, partitioned_by.split(";"))),
    )


def in_with(options: Mapping[str, str]) -> str:
    """Options as they stand in WITH."""
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())

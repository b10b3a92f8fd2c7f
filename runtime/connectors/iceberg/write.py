"""The iceberg sink: each micro-batch is a snapshot of the table, which records the writer and the number of the batch.

A replayed micro-batch is skipped. A micro-batch without changes makes no snapshot. A batch job commits its whole result
at once.

Without a PRIMARY KEY, tasks write the rows to files and the driver commits these files; no row passes through the
driver. With a PRIMARY KEY, the changes of a micro-batch are netted to one per key, and the driver rewrites the files
that contain changed keys. If the table is still empty, tasks write them to files instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from hintplan.plans.connectors.iceberg import ICEBERG
from hintplan.plans.connectors.lakes.catalogs import root_option
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.lakes.commits import Commit, Committed, commit_batch
from hintplan.runtime.connectors.lakes.data_files import DataFile
from hintplan.runtime.connectors.lakes.target import LakeTarget, lake_target
from hintplan.runtime.connectors.lakes.tasks import Rows, net_changes, written_files, written_first
from hintplan.runtime.lookup.sources.failures import import_extra

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable


def commit_to_iceberg(
    target: LakeTarget, rows: Callable[[], Rows], commit: Commit, *, overwrites: bool = False
) -> Committed:
    """Commit ``rows`` to the table, unless it has the batch; with ``overwrites``, they replace the table's rows."""
    catalog, snapshots = by_pyiceberg("catalog"), by_pyiceberg("snapshots")
    input_rows = cache(rows)
    changes = cache(lambda: net_changes(input_rows(), target))
    written: dict[Any, list[DataFile]] = {}

    def files(table: IcebergTable) -> list[DataFile]:
        shape = snapshots.shape_of(table)
        if shape not in written:
            writing = snapshots.writing_of(target, table, target.schema.names)
            write = written_first if target.primary_key else written_files
            written[shape] = write(input_rows(), target, writing)
        return written[shape]

    def append(table: IcebergTable) -> bool:
        if added := files(table):
            snapshots.commit_files(target, table, added, commit)
        return bool(added)

    def overwrite(table: IcebergTable) -> bool:
        by_pyiceberg("deletes").refuse_equality_deletes(target, table, None, "overwritten")
        added = files(table)
        replaced = snapshots.replaced_by(target, table, added)
        if added or replaced:
            snapshots.commit_files(target, table, added, commit, instead_of=replaced)
        return bool(added or replaced)

    def upsert(table: IcebergTable) -> bool:
        by_pyiceberg("deletes").refuse_equality_deletes(target, table, None, "upserted to")
        if snapshots.is_iceberg_table_empty(table) and isinstance(input_rows(), DataFrame):
            if added := files(table):
                snapshots.commit_files(target, table, added, commit)
            return bool(added)
        return bool(changes().num_rows) and bool(
            by_pyiceberg("upsert").upsert_changes(target, table, changes(), commit)
        )

    return commit_batch(
        target,
        commit,
        open_table=lambda: catalog.ensure_iceberg_table(target),
        last_batch=partial(snapshots.last_snapshot_batch, target),
        attempt=overwrite if overwrites else upsert if target.primary_key else append,
        has=lambda table, added: {"batch": commit[1]},
    )


def iceberg_target(name: str, table: Table) -> LakeTarget:
    """Return the target for the table, with its full name in the catalog."""
    options = table.options
    full_name = ".".join(options[part] for part in ("catalog-name", "catalog-database", "catalog-table"))
    return lake_target(name, table, root_option(table), catalogued=full_name)


def by_pyiceberg(module: str) -> ModuleType:
    """Return ``module`` of this folder, which uses PyIceberg; raise RunError if PyIceberg is not installed here."""
    for name in ("pyiceberg", f"hintplan.runtime.connectors.iceberg.{module}"):
        imported = import_extra(name, "iceberg", ICEBERG.name, where="where the run was started")
    return imported

"""The iceberg sink: each micro-batch is a snapshot of the table, which records the writer and the number of the batch.

A replayed micro-batch is skipped. A micro-batch without changes makes no snapshot. A batch job commits its whole result
at once.

Without a PRIMARY KEY, tasks write the rows to files and the driver commits these files; no row passes through the
driver. With a PRIMARY KEY, the changes of a micro-batch are netted to one per key, and the driver rewrites the files
that contain changed keys. If the table is still empty, tasks write them to files instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.utils import is_remote

from hintplan.plans.connectors.iceberg import ICEBERG
from hintplan.plans.connectors.lakes.catalogs import chosen_snapshot, root_option
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.connector import NOT_THERE, FilesIn, lacks_batches
from hintplan.runtime.connectors.lakes.commits import Commit, Committed, committed
from hintplan.runtime.connectors.lakes.data_files import DataFile
from hintplan.runtime.connectors.lakes.sink import LakeBatch, refuse_updates
from hintplan.runtime.connectors.lakes.target import Target, target_of
from hintplan.runtime.connectors.lakes.tasks import Rows, netted, written_files, written_first
from hintplan.runtime.lookup.sources.failures import import_extra


def _committed(target: Target, rows: Callable[[], Rows], commit: Commit, *, overwrites: bool = False) -> Committed:
    catalog, snapshots = by_pyiceberg("catalog"), by_pyiceberg("snapshots")
    input_rows = cache(rows)
    changes = cache(lambda: netted(input_rows(), target))
    written: dict[Any, list[DataFile]] = {}

    def files(table: Any) -> list[DataFile]:
        shape = snapshots.shape_of(table)
        if shape not in written:
            writing = snapshots.writing_of(target, table, target.schema.names)
            write = written_first if target.primary_key else written_files
            written[shape] = write(input_rows(), target, writing)
        return written[shape]

    def append(table: Any) -> bool:
        if added := files(table):
            snapshots.commit_files(target, table, added, commit)
        return bool(added)

    def overwrite(table: Any) -> bool:
        by_pyiceberg("deletes").refuse_equality_deletes(target, table, None, "overwritten")
        added = files(table)
        replaced = snapshots.replaced_by(target, table, added)
        if added or replaced:
            snapshots.commit_files(target, table, added, commit, instead_of=replaced)
        return bool(added or replaced)

    def upsert(table: Any) -> bool:
        by_pyiceberg("deletes").refuse_equality_deletes(target, table, None, "upserted to")
        if snapshots.is_empty(table) and isinstance(input_rows(), DataFrame):
            if added := files(table):
                snapshots.commit_files(target, table, added, commit)
            return bool(added)
        return bool(changes().num_rows) and bool(by_pyiceberg("upsert").merge(target, table, changes(), commit))

    return committed(
        target,
        commit,
        opened=lambda: catalog.prepared(target),
        last_batch=partial(snapshots.last_batch, target),
        attempt=overwrite if overwrites else upsert if target.primary_key else append,
        has=lambda table, added: {"batch": commit[1]},
    )


def sink(name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str = "") -> LakeBatch:
    """Return the sink, after checking the table; a client of Spark Connect leaves the check to the server.

    Raises RunError if the table exists and does not fit.
    """
    refuse_updates(name, table, changelog=changelog)
    target = iceberg_target(name, table)
    for option in chosen_snapshot(table.options):
        raise RunError(
            f"table {name} is one snapshot of a table, which nobody writes to",
            hint=f"remove {option!r}, or declare another table to read that snapshot",
            path=f"{target.path}.options.{option}",
        )
    if not is_remote():
        here = target.here()
        existing = by_pyiceberg("catalog").opened(here)
        if existing is not None and target.primary_key:
            by_pyiceberg("deletes").refuse_equality_deletes(here, existing, None, "upserted to")
    return LakeBatch(target=target, checkpoint=checkpoint, commit=_committed, part=part)


def batches_had(table: Table, writer: Callable[[], str | None], files_in: FilesIn) -> int:
    """Return the last batch of ``writer`` that the table remembers.

    A client of Spark Connect may not see the table as the server does, and returns -1. The server then refuses a table
    that is ahead of the checkpoint, at the first batch.
    """
    query = writer()
    if query is None or is_remote():
        return -1
    target = iceberg_target("", table).here()
    iceberg_table = by_pyiceberg("catalog").opened(target)
    return -1 if iceberg_table is None else int(by_pyiceberg("snapshots").last_batch(target, iceberg_table, query))


def lacks(spark: Any, table: Table, writer: Callable[[], str | None], had: Mapping[str, Any]) -> str | None:
    """Return what the table lacks of the batch that it ``had``; None if nothing is missing."""
    target = iceberg_target("", table).here()
    iceberg_table = by_pyiceberg("catalog").opened(target)
    if iceberg_table is None:
        return NOT_THERE
    return lacks_batches(int(by_pyiceberg("snapshots").last_batch(target, iceberg_table, writer() or "")), had["batch"])


def iceberg_target(name: str, table: Table) -> Target:
    """Return the target for the table, with its full name in the catalog."""
    options = table.options
    full_name = ".".join(options[part] for part in ("catalog-name", "catalog-database", "catalog-table"))
    return target_of(name, table, root_option(table), catalogued=full_name)


def by_pyiceberg(module: str) -> Any:
    """Return ``module`` of this folder, which uses PyIceberg; raise RunError if PyIceberg is not installed here."""
    for name in ("pyiceberg", f"hintplan.runtime.connectors.iceberg.{module}"):
        imported = import_extra(name, "iceberg", ICEBERG.name, where="where the run was started")
    return imported

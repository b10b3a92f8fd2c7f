"""The delta sink: each micro-batch is a version of the table, which records the writer and the number of the batch.

A replayed micro-batch is skipped. A micro-batch without changes makes no version. A batch job commits its whole result
at once.

Without a PRIMARY KEY, tasks write the rows to files and the driver commits these files; no row passes through the
driver. With a PRIMARY KEY, the changes of a micro-batch are netted to one per key, and delta-rs merges them into the
table on the driver. If the table is still empty, tasks write them to files instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from hintplan.plans.connectors.delta import DELTA
from hintplan.runtime.connectors.lakes.commits import Commit, Committed, commit_batch
from hintplan.runtime.connectors.lakes.data_files import DataFile, FileWriting
from hintplan.runtime.connectors.lakes.divisions import Division
from hintplan.runtime.connectors.lakes.target import LakeTarget
from hintplan.runtime.connectors.lakes.tasks import Rows, net_changes, written_files, written_first
from hintplan.runtime.lookup.sources.failures import import_extra

if TYPE_CHECKING:
    from deltalake import DeltaTable


def commit_to_delta(
    target: LakeTarget, rows: Callable[[], Rows], commit: Commit, *, overwrites: bool = False
) -> Committed:
    """Commit ``rows`` to the table, unless it has the batch; with ``overwrites``, they replace the table's rows."""
    log, commits = by_delta_rs("table"), by_delta_rs("commits")
    input_rows = cache(rows)
    files = cache(partial(_files, input_rows, target))
    changes = cache(lambda: net_changes(input_rows(), target))
    first = cache(lambda by: written_first(input_rows(), target, writing_of(target, by)))

    def append(table: DeltaTable) -> bool:
        if added := files(log.partitions(table)):
            commits.add_files(target, table, added, commit)
        return bool(added)

    def overwrite(table: DeltaTable) -> bool:
        added = (first if target.primary_key else files)(log.partitions(table))
        commits.replace_files(target, table, added, commit)
        return True

    def upsert(table: DeltaTable) -> bool:
        if log.is_delta_table_empty(table) and isinstance(input_rows(), DataFrame):
            if added := first(log.partitions(table)):
                commits.add_files(target, table, added, commit, sole=True)
            return bool(added)
        return bool(changes().num_rows) and bool(commits.merge_into_delta(target, table, changes(), commit))

    return commit_batch(
        target,
        commit,
        open_table=lambda: log.ensure_delta_table(target),
        last_batch=partial(log.last_delta_batch, target),
        attempt=overwrite if overwrites else upsert if target.primary_key else append,
        # Other writers may have committed in the meantime, so the batch may be in a later version.
        has=lambda table, added: {"batch": commit[1], "version": int(table.version()) + added},
    )


def writing_of(target: LakeTarget, partitioned_by: tuple[str, ...]) -> FileWriting:
    """Return the settings with which tasks write files of the table."""
    return FileWriting(
        table=target.name, storage=target.storage, schema=target.schema, required=target.required,
        divisions=tuple(Division(name=name, column=name) for name in partitioned_by if name in target.schema.names),
    )  # fmt: skip


def _files(rows: Callable[[], Rows], target: LakeTarget, partitioned_by: tuple[str, ...]) -> list[DataFile]:
    return written_files(rows(), target, writing_of(target, partitioned_by))


def by_delta_rs(module: str) -> ModuleType:
    """Return ``module`` of this folder, which uses delta-rs; raise RunError if delta-rs is not installed here."""
    return import_extra(
        f"hintplan.runtime.connectors.delta.{module}", "delta", DELTA.name, where="where the run was started"
    )

"""The delta sink: each micro-batch is a version of the table, which records the writer and the number of the batch.

A replayed micro-batch is skipped. A micro-batch without changes makes no version. A batch job commits its whole result
at once.

Without a PRIMARY KEY, tasks write the rows to files and the driver commits these files; no row passes through the
driver. With a PRIMARY KEY, the changes of a micro-batch are netted to one per key, and delta-rs merges them into the
table on the driver. If the table is still empty, tasks write them to files instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.utils import is_remote

from hintplan.plans.connectors.delta import DELTA, PATH, VERSION
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.connector import NOT_THERE, FilesIn, lacks_batches
from hintplan.runtime.connectors.lakes.commits import Commit, Committed, committed
from hintplan.runtime.connectors.lakes.data_files import DataFile, FileWriting
from hintplan.runtime.connectors.lakes.divisions import Division
from hintplan.runtime.connectors.lakes.sink import LakeBatch, refuse_updates
from hintplan.runtime.connectors.lakes.target import Target, target_of
from hintplan.runtime.connectors.lakes.tasks import Rows, netted, written_files, written_first
from hintplan.runtime.lookup.sources.failures import import_extra


def _committed(target: Target, rows: Callable[[], Rows], commit: Commit, *, overwrites: bool = False) -> Committed:
    log, commits = _by_delta_rs("table"), _by_delta_rs("commits")
    input_rows = cache(rows)
    files = cache(partial(_files, input_rows, target))
    changes = cache(lambda: netted(input_rows(), target))
    first = cache(lambda by: written_first(input_rows(), target, writing_of(target, by)))

    def append(table: Any) -> bool:
        if added := files(log.partitions(table)):
            commits.add_files(target, table, added, commit)
        return bool(added)

    def overwrite(table: Any) -> bool:
        added = (first if target.primary_key else files)(log.partitions(table))
        commits.replace_files(target, table, added, commit)
        return True

    def upsert(table: Any) -> bool:
        if log.is_empty(table) and isinstance(input_rows(), DataFrame):
            if added := first(log.partitions(table)):
                commits.add_files(target, table, added, commit, sole=True)
            return bool(added)
        return bool(changes().num_rows) and bool(commits.merge(target, table, changes(), commit))

    return committed(
        target,
        commit,
        opened=lambda: log.prepared(target),
        last_batch=partial(log.last_batch, target),
        attempt=overwrite if overwrites else upsert if target.primary_key else append,
        # Other writers may have committed in the meantime, so the batch may be in a later version.
        has=lambda table, added: {"batch": commit[1], "version": int(table.version()) + added},
    )


def writing_of(target: Target, partitioned_by: tuple[str, ...]) -> FileWriting:
    """Return the settings with which tasks write files of the table."""
    return FileWriting(
        table=target.name, storage=target.storage, schema=target.schema, required=target.required,
        divisions=tuple(Division(name=name, column=name) for name in partitioned_by if name in target.schema.names),
    )  # fmt: skip


def _files(rows: Callable[[], Rows], target: Target, partitioned_by: tuple[str, ...]) -> list[DataFile]:
    return written_files(rows(), target, writing_of(target, partitioned_by))


def sink(name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str = "") -> LakeBatch:
    """Return the sink, after checking the table; a client of Spark Connect leaves the check to the server.

    Raises RunError if the table exists and does not fit.
    """
    refuse_updates(name, table, changelog=changelog)
    target = target_of(name, table, PATH)
    if VERSION in target.options:
        raise RunError(
            f"table {target.name} is one version of a table, which nobody writes to",
            hint=f"remove {VERSION!r}, or declare another table to read that version",
            path=f"{target.path}.options.{VERSION}",
        )
    if not is_remote():
        _by_delta_rs("table").opened(target.here())
    return LakeBatch(target=target, checkpoint=checkpoint, commit=_committed, part=part)


def batches_had(table: Table, writer: Callable[[], str | None], files_in: FilesIn) -> int:
    """Return the last batch of ``writer`` that the table remembers.

    A client of Spark Connect may not see the table as the server does, and returns -1. The server then refuses a table
    that is ahead of the checkpoint, at the first batch.
    """
    query = writer()
    if query is None or is_remote():
        return -1
    target = target_of("", table, PATH).here()
    delta_table = _by_delta_rs("table").opened(target)
    return -1 if delta_table is None else int(_by_delta_rs("table").last_batch(target, delta_table, query))


def lacks(spark: Any, table: Table, writer: Callable[[], str | None], had: Mapping[str, Any]) -> str | None:
    """Return what the table lacks of the batch and the version that it ``had``; None if nothing is missing.

    The batches prove nothing in two cases. The table's log shows whether it was restored to an older version. A table
    that forgets its writers passes if its version is not older.
    """
    log, target = _by_delta_rs("table"), target_of("", table, PATH).here()
    delta_table = log.opened(target)
    if delta_table is None:
        return NOT_THERE
    back = log.restored_to(target, delta_table, had["version"])
    if back is not None:
        return f"was restored to version {back}, and had version {had['version']}"
    last = int(log.last_batch(target, delta_table, writer() or ""))
    if last < had["batch"] and delta_table.version() >= had["version"] and log.forgets(delta_table):
        return None
    return lacks_batches(last, had["batch"])


def _by_delta_rs(module: str) -> Any:
    """Return ``module`` of this folder, which uses delta-rs; raise RunError if delta-rs is not installed here."""
    return import_extra(
        f"hintplan.runtime.connectors.delta.{module}", "delta", DELTA.name, where="where the run was started"
    )

"""The delta sink: each micro-batch is a version of the table, which remembers who wrote it and its number.

A replayed micro-batch is skipped. Without a PRIMARY KEY, tasks write the rows into files, which the driver commits:
no row passes through it. With one, the changes of a micro-batch are netted, one of each key, and merged into the table
by delta-rs on the driver; into a table that is still empty, tasks write them as files, too. A micro-batch that changes
nothing makes no version. A batch job commits its whole result at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import is_remote

from plans.connectors.delta import DELTA, PATH, VERSION
from plans.declarations.tables import Table
from plans.errors import RunError
from runtime.connectors.connector import FilesIn
from runtime.connectors.lakes.commits import Commit, committed
from runtime.connectors.lakes.data_files import DataFile, FileWriting
from runtime.connectors.lakes.divisions import Division
from runtime.connectors.lakes.sink import LakeBatch, each_micro_batch, overwritten, refuse_updates, whole_result
from runtime.connectors.lakes.target import Target, target_of
from runtime.connectors.lakes.tasks import Rows, netted, written_files, written_first
from runtime.connectors.micro_batch import MicroBatch
from runtime.engine.each_batch import written_by
from runtime.lookup.sources.failures import import_extra


def _committed(target: Target, rows: Callable[[], Rows], commit: Commit, *, overwrites: bool = False) -> bool:
    log = _log()
    found = cache(rows)
    files = cache(partial(_files, found, target))
    changes = cache(lambda: netted(found(), target))
    first = cache(lambda by: written_first(found(), target, writing_of(target, by)))

    def append(table: Any) -> None:
        if added := files(log.partitions(table)):
            log.add_files(target, table, added, commit)

    def overwrite(table: Any) -> None:
        added = (first if target.primary_key else files)(log.partitions(table))
        log.replace_files(target, table, added, commit)

    def upsert(table: Any) -> None:
        if log.is_empty(table) and isinstance(found(), DataFrame):
            if added := first(log.partitions(table)):
                log.add_files(target, table, added, commit, sole=True)
        elif changes().num_rows:
            log.merge(target, table, changes(), commit)

    return committed(
        target,
        commit,
        opened=lambda: log.prepared(target),
        last_batch=partial(log.last_batch, target),
        attempt=overwrite if overwrites else upsert if target.primary_key else append,
    )


def writing_of(target: Target, partitioned_by: tuple[str, ...]) -> FileWriting:
    """How files of the table are written."""
    return FileWriting(
        table=target.name, storage=target.storage, schema=target.schema, required=target.required,
        divisions=tuple(Division(name=name, column=name) for name in partitioned_by if name in target.schema.names),
    )  # fmt: skip


def _files(rows: Callable[[], Rows], target: Target, partitioned_by: tuple[str, ...]) -> list[DataFile]:
    return written_files(rows(), target, writing_of(target, partitioned_by))


def writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    """A writer into the table; RunError if there is one that does not fit."""
    return written_by(_sink(name, table, changelog=changelog, checkpoint=checkpoint), df, checkpoint)


def micro_batch_writer(
    name: str, table: Table, *, changelog: bool, checkpoint: str | None = None, part: str = ""
) -> Callable[[MicroBatch, int], int]:
    """What writes a micro-batch; ``part`` tells the sinks of one query apart. RunError as :func:`writer`."""
    return each_micro_batch(_sink(name, table, changelog=changelog, checkpoint=checkpoint, part=part))


def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """What writes all rows in one version; RunError, now, as :func:`writer`."""
    return whole_result(_sink(name, table, changelog=False, checkpoint=None), df)


def batch_overwriter(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """What writes all rows in one version, in which they replace others; RunError, now, as :func:`writer`."""
    return overwritten(_sink(name, table, changelog=False, checkpoint=None), df)


def _sink(name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str = "") -> LakeBatch:
    """The sink, whose table has been looked at; what a client of Spark Connect cannot see is left to the server."""
    refuse_updates(name, table, changelog=changelog)
    target = target_of(name, table, PATH)
    if VERSION in target.options:
        raise RunError(
            f"table {target.name} is one version of a table, which nobody writes to",
            hint=f"remove {VERSION!r}, or declare another table to read that version",
            path=f"{target.path}.options.{VERSION}",
        )
    if not is_remote():
        _log().opened(target.here())
    return LakeBatch(target=target, checkpoint=checkpoint, commit=_committed, part=part)


def batches_had(table: Table, writer: Callable[[], str | None], files_in: FilesIn) -> int:
    """The last batch of ``writer`` that the table remembers."""
    query = writer()
    if query is None or is_remote():
        return -1
    target = target_of("", table, PATH).here()
    found = _log().opened(target)
    return -1 if found is None else int(_log().last_batch(target, found, query))


def _log() -> Any:
    """What commits to tables; RunError if delta-rs is not installed here."""
    return import_extra("runtime.connectors.delta.log", "delta", DELTA.name, where="where the run was started")

"""The delta sink: each micro-batch is a version of the table, which remembers who wrote it and its number.

A replayed micro-batch is skipped. Without a PRIMARY KEY, tasks write the rows into files, which the driver commits:
no row passes through it. With one, the changes of a micro-batch are netted, one of each key, and merged into the table
by delta-rs on the driver; into a table that is still empty, tasks write them as files, too. A micro-batch that changes
nothing makes no version. A batch job commits its whole result at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import is_remote

from plans.connectors.delta import DELTA, PATH, VERSION
from plans.declarations.tables import Table
from plans.errors import RunError
from runtime.connectors.connector import FilesIn
from runtime.connectors.lakes.commits import Commit, committed
from runtime.connectors.lakes.data_files import DataFile
from runtime.connectors.lakes.target import Target, target_of
from runtime.connectors.lakes.tasks import Rows, netted, written_files, written_first
from runtime.connectors.micro_batch import MicroBatch
from runtime.connectors.query_id import query_id
from runtime.engine.each_batch import written_by
from runtime.lookup.sources.failures import import_extra

_ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaBatch:
    """Writes one micro-batch; Spark Connect pickles it to the server, with secrets still unresolved."""

    target: Target
    checkpoint: str | None
    part: str = ""
    """Tells this sink from others that the same query writes."""

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        self.write(lambda: df, batch_id, df.sparkSession)

    def write(self, rows: Callable[[], Rows], batch_id: int, spark: SparkSession) -> bool:
        """Write the rows, and say whether they were asked for: of a batch that the table has, they are not."""
        target = self.target.here()
        commit = (query_id(spark, self.checkpoint) + self.part, batch_id)
        return _committed(target, rows, commit)

    def write_all(self, df: DataFrame) -> None:
        """Write the result of a batch job; the name of its own tells a commit whose end was not heard of."""
        _committed(self.target.here(), lambda: df, (f"job-{uuid.uuid4()}", 0))


def _committed(target: Target, rows: Callable[[], Rows], commit: Commit) -> bool:
    log = _log()
    found = cache(rows)
    files = cache(partial(_files, found, target))
    changes = cache(lambda: netted(found(), target))

    def append(table: Any) -> None:
        if added := files(log.partitions(table)):
            log.add_files(target, table, added, commit)

    def upsert(table: Any) -> None:
        if log.is_empty(table) and isinstance(found(), DataFrame):
            if added := written_first(found(), target, log.partitions(table)):
                log.add_files(target, table, added, commit, sole=True)
        elif changes().num_rows:
            log.merge(target, table, changes(), commit)

    return committed(
        target,
        commit,
        opened=lambda: log.prepared(target),
        last_batch=partial(log.last_batch, target),
        attempt=upsert if target.primary_key else append,
    )


def _files(rows: Callable[[], Rows], target: Target, partitioned_by: tuple[str, ...]) -> list[DataFile]:
    return written_files(rows(), target, partitioned_by)


def writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    """A writer into the table; RunError if there is one that does not fit."""
    return written_by(_micro_batch(name, table, changelog=changelog, checkpoint=checkpoint), df, checkpoint)


def micro_batch_writer(
    name: str, table: Table, *, changelog: bool, checkpoint: str | None = None, part: str = ""
) -> Callable[[MicroBatch, int], int]:
    """What writes a micro-batch; ``part`` tells the sinks of one query apart. RunError as :func:`writer`."""
    sink = _micro_batch(name, table, changelog=changelog, checkpoint=checkpoint, part=part)

    def write(rows: MicroBatch, batch: int) -> int:
        if rows.is_on_driver:
            found = rows.on_driver()
            sink.write(lambda: found, batch, rows.spark)
            return int(found.num_rows)
        seen = Observation()
        counted = lambda: rows.in_spark().observe(seen, F.count(F.lit(1)).alias(_ROWS))  # noqa: E731
        return int(seen.get[_ROWS]) if sink.write(counted, batch, rows.spark) else 0

    return write


def _micro_batch(name: str, table: Table, *, changelog: bool, checkpoint: str | None, part: str = "") -> DeltaBatch:
    if changelog and not table.primary_key:
        raise RunError(
            f"table {name} cannot take updates: it has no primary key to find rows by",
            hint="declare PRIMARY KEY (...) NOT ENFORCED",
            path=f"tables.{name}",
        )
    return _checked(DeltaBatch(target=target_of(name, table, PATH), checkpoint=checkpoint, part=part))


def _checked(batch: DeltaBatch) -> DeltaBatch:
    """``batch``, whose table has been looked at; what a client of Spark Connect cannot see is left to the server."""
    if VERSION in batch.target.options:
        raise RunError(
            f"table {batch.target.name} is one version of a table, which nobody writes to",
            hint=f"remove {VERSION!r}, or declare another table to read that version",
            path=f"{batch.target.path}.options.{VERSION}",
        )
    if not is_remote():
        _log().opened(batch.target.here())
    return batch


def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """What writes all rows in one version; RunError, now, as :func:`writer`."""
    batch = _checked(DeltaBatch(target=target_of(name, table, PATH), checkpoint=None))
    return partial(batch.write_all, df)


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

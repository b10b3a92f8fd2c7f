"""The jdbc sink for database servers: Spark's tasks stage the rows of a micro-batch, and the driver moves them.

With a PRIMARY KEY, one task gets all changes of a key in their order, and nets them; a replayed micro-batch writes rows
that already exist. Without a PRIMARY KEY, the database remembers the last micro-batch of each query, and a replayed
micro-batch is skipped. No row passes through the driver. The sink creates a missing table.

A batch job stages its whole result, and moves it in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import is_remote

from hintplan.plans.connectors.columns import NESTED
from hintplan.plans.connectors.jdbc import MYSQL_URLS
from hintplan.plans.declarations.tables import Column, Table
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.connectors.connector import EMPTIED, NOT_THERE, FilesIn, Mark, lacks_batches
from hintplan.runtime.connectors.jdbc import staging
from hintplan.runtime.connectors.jdbc.target import DELETE, UPSERT, Found, Row, Server, Stage, Target
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.netting import Net, net
from hintplan.runtime.connectors.query_id import query_id
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.lookup.sources.failures import import_extra
from hintplan.runtime.operator import INSERT, KIND
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import quoted

_PLACE = "__place"
_STAGED = pa.schema([("part", pa.string()), *((name, pa.int64()) for name in ("staged", "upserts", "rows"))])
_SCHEMA = "part string, staged long, upserts long, rows long"
_JSON = {"ignoreNullFields": "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBatch:
    """Writes one micro-batch; Spark Connect pickles it to the server, with secrets still unresolved."""

    target: Target
    checkpoint: str | None
    part: str = ""
    """Distinguishes this sink from other sinks of the same query."""
    mark: Mark | None = None
    """Records facts about the target after a batch; None on Spark Connect."""

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        self.write(lambda: df, batch_id, lambda: df.sparkSession)

    def write(self, frame: Callable[[], DataFrame], batch_id: int, spark: Callable[[], SparkSession]) -> int:
        """Write the rows, and return their number."""
        target, server = self.target, server_of(self.target)
        writer = query_id(spark(), self.checkpoint) + self.part
        existing = staging.attempted(target, lambda: staging.prepared(server, target, remembers=True))
        if not target.primary_key:
            done = staging.attempted(target, lambda: staging.last_written(server, target, existing, writer))
            if not staging.is_next(server, target, done, batch_id):
                return 0
        staged = _written(server, target, existing, frame(), writer, (writer, batch_id))
        if self.mark is not None and staged.moved:
            batch = batch_id if staged.remembered else None
            self.mark(batch_id, {"batch": batch, "made": existing.made, "rows": staged.upserts > 0})
        return staged.rows

    def write_all(self, df: DataFrame) -> None:
        """Write the result of a batch job, which is not replayed."""
        target, server = self.target, server_of(self.target)
        existing = staging.attempted(target, lambda: staging.prepared(server, target, remembers=not target.primary_key))
        _written(server, target, existing, df, "", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The number of ``rows``, how many were ``moved`` after netting, and how many of these were ``upserts``.

    ``remembered`` is true if the target has recorded the batch.
    """

    rows: int
    moved: int
    upserts: int
    remembered: bool


def _written(
    server: Server, target: Target, found: Found, frame: DataFrame, writer: str, commit: tuple[str, int] | None
) -> Written:
    """Stage the rows of ``frame`` in its tasks, and move them."""
    stage = staging.attempted(target, lambda: staging.new_stage(server, target, found, writer))
    try:
        staged = map_in_arrow(_divided(frame, target), Staging(target=target, stage=stage), _SCHEMA).collect()
        parts = [row["part"] for row in staged if row["part"] is not None]
        rows = sum(row["staged"] for row in staged)
        remembered = _moved(server, target, found, stage, parts, rows, commit)
    finally:
        staging.drop_stage(server, target, stage)
    upserts = sum(row["upserts"] for row in staged)
    return Written(rows=sum(row["rows"] for row in staged), moved=rows, upserts=upserts, remembered=remembered)


def _moved(
    server: Server,
    target: Target,
    found: Found,
    stage: Stage,
    parts: list[str],
    rows: int,
    commit: tuple[str, int] | None,
) -> bool:
    """Move the rows; return true if the target has recorded ``commit``, as a target without a key must."""

    def move(commit: tuple[str, int] | None) -> None:
        staging.move(server, target, found, stage, parts, rows, commit)

    if commit is None and not target.primary_key:
        # After a lost connection, nobody knows if the transaction was committed; a retry could add rows twice.
        staging.attempted(_without_retries(target), partial(move, None))
        return False
    try:
        staging.attempted(target, partial(move, commit))
    except Unavailable:
        raise
    except RunError:
        if commit is None or not target.primary_key:
            raise
        # The user may lack the right to write to another user's table of commits. Any other error occurs again.
        staging.attempted(target, partial(move, None))
        return False
    return commit is not None


def _without_retries(target: Target) -> Target:
    options = {**target.options, "sink.max-retries": "0"}
    return Target(name=target.name, options=options, columns=target.columns, primary_key=target.primary_key)


def _divided(frame: DataFrame, target: Target) -> DataFrame:
    """Return the rows in the order and the partitions for staging: with a key, one task gets all changes of a key."""
    texts = {
        column.name: F.to_json(quoted(column.name), _JSON)
        for column in target.columns
        if parse_type(column.type).root in NESTED
    }
    frame = frame.withColumns(texts) if texts else frame
    parallelism = target.options.get("sink.parallelism")
    if not target.primary_key:
        return frame if parallelism is None else frame.coalesce(int(parallelism))
    partitions = int(parallelism or frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    placed = frame.withColumn(_PLACE, F.monotonically_increasing_id())
    return placed.repartition(partitions, *map(quoted, target.primary_key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """Stages the rows of a task in ``mapInArrow``; yields a record per staged part, and one with the number of rows."""

    target: Target
    stage: Stage

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        staged = self._upserts(batches) if self.target.primary_key else self._inserts(batches)
        for record in staged:
            yield pa.record_batch([pa.array([value]) for value in record], schema=_STAGED)

    def _inserts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str | None, int, int, int]]:
        server, columns = server_of(self.target), [column.name for column in self.target.columns]
        for batch in batches:
            if batch.num_rows:
                for part, count in self._staged(server, UPSERT, columns, list(self._rows(pa.table(batch), server))):
                    yield part, count, count, count

    def _upserts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str | None, int, int, int]]:
        filled = [batch for batch in batches if batch.num_rows]
        if not filled:
            return
        server = server_of(self.target)
        table = pa.Table.from_batches(filled).sort_by(_PLACE)
        yield None, 0, 0, table.num_rows
        changes = self._net(table, server)
        all_columns = [column.name for column in self.target.columns]
        for op, columns, rows in (
            (UPSERT, all_columns, changes.upserts),
            (DELETE, list(self.target.primary_key), changes.deletes),
        ):
            for part, count in self._staged(server, op, columns, rows):
                yield part, count, count if op == UPSERT else 0, 0

    def _net(self, table: pa.Table, server: Server) -> Net:
        columns = [column.name for column in self.target.columns]
        kinds = table.column(KIND).to_pylist() if KIND in table.column_names else [INSERT] * table.num_rows
        return net(self._rows(table, server), kinds, key=[columns.index(name) for name in self.target.primary_key])

    def _rows(self, table: pa.Table, server: Server) -> Iterator[Row]:
        columns = (server.storage(table.column(column.name), column, self.target) for column in self.target.columns)
        return zip(*columns, strict=True)

    def _staged(
        self, server: Server, op: int, names: list[str], rows: tuple[Row, ...] | list[Row]
    ) -> Iterator[tuple[str, int]]:
        max_rows = int(self.target.option("sink.buffer-flush.max-rows", "10000"))
        for start in range(0, len(rows), max_rows):
            chunk = rows[start : start + max_rows]
            yield staging.stage_rows(server, self.target, self.stage, op, names, chunk), len(chunk)


def writer(
    df: DataFrame, name: str, table: Table, *, checkpoint: str | None = None, mark: Mark | None = None
) -> DataStreamWriter:
    """Return a writer into the table's database; raise RunError if the table exists and does not fit."""
    return written_by(_micro_batch(name, table, checkpoint=checkpoint, mark=mark), df, checkpoint)


def micro_batch_writer(
    name: str, table: Table, *, checkpoint: str | None = None, part: str = "", mark: Mark | None = None
) -> Callable[[MicroBatch, int], int]:
    """Return a function that writes a micro-batch; ``part`` distinguishes the sinks of one query.

    Raises RunError in the cases of :func:`writer`.
    """
    sink = _micro_batch(name, table, checkpoint=checkpoint, part=part, mark=mark)
    return lambda rows, batch: sink.write(rows.in_spark, batch, lambda: rows.spark)


def _micro_batch(
    name: str, table: Table, *, checkpoint: str | None, part: str = "", mark: Mark | None = None
) -> ServerBatch:
    batch = ServerBatch(target=_target(name, table), checkpoint=checkpoint, part=part, mark=mark)
    if not is_remote():
        _check(batch.target)
    return batch


def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """Return a function that writes all rows in one transaction.

    Raises RunError immediately in the cases of :func:`writer`.
    """
    batch = ServerBatch(target=_target(name, table), checkpoint=None)
    _check(batch.target)
    return partial(batch.write_all, df)


def batches_had(table: Table, writer: Callable[[], str | None], files_in: FilesIn) -> int:
    """Return the last batch of ``writer``, which the database remembers for a table without a key."""
    query = None if table.primary_key else writer()
    if query is None or is_remote():
        return -1
    target = _target("", table)
    server = server_of(target)
    existing = staging.attempted(target, lambda: staging.checked(server, target))
    if existing is None:
        return -1
    staging.attempted(target, lambda: staging.prepared(server, target, remembers=True))
    return staging.attempted(target, lambda: staging.last_written(server, target, existing, query))


def lacks(table: Table, writer: Callable[[], str | None], had: Mapping[str, Any]) -> str | None:
    """Return what the table lacks of the facts that it ``had``; None if nothing is missing.

    Deleted rows do not count as missing, unless the table was recreated or truncated and is empty.
    """
    target = _target("", table)
    server = server_of(target)
    existing = staging.attempted(target, lambda: staging.checked(server, target))
    if existing is None:
        return NOT_THERE
    is_other = None not in (existing.made, had["made"]) and existing.made != had["made"]
    if had["rows"] and is_other and staging.attempted(target, lambda: staging.is_empty(server, target, existing)):
        return EMPTIED
    if had["batch"] is None:
        return None
    query = writer() or ""
    return lacks_batches(
        staging.attempted(target, lambda: staging.last_written(server, target, existing, query)), had["batch"]
    )


def server_of(target: Target) -> Server:
    """Return the server for the url; raise RunError if its driver is not installed here."""
    kind = "mysql" if target.options["url"].startswith(MYSQL_URLS) else "postgres"
    server: Server = getattr(import_extra(f"hintplan.runtime.connectors.jdbc.{kind}_sink", kind, "jdbc"), kind.upper())
    return server


def _check(target: Target) -> None:
    server: Any = server_of(target)
    staging.attempted(target, lambda: staging.checked(server, target))


def _target(name: str, table: Table) -> Target:
    options: Mapping[str, str] = dict(table.options)
    columns = tuple(Column(name=c.name, type=c.type) for c in table.columns if c.is_physical)
    return Target(name=name, options=options, columns=columns, primary_key=table.primary_key)

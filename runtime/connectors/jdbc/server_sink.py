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

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from hintplan.plans.connectors.columns import NESTED
from hintplan.plans.declarations.tables import Column, Table
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.connectors.connector import (
    EMPTIED,
    NOT_THERE,
    Mark,
    QueryId,
    SinkFacts,
    TableWrite,
    missing_batches,
)
from hintplan.runtime.connectors.jdbc import staging
from hintplan.runtime.connectors.jdbc.dialect import ServerDialect
from hintplan.runtime.connectors.jdbc.sink import DatabaseBatch, DatabaseSink
from hintplan.runtime.connectors.jdbc.staging import with_retries
from hintplan.runtime.connectors.jdbc.target import DELETE, UPSERT, DatabaseTarget, Row, ServerTable, Stage
from hintplan.runtime.connectors.micro_batch import MicroBatch, query_id
from hintplan.runtime.connectors.netting import Net, net
from hintplan.runtime.operator import INSERT, KIND
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import quoted

_PLACE = "__place"
_STAGED = pa.schema([("part", pa.string()), *((name, pa.int64()) for name in ("staged", "upserts", "rows"))])
_SCHEMA = "part string, staged long, upserts long, rows long"
_JSON = {"ignoreNullFields": "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBatch(DatabaseBatch):
    """Stages the rows of a micro-batch in its tasks, and moves them in one transaction."""

    dialect: ServerDialect
    target: DatabaseTarget
    checkpoint: str | None
    part: str = ""
    """Distinguishes this sink from other sinks of the same query."""
    mark: Mark | None = None
    """Records facts about the target after a batch; None on Spark Connect."""

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        self.write(lambda: df, batch_id, lambda: df.sparkSession)

    def check(self) -> None:
        with_retries(self.target, lambda: staging.existing_target(self.dialect, self.target))

    def write_micro_batch(self, rows: MicroBatch, batch_id: int) -> int:
        return self.write(rows.in_spark, batch_id, lambda: rows.spark)

    def write(self, frame: Callable[[], DataFrame], batch_id: int, spark: Callable[[], SparkSession]) -> int:
        """Write the rows, and return their number."""
        target, dialect = self.target, self.dialect
        writer = query_id(spark(), self.checkpoint) + self.part
        existing = with_retries(target, lambda: staging.prepare_target(dialect, target, remembers=True))
        if not target.primary_key:
            done = with_retries(target, lambda: staging.last_remembered(dialect, target, existing, writer))
            if not staging.is_next_batch(dialect, target, done, batch_id):
                return 0
        staged = _written(dialect, target, existing, frame(), writer, (writer, batch_id))
        if self.mark is not None and staged.moved:
            batch = batch_id if staged.remembered else None
            self.mark(batch_id, {"batch": batch, "made": existing.made, "rows": staged.upserts > 0})
        return staged.rows

    def write_all(self, df: DataFrame) -> None:
        """Write the result of a batch job, which is not replayed."""
        target, dialect = self.target, self.dialect
        existing = with_retries(
            target, lambda: staging.prepare_target(dialect, target, remembers=not target.primary_key)
        )
        _written(dialect, target, existing, df, "", None)


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
    dialect: ServerDialect,
    target: DatabaseTarget,
    existing: ServerTable,
    frame: DataFrame,
    writer: str,
    commit: tuple[str, int] | None,
) -> Written:
    """Stage the rows of ``frame`` in its tasks, and move them."""
    stage = with_retries(target, lambda: staging.new_stage(dialect, target, existing, writer))
    try:
        staged = map_in_arrow(
            _divided(frame, target), RowStaging(dialect=dialect, target=target, stage=stage), _SCHEMA
        ).collect()
        parts = [row["part"] for row in staged if row["part"] is not None]
        rows = sum(row["staged"] for row in staged)
        remembered = _moved(dialect, target, existing, stage, parts, rows, commit)
    finally:
        staging.drop_stage(dialect, target, stage)
    upserts = sum(row["upserts"] for row in staged)
    return Written(rows=sum(row["rows"] for row in staged), moved=rows, upserts=upserts, remembered=remembered)


def _moved(
    dialect: ServerDialect,
    target: DatabaseTarget,
    existing: ServerTable,
    stage: Stage,
    parts: list[str],
    rows: int,
    commit: tuple[str, int] | None,
) -> bool:
    """Move the rows; return true if the target has recorded ``commit``, as a target without a key must."""

    def move(commit: tuple[str, int] | None) -> None:
        staging.move_staged(dialect, target, existing, stage, parts, rows, commit)

    if commit is None and not target.primary_key:
        # After a lost connection, nobody knows if the transaction was committed; a retry could add rows twice.
        with_retries(_without_retries(target), partial(move, None))
        return False
    try:
        with_retries(target, partial(move, commit))
    except Unavailable:
        raise
    except RunError:
        if commit is None or not target.primary_key:
            raise
        # The user may lack the right to write to another user's table of commits. Any other error occurs again.
        with_retries(target, partial(move, None))
        return False
    return commit is not None


def _without_retries(target: DatabaseTarget) -> DatabaseTarget:
    options = {**target.options, "sink.max-retries": "0"}
    return DatabaseTarget(name=target.name, options=options, columns=target.columns, primary_key=target.primary_key)


def _divided(frame: DataFrame, target: DatabaseTarget) -> DataFrame:
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
class RowStaging:
    """Stages the rows of a task in ``mapInArrow``; yields a record per staged part, and one with the number of rows."""

    dialect: ServerDialect
    target: DatabaseTarget
    stage: Stage

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        staged = self._upserts(batches) if self.target.primary_key else self._inserts(batches)
        for record in staged:
            yield pa.record_batch([pa.array([value]) for value in record], schema=_STAGED)

    def _inserts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str | None, int, int, int]]:
        columns = [column.name for column in self.target.columns]
        for batch in batches:
            if batch.num_rows:
                for part, count in self._staged(UPSERT, columns, list(self._rows(pa.table(batch)))):
                    yield part, count, count, count

    def _upserts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str | None, int, int, int]]:
        filled = [batch for batch in batches if batch.num_rows]
        if not filled:
            return
        table = pa.Table.from_batches(filled).sort_by(_PLACE)
        yield None, 0, 0, table.num_rows
        changes = self._net(table)
        all_columns = [column.name for column in self.target.columns]
        for op, columns, rows in (
            (UPSERT, all_columns, changes.upserts),
            (DELETE, list(self.target.primary_key), changes.deletes),
        ):
            for part, count in self._staged(op, columns, rows):
                yield part, count, count if op == UPSERT else 0, 0

    def _net(self, table: pa.Table) -> Net:
        columns = [column.name for column in self.target.columns]
        kinds = table.column(KIND).to_pylist() if KIND in table.column_names else [INSERT] * table.num_rows
        return net(self._rows(table), kinds, key=[columns.index(name) for name in self.target.primary_key])

    def _rows(self, table: pa.Table) -> Iterator[Row]:
        columns = (
            self.dialect.storage(table.column(column.name), column, self.target) for column in self.target.columns
        )
        return zip(*columns, strict=True)

    def _staged(self, op: int, names: list[str], rows: tuple[Row, ...] | list[Row]) -> Iterator[tuple[str, int]]:
        max_rows = int(self.target.option("sink.buffer-flush.max-rows", "10000"))
        for start in range(0, len(rows), max_rows):
            chunk = rows[start : start + max_rows]
            yield staging.stage_rows(self.dialect, self.target, self.stage, op, names, chunk), len(chunk)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSink(DatabaseSink):
    """Databases on servers."""

    dialect: ServerDialect

    def batch(self, write: TableWrite) -> ServerBatch:
        return ServerBatch(
            dialect=self.dialect,
            target=_target(write.name, write.table),
            checkpoint=write.checkpoint,
            part=write.part,
            mark=write.mark,
        )

    def last_batch(self, table: Table, query: QueryId) -> int:
        query_id = None if table.primary_key else query()
        if query_id is None or is_remote():
            return -1
        target, dialect = _target("", table), self.dialect
        existing = with_retries(target, lambda: staging.existing_target(dialect, target))
        if existing is None:
            return -1
        with_retries(target, lambda: staging.prepare_target(dialect, target, remembers=True))
        return with_retries(target, lambda: staging.last_remembered(dialect, target, existing, query_id))

    def missing(self, table: Table, query: QueryId, facts: SinkFacts) -> str | None:
        target, dialect = _target("", table), self.dialect
        existing = with_retries(target, lambda: staging.existing_target(dialect, target))
        if existing is None:
            return NOT_THERE
        is_other = None not in (existing.made, facts["made"]) and existing.made != facts["made"]
        if facts["rows"] and is_other and with_retries(target, lambda: staging.is_empty(dialect, target, existing)):
            return EMPTIED
        if facts["batch"] is None:
            return None
        query_id = query() or ""
        last = with_retries(target, lambda: staging.last_remembered(dialect, target, existing, query_id))
        return missing_batches(last, facts["batch"])


def _target(name: str, table: Table) -> DatabaseTarget:
    options: Mapping[str, str] = dict(table.options)
    columns = tuple(Column(name=c.name, type=c.type) for c in table.columns if c.is_physical)
    return DatabaseTarget(name=name, options=options, columns=columns, primary_key=table.primary_key)

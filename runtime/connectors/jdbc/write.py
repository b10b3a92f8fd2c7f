"""The jdbc sink in SQLite: maintains a table by primary key, or appends to a table without one.

The driver collects each micro-batch, nets its changes and writes them in one transaction, so readers of the database
see whole micro-batches. With a PRIMARY KEY, a replayed micro-batch writes rows that already exist. Without a PRIMARY
KEY, the database remembers the last micro-batch of each query, and a replayed one is skipped. The sink creates a
missing table, and refuses a table with other columns. On Spark Connect, all this happens on the server, including the
resolution of paths and environment variables. SQLite has no users, so ``username`` and ``password`` are resolved and
then ignored.

A batch job collects its whole result where it was started, and writes it in one transaction. With a PRIMARY KEY it
upserts the rows; without one, it appends them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import is_remote

from hintplan.plans.connectors.jdbc import SQLITE_URL
from hintplan.plans.declarations.tables import Column, Table
from hintplan.runtime.connectors.connector import EMPTIED, NOT_THERE, FilesIn, Mark, lacks_batches
from hintplan.runtime.connectors.jdbc.sqlite import (
    SqliteTable,
    append_rows,
    apply_net,
    check_target,
    insert_rows,
    is_there,
    last_written,
    made_of_empty,
    storage_columns,
)
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.netting import Net, Row, net
from hintplan.runtime.connectors.query_id import query_id
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.operator import INSERT, KIND
from hintplan.runtime.secrets import resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteBatch:
    """Writes one micro-batch; Spark Connect pickles it to the server, with secrets still unresolved."""

    url: str
    target: SqliteTable
    credentials: tuple[str, ...]
    checkpoint: str | None
    part: str = ""
    """Distinguishes this sink from other sinks of the same query."""
    mark: Mark | None = None
    """Records facts about the table after a batch; without it, the database records no batch of a table with a key."""

    def path(self) -> str:
        for secret in self.credentials:
            resolve(secret)
        return self.url.removeprefix(SQLITE_URL)

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        self.write(df.toArrow(), batch_id, lambda: df.sparkSession)

    def write(self, table: pa.Table, batch_id: int, spark: Callable[[], SparkSession]) -> int:
        """Write the rows, and return their number."""
        rows = self.rows(table)
        if not self.target.primary_key:
            query = query_id(spark(), self.checkpoint) + self.part
            version = append_rows(self.path(), self.target, rows, query_id=query, batch_id=batch_id)
            added = table.num_rows > 0
        else:
            changes = self.net(rows, table)
            commit = None if self.mark is None else (query_id(spark(), self.checkpoint) + self.part, batch_id)
            version = apply_net(self.path(), self.target, changes, commit=commit)
            added = bool(changes.upserts)
        if self.mark is not None and table.num_rows:
            self.mark(batch_id, {"batch": batch_id, "made": version, "rows": added})
        return int(table.num_rows)

    def write_all(self, df: DataFrame) -> None:
        """Write the result of a batch job, which is not replayed."""
        table = df.toArrow()
        rows = self.rows(table)
        if self.target.primary_key:
            apply_net(self.path(), self.target, self.net(rows, table))
        else:
            insert_rows(self.path(), self.target, rows)

    def rows(self, table: pa.Table) -> Iterator[Row]:
        return zip(*storage_columns(table, self.target.columns), strict=True)

    def net(self, rows: Iterator[Row], table: pa.Table) -> Net:
        """Return the net changes of a collected batch; without a kind column, all rows are ``+I``."""
        columns = [column.name for column in self.target.columns]
        kinds = table.column(KIND).to_pylist() if KIND in table.column_names else [INSERT] * table.num_rows
        return net(rows, kinds, key=[columns.index(name) for name in self.target.primary_key])


def writer(
    df: DataFrame, name: str, table: Table, *, checkpoint: str | None = None, mark: Mark | None = None
) -> DataStreamWriter:
    """Return a writer into the table's database; raise RunError if the database has a different table of that name."""
    batch = _micro_batch(table, checkpoint=checkpoint, mark=mark)
    return written_by(batch, df, checkpoint)


def micro_batch_writer(
    name: str, table: Table, *, checkpoint: str | None = None, part: str = "", mark: Mark | None = None
) -> Callable[[MicroBatch, int], int]:
    """Return a function that writes a micro-batch; ``part`` distinguishes the sinks of one query.

    Raises RunError in the cases of :func:`writer`.
    """
    sink = _micro_batch(table, checkpoint=checkpoint, part=part, mark=mark)
    return lambda rows, batch: sink.write(rows.on_driver(), batch, lambda: rows.spark)


def _micro_batch(table: Table, *, checkpoint: str | None, part: str = "", mark: Mark | None = None) -> SqliteBatch:
    batch = replace(_sqlite_batch(table, checkpoint, part), mark=mark)
    if not is_remote():
        check_target(batch.path(), batch.target)
    return batch


def batch_writer(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """Return a function that writes all rows in one transaction.

    Raises RunError immediately if the database has a different table of that name.
    """
    batch = _sqlite_batch(table, checkpoint=None)
    check_target(batch.path(), batch.target)
    return partial(batch.write_all, df)


def batches_had(table: Table, writer: Callable[[], str | None], files_in: FilesIn) -> int:
    """Return the last batch of ``writer``, which the database remembers for a table without a key."""
    query = None if table.primary_key else writer()
    if query is None:
        return -1
    return last_written(table.options["url"].removeprefix(SQLITE_URL), table.options["table-name"], query)


def lacks(table: Table, writer: Callable[[], str | None], had: Mapping[str, Any]) -> str | None:
    """Return what the table lacks of the facts that it ``had``; None if nothing is missing.

    Deleted rows do not count as missing, unless the table was recreated and is empty.
    """
    path, name = table.options["url"].removeprefix(SQLITE_URL), table.options["table-name"]
    if not is_there(path, name):
        return NOT_THERE
    if had["rows"] and made_of_empty(path, name) not in (None, had["made"]):
        return EMPTIED
    return lacks_batches(last_written(path, name, writer() or ""), had["batch"])


def _sqlite_batch(table: Table, checkpoint: str | None, part: str = "") -> SqliteBatch:
    return SqliteBatch(
        url=table.options["url"],
        target=SqliteTable(
            name=table.options["table-name"],
            columns=tuple(Column(name=c.name, type=c.type) for c in table.columns if c.is_physical),
            primary_key=table.primary_key,
        ),
        credentials=tuple(table.options[key] for key in ("username", "password") if key in table.options),
        checkpoint=checkpoint,
        part=part,
    )

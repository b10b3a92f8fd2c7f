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

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.connectors.jdbc import SQLITE_URL
from hintplan.plans.declarations.tables import Column, Table
from hintplan.runtime.connectors.connector import (
    EMPTIED,
    NOT_THERE,
    Mark,
    QueryId,
    SinkFacts,
    TableWrite,
    missing_batches,
)
from hintplan.runtime.connectors.jdbc.sink import DatabaseBatch, DatabaseSink
from hintplan.runtime.connectors.jdbc.sqlite import (
    Sqlite,
    SqliteTable,
    append_rows,
    apply_net,
    check_target,
    insert_rows,
    is_there,
    last_sqlite_batch,
    made_of_empty,
    storage_columns,
)
from hintplan.runtime.connectors.micro_batch import MicroBatch, query_id
from hintplan.runtime.connectors.netting import Net, Row, net
from hintplan.runtime.operator import INSERT, KIND
from hintplan.runtime.secrets import resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteBatch(DatabaseBatch):
    """Collects the rows of a micro-batch on the driver, and writes them in one transaction."""

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

    def check(self) -> None:
        check_target(self.path(), self.target)

    def write_micro_batch(self, rows: MicroBatch, batch_id: int) -> int:
        return self.write(rows.on_driver(), batch_id, lambda: rows.spark)

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


class SqliteSink(DatabaseSink):
    """SQLite databases."""

    dialect = Sqlite()

    def batch(self, write: TableWrite) -> SqliteBatch:
        options = write.table.options
        columns = tuple(Column(name=c.name, type=c.type) for c in write.table.columns if c.is_physical)
        return SqliteBatch(
            url=options["url"],
            target=SqliteTable(name=options["table-name"], columns=columns, primary_key=write.table.primary_key),
            credentials=tuple(options[key] for key in ("username", "password") if key in options),
            checkpoint=write.checkpoint,
            part=write.part,
            mark=write.mark,
        )

    def last_batch(self, table: Table, query: QueryId) -> int:
        query_id = None if table.primary_key else query()
        if query_id is None:
            return -1
        return last_sqlite_batch(table.options["url"].removeprefix(SQLITE_URL), table.options["table-name"], query_id)

    def missing(self, table: Table, query: QueryId, facts: SinkFacts) -> str | None:
        path, name = table.options["url"].removeprefix(SQLITE_URL), table.options["table-name"]
        if not is_there(path, name):
            return NOT_THERE
        if facts["rows"] and made_of_empty(path, name) not in (None, facts["made"]):
            return EMPTIED
        return missing_batches(last_sqlite_batch(path, name, query() or ""), facts["batch"])

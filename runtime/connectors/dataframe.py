"""The dataframe connector: reads DataFrames of the program that runs the plan, and passes rows to its functions.

A micro-batch is computed once, whatever the function does with its rows. Before the call, all state of the batch is
written and its rows are persisted. The column ``__kind`` holds the row kind as text; an insert-only input has no such
column. For a table with a PRIMARY KEY, the function gets one row per changed key, ``+U`` or ``-D``. After a failure, it
is called again with the same batch number. A batch job calls it once, with number 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import BooleanType, StructField, StructType
from pyspark.storagelevel import StorageLevel

from hintplan.plans.connectors.dataframe import DATAFRAME
from hintplan.plans.declarations.row_kinds import ALL_KINDS
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.connector import ConnectorCode
from hintplan.runtime.connectors.given import NOTHING, Given, SinkFunction
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.netted_rows import DELETED, net_rows
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.operator import KIND
from hintplan.runtime.spark.function_failed import FunctionFailed, function_failed
from hintplan.runtime.spark.interrupted import is_interruption
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.storage.pins import PinPlace

_PLACE = "__place"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    """Calls ``function`` with the rows of table ``name``, after computing and persisting them once."""

    function: SinkFunction
    name: str
    key: tuple[str, ...]
    failures: list[FunctionFailed]

    def __call__(self, rows: Any, batch: int) -> int:
        """Pass the rows of a batch to the function, and return their number; FunctionFailed if the function raises."""
        kept = self._handed(rows).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            number = int(kept.count())
            self._call(kept, batch)
            return number
        finally:
            kept.unpersist()

    def _call(self, rows: Any, batch: int) -> None:
        try:
            self.function(rows, batch)
        except Exception as error:
            if is_interruption(error):
                raise
            failure = function_failed(self.name, error, on_server=is_remote(rows.sparkSession))
            self.failures.append(failure)
            raise failure from error

    def _handed(self, rows: DataFrame) -> DataFrame:
        if self.key:
            return self._of_keys(rows)
        if KIND not in rows.columns:
            return rows
        return rows.withColumn(KIND, F.array(*map(F.lit, ALL_KINDS))[F.col(KIND).cast("int")])

    def _of_keys(self, rows: DataFrame) -> DataFrame:
        """Return one row per changed key; an exchange brings all changes of a key to one task, which nets them."""
        tasks = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        placed = rows.withColumn(_PLACE, F.monotonically_increasing_id())
        by_key = placed.repartition(tasks, *map(quoted, self.key))
        fields = [field for field in rows.schema.fields if field.name != KIND]
        nullable = [StructField(field.name, field.dataType) for field in fields]
        netting = Netting(name=self.name, key=self.key)
        netted = map_in_arrow(by_key, netting, StructType([*nullable, StructField(DELETED, BooleanType())]))
        kind = F.when(F.col(DELETED), F.lit("-D")).otherwise(F.lit("+U"))
        return netted.withColumn(KIND, kind).drop(DELETED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Netting:
    """Nets the changes of a task in ``mapInArrow``; the task has all changes of each ``key``."""

    name: str
    key: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = [batch for batch in batches if batch.num_rows]
        if not filled:
            return
        table = net_rows(pa.Table.from_batches(filled).sort_by(_PLACE).drop_columns([_PLACE]), self.key)
        for column in self.key:
            if pc.any(pc.is_null(table[column])).as_py():
                raise RunError(f"table {self.name}: a row has NULL in '{column}', which is in the PRIMARY KEY")
        yield from table.to_batches()


def _code(given: Given) -> ConnectorCode:
    """Return the connector's code for a run whose program passed ``given`` DataFrames and functions."""
    return ConnectorCode(
        connector=DATAFRAME,
        read=partial(_read, given),
        read_batch=partial(_read_batch, given),
        writer=partial(_writer, given),
        micro_batch_writer=partial(_micro_batch_writer, given),
        batch_writer=partial(_batch_writer, given),
        handed=_code,
    )


def _read(
    given: Given,
    spark: SparkSession,
    name: str,
    table: Table,
    columns: tuple[str, ...],
    *,
    row_order: bool = False,
    pins: PinPlace | None = None,
) -> DataFrame:
    return _read_batch(given, spark, name, table, columns)


def _read_batch(given: Given, spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> DataFrame:
    return given.tables[name].select(*map(quoted, columns))


def _handing(given: Given, name: str, table: Table) -> Handing:
    return Handing(function=given.sinks[name], name=name, key=table.primary_key, failures=given.failures)


def _writer(
    given: Given, df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    return written_by(_handing(given, name, table), df, checkpoint)


def _micro_batch_writer(
    given: Given, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None, part: str = ""
) -> Callable[[MicroBatch, int], int]:
    handing = _handing(given, name, table)
    return lambda rows, batch: handing(rows.in_spark(), batch)


def _batch_writer(given: Given, df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    def write() -> None:
        _handing(given, name, table)(df, 0)

    return write


CODE = _code(NOTHING)

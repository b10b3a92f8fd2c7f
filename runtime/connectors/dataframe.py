"""The dataframe connector: reads DataFrames of the program that runs the plan, and passes rows to its functions.

A micro-batch is computed once, whatever the function does with its rows. Before the call, all state of the batch is
written and its rows are persisted. The column ``__kind`` holds the row kind as text; an insert-only input has no such
column. For a table with a PRIMARY KEY, the function gets one row per changed key, ``+U`` or ``-D``. After a failure, it
is called again with the same batch number. A batch job calls it once, with number 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import BooleanType, StructField, StructType
from pyspark.storagelevel import StorageLevel

from hintplan.plans.connectors.dataframe import DATAFRAME
from hintplan.plans.declarations.row_kinds import ALL_KINDS
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.connector import BatchWriter, StreamSource, TableRead, TableSink, TableWrite
from hintplan.runtime.connectors.netted_rows import DELETED, net_rows
from hintplan.runtime.connectors.program_objects import SinkFunction
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.operator import KIND
from hintplan.runtime.spark.function_failed import FunctionFailed, function_failed
from hintplan.runtime.spark.interrupted import is_interruption
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.spark.session import is_remote

_PLACE = "__place"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """Calls ``function`` with the rows of table ``name``, after computing and persisting them once."""

    function: SinkFunction
    name: str
    key: tuple[str, ...]
    failures: list[FunctionFailed]

    def __call__(self, rows: DataFrame, batch: int) -> int:
        """Pass the rows of a batch to the function, and return their number; FunctionFailed if the function raises."""
        kept = self._with_kinds(rows).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            number = int(kept.count())
            self._call(kept, batch)
            return number
        finally:
            kept.unpersist()

    def _call(self, rows: DataFrame, batch: int) -> None:
        try:
            self.function(rows, batch)
        except Exception as error:
            if is_interruption(error):
                raise
            failure = function_failed(self.name, error, on_server=is_remote(rows.sparkSession))
            self.failures.append(failure)
            raise failure from error

    def _with_kinds(self, rows: DataFrame) -> DataFrame:
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
        netting = KeyChanges(name=self.name, key=self.key)
        netted = map_in_arrow(by_key, netting, StructType([*nullable, StructField(DELETED, BooleanType())]))
        kind = F.when(F.col(DELETED), F.lit("-D")).otherwise(F.lit("+U"))
        return netted.withColumn(KIND, kind).drop(DELETED)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanges:
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


class DataFrameCode(StreamSource, TableSink):
    """Reads the DataFrames that a program passed to the run, and calls its functions."""

    connector = DATAFRAME

    def read_batch(self, read: TableRead) -> DataFrame:
        return read.objects.tables[read.name].select(*map(quoted, read.columns))

    def read_stream(self, read: TableRead) -> DataFrame:
        return self.read_batch(read)

    def stream_writer(self, write: TableWrite, rows: DataFrame) -> DataStreamWriter:
        return written_by(_function_call(write), rows, write.checkpoint)

    def micro_batch_writer(self, write: TableWrite) -> BatchWriter:
        call = _function_call(write)
        return lambda rows, batch: call(rows.in_spark(), batch)

    def batch_writer(self, write: TableWrite, rows: DataFrame) -> Callable[[], None]:
        def write_rows() -> None:
            _function_call(write)(rows, 0)

        return write_rows


def _function_call(write: TableWrite) -> FunctionCall:
    objects, name = write.objects, write.name
    return FunctionCall(function=objects.sinks[name], name=name, key=write.table.primary_key, failures=objects.failures)


CODE = DataFrameCode()

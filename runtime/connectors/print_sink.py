"""The print sink: every change as a line on standard output, in the format of Flink's print connector.

    +I[1, DE, 5.0]
    revenue> -U[2, null, 1.0E10]

Line ends and non-printing characters in values are escaped, because a value could otherwise forge a row, or move the
cursor of the terminal. ``--print-raw`` prints rows unchanged.

A micro-batch, or the whole result of a batch job, is collected on the driver and printed in row order. On Spark
Connect, the driver of a stream is the server, so the lines are in the server's output; a batch job prints where it was
started. A batch that is replayed after a failure is printed again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.print_sink import PRINT
from hintplan.plans.declarations.tables import Table
from hintplan.plans.text.escapes import clean
from hintplan.runtime.connectors.connector import BatchWriter, TableSink, TableWrite
from hintplan.runtime.connectors.rowtext import lines
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.operator import KIND

_as_they_are = False


def print_raw() -> None:
    """Print rows unchanged in this process from now on."""
    global _as_they_are
    _as_they_are = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintBatch:
    """Prints one micro-batch; Spark Connect pickles it to the server."""

    identifier: str

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        self.write(df.toArrow())

    def write(self, table: pa.Table) -> int:
        """Print the rows, and return their number."""
        kinds = None
        if KIND in table.column_names:
            kinds = table.column(KIND).to_pylist()
            table = table.drop_columns([KIND])
        prefix = f"{self.identifier}> " if self.identifier else ""
        shown = (f"{prefix}{line}" for line in lines(table, kinds))
        # One write for the batch: several sinks may print at the same time.
        sys.stdout.write("".join(f"{line if _as_they_are else _visible(line)}\n" for line in shown))
        sys.stdout.flush()
        return int(table.num_rows)


class PrintCode(TableSink):
    """Prints the rows of each micro-batch, or of a batch job after they have all been computed."""

    connector = PRINT

    def stream_writer(self, write: TableWrite, rows: DataFrame) -> DataStreamWriter:
        return written_by(_printer(write.table), rows, write.checkpoint)

    def micro_batch_writer(self, write: TableWrite) -> BatchWriter:
        printer = _printer(write.table)
        return lambda rows, batch: printer.write(rows.on_driver())

    def batch_writer(self, write: TableWrite, rows: DataFrame) -> Callable[[], None]:
        return partial(_printer(write.table), rows, 0)


def _visible(line: str) -> str:
    return clean(line).replace("\n", "\\n")


def _printer(table: Table) -> PrintBatch:
    return PrintBatch(identifier=table.options.get("print-identifier", ""))


CODE = PrintCode()

"""The sink that keeps rows for the caller of a run, and its reader: Parquet files, a directory per micro-batch.

Workers write and the client reads, so neither the driver nor the client holds more than a piece of one file. Workers
and client must have access to the directory. Columns are named by position, because a query may use any name.

>>> KeepBatch(directory="/tmp/rows").target(3)
'/tmp/rows/batch-000000000003'
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.operator import KIND

_PIECE_ROWS = 8192

_SETTINGS = {
    # As in Arrow: an instant in microseconds, in the proleptic Gregorian calendar.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}


def keeping(spark: SparkSession) -> None:
    """Prepare the session of a run for keeping rows."""
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepBatch:
    """Keeps one micro-batch, or all rows of a batch job; a replayed batch replaces its earlier rows."""

    directory: str

    def target(self, batch_id: int) -> str:
        return f"{self.directory}/batch-{batch_id:012d}"

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        data = [name for name in df.columns if name != KIND]
        names = [f"c{index}" for index in range(len(data))] + [KIND] * (KIND in df.columns)
        df.toDF(*names).write.mode("overwrite").parquet(self.target(batch_id))


def kept_rows_writer(df: DataFrame, directory: str, logs: str | None) -> DataStreamWriter:
    """Return a writer that keeps each micro-batch of ``df``, whose last column may be the row kind, in ``directory``.

    ``logs`` is the future checkpoint location of the query.
    """
    return written_by(KeepBatch(directory=directory), df, logs)


@dataclass(slots=True, kw_only=True)
class KeptRows:
    """The rows in ``directory``, batch by batch as batches become complete."""

    directory: str
    _read: set[str] = field(default_factory=set)

    def new(self) -> Iterator[tuple[pa.RecordBatch, list[int] | None]]:
        """Yield pieces of complete batches that were not read before, each with its row kinds or None.

        The columns of a piece are ``c0``, ``c1``, ...
        """
        files, root = pa.fs.FileSystem.from_uri(self.directory)
        entries = _listed(files, root)
        for batch in sorted(info.path for info in entries if info.type == pa.fs.FileType.Directory):
            names = [info.path for info in _listed(files, batch)]
            if batch in self._read or not any(name.endswith("/_SUCCESS") for name in names):
                continue
            self._read.add(batch)
            for name in sorted(name for name in names if name.endswith(".parquet")):
                with files.open_input_file(name) as opened:
                    for piece in pq.ParquetFile(opened).iter_batches(batch_size=_PIECE_ROWS):
                        kinds = piece.column(KIND).to_pylist() if KIND in piece.schema.names else None
                        yield piece.drop_columns([KIND]) if kinds is not None else piece, kinds

    def discard(self) -> None:
        """Remove the kept rows."""
        files, root = pa.fs.FileSystem.from_uri(self.directory)
        if files.get_file_info(root).type == pa.fs.FileType.Directory:
            files.delete_dir(root)


def _listed(files: pa.fs.FileSystem, directory: str) -> list[pa.fs.FileInfo]:
    """Return the content of ``directory``, empty if it does not exist.

    Arrow's ``allow_not_found`` fails if the directory is created at that moment.
    """
    try:
        return list(files.get_file_info(pa.fs.FileSelector(directory)))
    except FileNotFoundError:
        return []

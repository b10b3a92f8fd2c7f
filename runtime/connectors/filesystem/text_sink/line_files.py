"""Files of lines that the tasks of a stream write where they have the rows, instead of passing the rows to Spark.

A task writes its rows to one new file in the directory of the table, and returns the file's facts. The driver then adds
the files to the log of Spark's file sink. Readers use only files that are in the log, so files of failed attempts do
not count. As with Spark's sink, the first task writes a file even if it has no rows, and the access rights depend on
Hadoop's umask, not on the process.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.row_kinds import ALL_KINDS
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.row_kinds import OP
from hintplan.runtime.connectors.filesystem.text_sink.lines import LineStyle, WriteLines, lines_writer
from hintplan.runtime.engine.rows import ROWS, Read, Report
from hintplan.runtime.engine.this_task import this_task
from hintplan.runtime.operator import INSERT, KIND

WRITTEN = pa.schema(
    [("name", pa.string()), ("size", pa.int64()), ("modified", pa.int64()), (ROWS, pa.int64()), ("retried", pa.bool_())]
)
"""The facts of a file: its name, its bytes, the time of its last change in milliseconds, and its number of rows.

``retried`` is true if earlier attempts of the task failed, which may have left files.
"""

_MOST_ROWS = 1 << 16
_MOST_BYTES = 32 << 20
"""The size of the rows whose lines are made at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFiles:
    """The files of table ``name`` that a run writes into a local ``folder``, with columns of ``schema`` as lines.

    ``run`` has 12 hexadecimal digits, and no other run has the same. ``file_mode`` and ``folder_mode`` are the access
    rights of files and of new directories.
    """

    name: str
    folder: str
    run: str
    style: LineStyle
    schema: pa.Schema
    file_mode: int
    folder_mode: int

    def file_name(self, batch: int, task: int, attempt: int) -> str:
        """Return the name of the file of a task, in the form of Spark's names; each ``attempt`` has its own."""
        return f"part-{task:05d}-{self._part_of(batch)}-{attempt:012x}-c000.{self.style.format}"

    def remove(self, batch: int, *, wanted: Collection[str] = ()) -> None:
        """Remove the files that tasks of this run have written for ``batch``, except ``wanted``, where possible.

        Files that stay are not in the log, and so do no harm.
        """
        part = f"-{self._part_of(batch)}-"
        with suppress(OSError):
            for file in os.scandir(self.folder):
                if part in file.name and file.name not in wanted:
                    with suppress(OSError):
                        os.unlink(file.path)

    def _part_of(self, batch: int) -> str:
        number = f"{batch % (1 << 32):08x}"
        return "-".join((self.run[:8], self.run[8:], number[:4], number[4:]))


def write_in_task(
    batches: Iterable[pa.RecordBatch], report: Report, *, rows: Read, files: LineFiles
) -> Iterator[pa.Table]:
    """Write the rows of this task to a file; yield its facts, unless the task has no rows and is not the first."""
    from pyspark import TaskContext

    task = this_task("")
    context = TaskContext.get()
    assert context is not None
    tables = rows(batches, report)
    first = next(tables, None)
    if first is not None or task.number == 0:
        name = files.file_name(task.batch, task.number, context.taskAttemptId())
        tables = tables if first is None else chain([first], tables)
        yield write_file(files, name, tables, retried=context.attemptNumber() > 0)


def write_file(files: LineFiles, name: str, tables: Iterable[pa.Table], *, retried: bool = False) -> pa.Table:
    """Write all rows of ``tables`` to the new file ``name``; return its facts. A call that fails leaves no file."""
    write = lines_writer(files.style, files.schema)
    assert write is not None
    path = os.path.join(files.folder, name)
    with _explaining(files):
        _make_folder(Path(files.folder), files.folder_mode)
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    try:
        with open(descriptor, "wb", buffering=0) as out:
            count = _write_all(out, files, tables, write)
        with _explaining(files):
            status = os.stat(path)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
    facts = [[name], [status.st_size], [status.st_mtime_ns // 1_000_000], [count], [retried]]
    return pa.table([pa.array(values, field.type) for values, field in zip(facts, WRITTEN, strict=True)], WRITTEN)


def _make_folder(folder: Path, mode: int) -> None:
    """Make ``folder``, and the directories above it that are missing, with these access rights."""
    if not folder.is_dir():
        _make_folder(folder.parent, mode)
        with suppress(FileExistsError):  # another task has made it
            folder.mkdir()
            folder.chmod(mode)


def _write_all(out: FileIO, files: LineFiles, tables: Iterable[pa.Table], write: WriteLines) -> int:
    """Write the lines and close the file; return the number of rows."""
    with _explaining(files):
        os.fchmod(out.fileno(), files.file_mode)
    count = 0
    for table in tables:
        count += table.num_rows
        for batch in _with_ops(table, files.schema).to_batches(max_chunksize=_MOST_ROWS):
            for piece in _pieces(batch):
                lines = memoryview(_bytes(write(piece)))
                with _explaining(files):
                    while lines:
                        lines = lines[out.write(lines) :]
    with _explaining(files):
        out.close()
    return count


@contextmanager
def _explaining(files: LineFiles) -> Iterator[None]:
    """Raise RunError for the errors of the file system."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"table {files.name} cannot be written to: {error.strerror or error} ({error.filename or files.folder})",
            hint="make room there, or see whether the worker may write there, then run again; nothing that was "
            "committed is lost",
        ) from error


def _with_ops(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of ``schema``, with the text of the row kind as ``OP`` if it is one of them."""
    if OP in schema.names and OP not in table.schema.names:
        kinds = table[KIND] if KIND in table.schema.names else pa.chunked_array([np.full(table.num_rows, INSERT)])
        table = table.append_column(OP, pc.take(pa.array(ALL_KINDS), kinds))
    return table.select(schema.names).cast(schema)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``batch`` in pieces of limited size."""
    if batch.nbytes <= _MOST_BYTES or batch.num_rows == 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def _bytes(lines: pa.Array) -> pa.Buffer:
    """Return the bytes of all ``lines``, which are next to each other in memory."""
    _, offsets, data = lines.buffers()
    bounds = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    return data.slice(int(bounds[0]), int(bounds[-1] - bounds[0]))

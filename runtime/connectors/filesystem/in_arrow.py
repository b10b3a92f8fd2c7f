"""Rows of files in Arrow, as workers make them: values from the file, and values that are the same in a whole file.

Spark lists the files, and computes the second kind once per file: partition columns, METADATA columns and the columns
of ``ROW_ORDER``. A reader of the format returns the first kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from hintplan.runtime.connectors.filesystem.row_kinds import OP, kinds_in_arrow
from hintplan.runtime.engine.rows import Report
from hintplan.runtime.operator import KIND

FILE = "__file"
"""The column of the listed files that has their paths."""

ReadFile = Callable[[str, pa.Schema, str], Iterator[tuple[pa.Table, int]]]
"""Yields rows of the file at a path, with a schema, and their number, for the table of a name; picklable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """The columns of rows of files.

    ``stored`` are the columns to read from a file. ``schema`` are the columns of the result: stored ones, columns of
    the list, and the row kinds of a changelog, whose rows may be ``upserts``.
    """

    stored: pa.Schema
    schema: pa.Schema
    upserts: bool

    def whole(self, stored: pa.Table, listed: Callable[[str], pa.Array]) -> pa.Table:
        """Return rows with all columns: ``listed`` returns the values of a column of the list for ``stored`` rows."""
        columns = []
        for field in self.schema:
            if field.name == KIND:
                columns.append(kinds_in_arrow(stored[OP], upserts=self.upserts))
            elif field.name in self.stored.names:
                columns.append(stored[field.name])
            else:
                columns.append(listed(field.name).cast(field.type))
        return pa.table(columns, schema=self.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFiles:
    """Reads the ``rows`` of the listed files of table ``name`` with ``read_file``; picklable."""

    name: str
    read_file: ReadFile
    rows: FileRows

    def __call__(self, batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
        uncounted = 0
        for batch in batches:
            uncounted -= batch.num_rows  # Spark has already counted one row per path
            for index, path in enumerate(batch.column(FILE).to_pylist()):
                for stored, size in self.read_file(path, self.rows.stored, self.name):
                    uncounted += size
                    yield self.rows.whole(stored, _repeated(batch, index, size))
        report.metrics.append(uncounted)


def _repeated(batch: pa.RecordBatch, row: int, size: int) -> Callable[[str], pa.Array]:
    return lambda column: pa.repeat(batch.column(column)[row], size)

"""Marks: the progress of event time in the sources of a batch, on the way to the operators that go by it.

A mark is the highest value of a watermark's base among the rows of a source in a batch, in ms. A source may have
splits, such as the partitions of a topic, with a mark each. A task notes the marks of its rows before any filter, and
sends them to all partitions of the next operator that goes by the watermark. An operator below sends its own watermark
as its mark.

Rows in Spark carry marks in the columns of ``MARK_COLUMNS``; rows in Arrow carry none, because the task notes marks
while it reads them. Knows no Spark and no delays.

>>> marks: Marks = {}
>>> note(marks, 3, "0", 1_000), note(marks, 3, "1", 700), note(marks, 3, "0", 900)
(None, None, None)
>>> encode_marks(marks)
b'[[3,"0",1000],[3,"1",700]]'
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.errors import RunError
from hintplan.plans.text.nulls import rowtime_hint, rowtime_message
from hintplan.runtime.operator import DELETE, KIND, NEVER

Marks = dict[tuple[int, str | None], int | None]
"""The marks of a task, by the number of the source and its split.

The split of a source without splits is ``""``, and None stands for all splits of a source that has ended. The mark of
rows whose base is NULL is NEVER. None is the mark of an operator whose sources are all idle.
"""

SOURCE, SPLIT, MARK, KEEP = "__source", "__split", "__mark", "__keep"
LAST = "__last"
"""The column of rows in Spark, below a watermark assigner, that is true in the last row of a source with an end."""
MARK_COLUMNS = pa.schema([(SOURCE, pa.int32()), (SPLIT, pa.string()), (MARK, pa.int64()), (KEEP, pa.bool_())])
"""The mark of a row in Spark: its source, if the row has a mark, the split and the value; and whether the row counts.

A row that a filter has dropped, or that never was one, only has its mark. The mark of an idle operator has no split.
"""


def note(marks: Marks, source: int, split: str | None, mark: int | None) -> None:
    """Add a mark to ``marks``, where the highest of a split stays."""
    known = marks.get((source, split))
    marks[source, split] = mark if known is None or mark is None else max(known, mark)


def encode_marks(marks: Marks) -> bytes:
    """Return ``marks`` as they travel in a packed row."""
    return json.dumps([[*place, mark] for place, mark in marks.items()], separators=(",", ":")).encode()


def decode_marks(data: bytes | pa.Buffer, marks: Marks) -> None:
    """Add the marks in ``data`` to ``marks``."""
    for source, split, mark in json.loads(bytes(data)):
        note(marks, source, split, mark)


def take_marks(rows: pa.Table, marks: Marks) -> pa.Table:
    """Note the marks of ``rows`` that come from Spark, and return the rows that count, without these columns."""
    marked = rows.select([SOURCE, SPLIT, MARK])
    if marked[SOURCE].null_count:
        marked = marked.filter(pc.is_valid(marked[SOURCE]))
    if marked.num_rows:
        highest = marked.group_by([SOURCE, SPLIT], use_threads=False).aggregate([(MARK, "max")])
        for source, split, mark in zip(*(column.to_pylist() for column in highest.columns), strict=True):
            note(marks, source, split or "", mark if mark is not None or split is None else NEVER)
    kept, data = rows[KEEP], rows.drop_columns(MARK_COLUMNS.names)
    return data if pc.all(kept).as_py() else data.filter(kept)


def give_marks(rows: pa.Table) -> pa.Table:
    """Return ``rows`` that count in the form that Spark has them; their marks are noted already."""
    for field in MARK_COLUMNS:
        column = pa.repeat(True, rows.num_rows) if field.name == KEEP else pa.nulls(rows.num_rows, field.type)
        rows = rows.append_column(field, column)
    return rows


def mark_rows(marks: Marks, schema: pa.Schema) -> pa.Table:
    """Return ``marks`` as rows that Spark has, whose data columns, with ``schema``, are NULL."""
    rows = [(source, None if mark is None else split, mark, False) for (source, split), mark in marks.items()]
    columns = [pa.nulls(len(marks), field.type) for field in schema]
    columns += [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(MARK_COLUMNS)]
    return pa.Table.from_arrays(columns, schema=pa.schema([*schema, *MARK_COLUMNS]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Marking:
    """Notes the marks of rows in Arrow, for a watermark assigner; picklable.

    ``column`` is the rowtime, and ``base`` computes the base of the watermark. ``source`` is the assigner's number. If
    the rows have the column ``split``, it is their split, and is dropped.
    """

    operator: str
    column: str
    base: Callable[[pa.Table], pa.Array | pa.ChunkedArray]
    source: int
    split: str | None = None

    def __call__(self, rows: pa.Table, marks: Marks) -> pa.Table:
        """Note the marks of ``rows``, and return the rows; RunError if the rowtime of one is NULL.

        A deletion may have the key only.
        """
        if rows[self.column].null_count and _is_missing(rows, self.column):
            raise RunError(rowtime_message(self.operator, self.column), hint=rowtime_hint(self.column))
        if not rows.num_rows:
            return rows if self.split is None else rows.drop_columns(self.split)
        micros = self.base(rows).cast(pa.int64())
        if self.split is None:
            note(marks, self.source, "", _millis(pc.max(micros).as_py()))
            return rows
        splits = pa.table({SPLIT: rows[self.split], MARK: micros})
        highest = splits.group_by(SPLIT, use_threads=False).aggregate([(MARK, "max")])
        for split, mark in zip(highest[SPLIT].to_pylist(), highest[f"{MARK}_max"].to_pylist(), strict=True):
            note(marks, self.source, split, _millis(mark))
        return rows.drop_columns(self.split)


def _is_missing(rows: pa.Table, column: str) -> bool:
    """Return True if ``column`` is NULL in a row that is no deletion."""
    missing = pc.is_null(rows[column])
    if KIND in rows.column_names:
        missing = pc.and_(missing, pc.not_equal(rows[KIND], DELETE))
    return bool(pc.any(missing).as_py())


def _millis(micros: int | None) -> int:
    return NEVER if micros is None else micros // 1000

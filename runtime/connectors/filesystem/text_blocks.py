r"""Blocks of whole records of CSV and JSON files: how to cut a file into them, and how to read one with Arrow.

A block is read as Spark's reader reads it, with the options of :mod:`hintplan.runtime.connectors.filesystem.read`, or
not at all: then the answer is None, and Spark must read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from hintplan.plans.connectors.files.csv_marks import delimiter_of, is_quoted, may_break_lines
from hintplan.plans.connectors.files.formats import ignores_parse_errors, stored_columns
from hintplan.plans.connectors.table import option
from hintplan.plans.declarations.tables import Table
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.filesystem import csv_blocks, json_blocks
from hintplan.runtime.connectors.filesystem.csv_blocks import CsvForm, read_csv_block
from hintplan.runtime.connectors.filesystem.csv_records import ends_of_records
from hintplan.runtime.connectors.filesystem.json_blocks import JsonForm, read_json_block
from hintplan.runtime.connectors.filesystem.row_kinds import OP
from hintplan.runtime.connectors.text_values import are_of_form

ReadBlock = Callable[[bytes | memoryview], pa.Table | None]
"""Returns the records of a block, in their order, or None if Spark might read one of them differently."""

_CORRUPT_IN_SPARK = "_corrupt_record"
"""Spark does not read a column of this name from a file."""


def block_reader(table: Table, columns: Sequence[str]) -> ReadBlock | None:
    """Return a function that reads ``columns`` of blocks of ``table``, or None if only Spark can read them.

    All ``columns`` are fields of the files. For a changelog, the text of field ``op`` is the last column. The function
    can be sent to workers.
    """
    form = _form(table, columns)
    if isinstance(form, CsvForm):
        return partial(read_csv_block, form=form)
    return None if form is None else partial(read_json_block, form=form)


def _form(table: Table, columns: Sequence[str]) -> CsvForm | JsonForm | None:
    """Return the form of the records of ``table``, or None if only Spark can read them."""
    stored = {column.name: parse_type(column.type) for column in stored_columns(table)}
    wanted = tuple(columns)
    if option(table, "source.changelog") != "false":
        if OP in stored:
            return None
        stored[OP] = DataType(root="STRING")
        wanted += (OP,)
    if not stored or _CORRUPT_IN_SPARK in stored or not set(wanted) <= set(stored):
        return None
    # With ignore-parse-errors, a wrong value in any column may drop the row. Without columns, one counts the rows.
    read = tuple(stored) if ignores_parse_errors(table) else wanted or tuple(stored)[:1]
    if any(stored[field].root == "TIME" for field in read):
        return None
    if table.options["format"] == "json":
        json = JsonForm(read=read, types=tuple(stored[field] for field in read), wanted=wanted)
        return json if json_blocks.is_readable(json) else None
    csv = csv_form(table, stored, read, wanted)
    return csv if csv_blocks.is_readable(csv) else None


def plain_records(
    table: Table, columns: Sequence[str], data: bytes, ends: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any] | None:
    """Return which records of ``data`` have a form that a block can have; None if that is unknown.

    ``ends`` are the positions behind all records. A few of these records may still make a block unreadable.
    """
    form = _form(table, columns)
    if form is None or len(data) > csv_blocks.LARGEST_BLOCK:
        return None
    if isinstance(form, CsvForm):
        pattern = csv_blocks.plain_record(form)
    else:
        pattern = json_blocks.plain_record(form, data[: int(ends[-1])].split(b"\n", 50))
    try:
        return are_of_form(data, ends, pattern)
    except pa.ArrowInvalid:  # too long for the library of regular expressions
        return None


def csv_form(table: Table, stored: dict[str, DataType], read: Sequence[str], wanted: Sequence[str]) -> CsvForm:
    """Return the form of the records of a CSV file with the fields ``stored``."""
    quote = (option(table, "csv.quote-character") or "") if is_quoted(table) else ""
    return CsvForm(
        fields=tuple(stored),
        types=tuple(stored.values()),
        read=tuple(read),
        wanted=tuple(wanted),
        delimiter=delimiter_of(table),
        quote=quote,
        escape=(option(table, "csv.escape-character") or quote) if quote else "",
        comments=option(table, "csv.allow-comments") == "true",
        null_literal=option(table, "csv.null-literal"),
        breaks_lines=may_break_lines(table),
    )


def record_ends(table: Table, data: bytes | memoryview) -> np.ndarray[Any, Any]:
    r"""Return the positions behind the records of ``data`` that end in it, for data that begin with a record.

    A carriage return at the end of ``data`` ends no line, because the next character may be a line feed.
    """
    data = bytes(data)
    if may_break_lines(table):
        return ends_of_records(data, csv_form(table, {}, (), ()))
    marks = np.frombuffer(data, np.uint8)
    ends = marks == ord("\n")
    if b"\r" in data:
        ends[:-1] |= (marks[:-1] == ord("\r")) & (marks[1:] != ord("\n"))
    return np.flatnonzero(ends) + 1


def last_record_end(table: Table, data: bytes | memoryview) -> int:
    """Return the position behind the last record that ends in ``data``, or 0 if none does."""
    if not may_break_lines(table):
        data = bytes(data)
        return max(data.rfind(b"\n"), data.rfind(b"\r", 0, max(len(data) - 1, 0))) + 1
    ends = record_ends(table, data)
    return int(ends[-1]) if ends.size else 0

"""Finds the first line of a text file that does not fit its table, and its wrong column; Spark reports neither."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from hintplan.plans.connectors.files.csv_marks import may_break_lines
from hintplan.plans.connectors.files.formats import TEXTS
from hintplan.plans.connectors.table import option
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.filesystem.csv_files import last_column, with_last_as_text
from hintplan.runtime.connectors.filesystem.read import CORRUPT, has_undeclared_partitions, is_wrong
from hintplan.runtime.connectors.filesystem.row_kinds import OP
from hintplan.runtime.connectors.filesystem.source_files import load_batch
from hintplan.runtime.connectors.filesystem.spark_options import read_options
from hintplan.runtime.connectors.filesystem.stored import stored_schema
from hintplan.runtime.spark.explanation import WrongLine
from hintplan.runtime.spark.names import quoted


def first_wrong_line(spark: SparkSession, table: Table, file: str) -> WrongLine | None:
    """Return the first line of ``file`` that does not fit ``table``; None if all fit or the file is not the table's."""
    file_format = table.options["format"]
    path = os.path.abspath(re.sub("^file:(//)?", "", table.options["path"]))
    if file_format not in TEXTS or path not in (file, *map(str, Path(file).parents)):
        return None
    schema = stored_schema(table)
    if option(table, "source.changelog") != "false":
        schema = schema.add(OP, StringType())
    last = None
    if may_break_lines(table) and not has_undeclared_partitions(spark, table):
        schema, last = with_last_as_text(schema), last_column(schema, table)
    reader = spark.read.format(file_format).options(**read_options(table, breaks_lines=last is not None))
    field_names = schema.fieldNames()
    reader = reader.schema(schema.add(CORRUPT, StringType()))
    reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    # If only the last column is wrong, the line is put together again from the columns, which Spark has read as they
    # are.
    fields = [F.coalesce(F.col(quoted(field)).cast("string"), F.lit("")) for field in field_names]
    line = F.coalesce(F.col(CORRUPT), F.concat_ws(option(table, "csv.field-delimiter") or ",", *fields))
    read = [F.col(quoted(field)).isNotNull().alias(field) for field in field_names]
    wrong = load_batch(spark, reader, file).where(is_wrong(last)).limit(1)
    for row in wrong.select(*read, line.alias(CORRUPT)).collect():
        text = str(row[CORRUPT]).rstrip("\r\n")
        lacking = [field for field in field_names if not row[field]] or ([] if last is None else [last.name])
        return WrongLine(
            format=file_format, text=text, column=_wrong_column(table, file_format, text, field_names, lacking)
        )
    return None


def _wrong_column(table: Table, chosen: str, text: str, names: Sequence[str], lacking: Sequence[str]) -> str:
    """Return the first column in ``lacking`` for which the line has a value, with its type and value; empty if none."""
    try:
        if chosen == "json":
            fields = json.loads(text)
        else:
            delimiter = option(table, "csv.field-delimiter") or ","
            fields = dict(zip(names, next(csv.reader([text], delimiter=delimiter)), strict=False))
    except (ValueError, TypeError, csv.Error, StopIteration):  # csv rejects a longer delimiter, for example
        return ""
    if not isinstance(fields, dict):
        return ""
    types = {column.name: column.type for column in table.columns}
    for name in lacking:
        if name in types and fields.get(name) not in (None, ""):
            value = fields[name] if isinstance(fields[name], str) else json.dumps(fields[name])
            return f"'{name}' is {types[name]}, and has {value}"
    return ""

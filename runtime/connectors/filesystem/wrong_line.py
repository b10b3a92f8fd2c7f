"""Finds the first line of a text file that does not fit its table, and which column it is, as Spark does not say."""

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

from hintplan.plans.connectors.files.formats import TEXTS
from hintplan.plans.connectors.table import option
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.filesystem.csv_files import last_column, may_break_lines, with_last_as_text
from hintplan.runtime.connectors.filesystem.read import CORRUPT, has_undeclared_partitions, is_wrong
from hintplan.runtime.connectors.filesystem.row_kinds import OP
from hintplan.runtime.connectors.filesystem.source_files import load_batch
from hintplan.runtime.connectors.filesystem.spark_options import read_options
from hintplan.runtime.connectors.filesystem.stored import stored_schema
from hintplan.runtime.spark.explanation import WrongLine
from hintplan.runtime.spark.names import quoted


def wrong_line(spark: SparkSession, table: Table, file: str) -> WrongLine | None:
    """The first line of ``file`` that does not fit ``table``; None if it has none or is not its own."""
    chosen = table.options["format"]
    path = os.path.abspath(re.sub("^file:(//)?", "", table.options["path"]))
    if chosen not in TEXTS or path not in (file, *map(str, Path(file).parents)):
        return None
    schema = stored_schema(table)
    if option(table, "source.changelog") != "false":
        schema = schema.add(OP, StringType())
    last = None
    if may_break_lines(table) and not has_undeclared_partitions(spark, table):
        schema, last = with_last_as_text(schema), last_column(schema, table)
    reader = spark.read.format(chosen).options(**read_options(table, breaks_lines=last is not None))
    names = schema.fieldNames()
    reader = reader.schema(schema.add(CORRUPT, StringType()))
    reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    # A row whose last column is wrong is put together again; Spark has kept the others as they are.
    fields = [F.coalesce(F.col(quoted(field)).cast("string"), F.lit("")) for field in names]
    line = F.coalesce(F.col(CORRUPT), F.concat_ws(option(table, "csv.field-delimiter") or ",", *fields))
    read = [F.col(quoted(field)).isNotNull().alias(field) for field in names]
    wrong = load_batch(spark, reader, file).where(is_wrong(last)).limit(1)
    for row in wrong.select(*read, line.alias(CORRUPT)).collect():
        text = str(row[CORRUPT]).rstrip("\r\n")
        lacking = [field for field in names if not row[field]] or ([] if last is None else [last.name])
        return WrongLine(format=chosen, text=text, column=_wrong_column(table, chosen, text, names, lacking))
    return None


def _wrong_column(table: Table, chosen: str, text: str, names: Sequence[str], lacking: Sequence[str]) -> str:
    """The first column that a line has a value for and Spark has ``lacking``, with both; empty if none is."""
    try:
        if chosen == "json":
            found = json.loads(text)
        else:
            delimiter = option(table, "csv.field-delimiter") or ","
            found = dict(zip(names, next(csv.reader([text], delimiter=delimiter)), strict=False))
    except (ValueError, TypeError, csv.Error, StopIteration):  # a delimiter of several characters among them
        return ""
    if not isinstance(found, dict):
        return ""
    types = {column.name: column.type for column in table.columns}
    for name in lacking:
        if name in types and found.get(name) not in (None, ""):
            value = found[name] if isinstance(found[name], str) else json.dumps(found[name])
            return f"'{name}' is {types[name]}, and has {value}"
    return ""

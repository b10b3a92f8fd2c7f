r"""CSV files whose quoted fields may contain line breaks, and checks for values that CSV cannot represent.

Unless ``lineSep`` is set, Spark takes the first line break of such a file as its line separator, even one in quotes. So
``lineSep`` is ``\n``. In a file with ``\r\n``, the last column of each row then ends with ``\r``: Spark reads that
column as text, and this module converts it. A table without text columns has no such rows: Spark reads its files line
by line, and splits large ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from hintplan.plans.connectors.files.csv_marks import delimiter_of, is_quoted
from hintplan.plans.connectors.files.formats import stored_columns
from hintplan.plans.connectors.table import option
from hintplan.plans.declarations.tables import Table
from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.spark.names import quoted

LINE_BREAK = "\n"

_NO_NUMBER = "[\r\n\0]"
_ONE_FIELD = {"sep": "\uffff", "quote": "", "mode": "PERMISSIVE"}
"""Options with which Spark reads a whole text as one field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastColumn:
    """The last column of the rows: its name, its value or NULL, its source text, and whether that text is invalid."""

    name: str
    value: Column
    text: Column
    is_wrong: Column


def with_last_as_text(schema: StructType) -> StructType:
    """Return ``schema`` with a text type for the last column."""
    *leading, last = schema.fields
    return StructType([*leading, StructField(last.name, StringType())])


def last_column(schema: StructType, table: Table, raw: Column | None = None) -> LastColumn:
    """Return the last column of ``schema``, for rows that were read with the schema of :func:`with_last_as_text`.

    ``raw`` is the text in these rows.
    """
    field = schema.fields[-1]
    raw = F.col(quoted(field.name)) if raw is None else raw
    text = F.when(F.endswith(raw, F.lit("\r")), _without_last(raw, table)).otherwise(raw)
    if isinstance(field.dataType, StringType):
        return LastColumn(name=field.name, value=text, text=text, is_wrong=F.lit(False))
    value = _parsed(text, field.dataType)
    return LastColumn(name=field.name, value=value, text=text, is_wrong=text.isNotNull() & value.isNull())


def or_failure(last: LastColumn, schema: StructType, file: Column) -> Column:
    """Return the value of ``last``; an invalid text fails the run with the same error as Spark's own parser."""
    message = F.concat(
        F.lit("[MALFORMED_RECORD_IN_PARSING] Encountered error while reading file "),
        file,
        F.lit(f". Column {last.name} is not {schema.fields[-1].dataType.simpleString()}: "),
        last.text,
    )
    kind = schema.fields[-1].dataType
    return F.when(last.is_wrong, F.raise_error(message).cast(kind)).otherwise(last.value)


def as_rows(rows: DataFrame, name: str, table: Table) -> DataFrame:
    """Return ``rows`` with checks that fail the run at a value that a reader of the file would not read back."""
    columns = stored_columns(table)
    if len(columns) == 1 and option(table, "sink.changelog") != "true" and not option(table, "csv.null-literal"):
        (only,) = columns
        value = F.col(quoted(only.name))
        message = (
            f"table {name}: column {only.name} is NULL, which would be an empty line, and readers skip those; set"
            " 'csv.null-literal'"
        )
        failure = F.raise_error(F.lit(message)).cast(rows.schema[only.name].dataType)
        rows = rows.withColumn(only.name, F.coalesce(value, failure))
    if is_quoted(table):
        return rows
    delimiter = delimiter_of(table)
    special = f"\r\n\0{delimiter}{option(table, 'csv.escape-character') or ''}"
    texts = {
        column.name: _plain(F.col(quoted(column.name)), name, column.name, delimiter, special)
        for column in columns
        if parse_type(column.type).is_text
    }
    return rows.withColumns(texts) if texts else rows  # Spark Connect rejects an empty dict


def _without_last(text: Column, table: Table) -> Column:
    """Return ``text`` without its last character, or NULL if the remainder represents NULL."""
    shortened = F.nullif(F.substring(text, F.lit(1), F.length(text) - 1), F.lit(""))
    literal = option(table, "csv.null-literal")
    return F.nullif(shortened, F.lit(literal)) if literal else shortened


def _parsed(text: Column, kind: DataType) -> Column:
    """Return ``text`` parsed as a CSV field by Spark, or NULL if it is not a value of type ``kind``."""
    parsed = F.from_csv(text, f"value {kind.simpleString()}", _ONE_FIELD)["value"]
    return F.when(~F.rlike(text, F.lit(_NO_NUMBER)), parsed)


def _plain(text: Column, name: str, column: str, delimiter: str, special: str) -> Column:
    message = (
        f"table {name}: a text of column {column} has a line break or {delimiter!r} in it, and"
        " 'csv.disable-quote-character' leaves no quotes to put it in: "
    )
    is_plain = F.translate(text, special, "") == text
    failure = F.raise_error(F.concat(F.lit(message), F.substring(text, 1, 40))).cast("string")
    return F.when(text.isNull() | is_plain, text).otherwise(failure)

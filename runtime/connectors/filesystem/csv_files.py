"""Files of CSV whose texts may have line breaks in quotes, and values that no row of CSV can be.

Unless it is told where rows end, Spark takes the first line break of such a file for it, even one in quotes. So rows
end at ``\\n``. In a file whose lines end with ``\\r\\n``, the last column of each row then has the ``\\r``: Spark reads
that column as text, and this module converts it. A table without text has no such rows: Spark reads its files line by
line, large ones in pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from hintplan.plans.connectors.files.formats import stored_columns
from hintplan.plans.connectors.table import option
from hintplan.plans.declarations.tables import Table
from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.spark.names import quoted

LINE_BREAK = "\n"

_NO_NUMBER = "[\r\n\0]"
_ONE_FIELD = {"sep": "\uffff", "quote": "", "mode": "PERMISSIVE"}
"""Options with which Spark takes a whole text for one field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastColumn:
    """The last column of rows: its name, its value or NULL, the text it is made of, and where that is no value."""

    name: str
    value: Column
    text: Column
    is_wrong: Column


def is_quoted(table: Table) -> bool:
    """Return whether fields may be in quotes."""
    return option(table, "csv.disable-quote-character") != "true"


def may_break_lines(table: Table) -> bool:
    """Return whether a row of the table's files may have line breaks in it."""
    texts = any(parse_type(column.type).is_text for column in stored_columns(table))
    return table.options["format"] == "csv" and is_quoted(table) and texts


def with_last_as_text(schema: StructType) -> StructType:
    """Return ``schema`` with text in place of the type of the last column."""
    *others, last = schema.fields
    return StructType([*others, StructField(last.name, StringType())])


def last_column(schema: StructType, table: Table) -> LastColumn:
    """Return the last column of ``schema`` for rows that were read by :func:`with_last_as_text`."""
    field = schema.fields[-1]
    found = F.col(quoted(field.name))
    text = F.when(F.endswith(found, F.lit("\r")), _without_last(found, table)).otherwise(found)
    if isinstance(field.dataType, StringType):
        return LastColumn(name=field.name, value=text, text=text, is_wrong=F.lit(False))
    value = _parsed(text, field.dataType)
    return LastColumn(name=field.name, value=value, text=text, is_wrong=text.isNotNull() & value.isNull())


def or_failure(last: LastColumn, schema: StructType, file: Column) -> Column:
    """Return the value of ``last``, which fails the run as Spark's own parser would if it is wrong."""
    message = F.concat(
        F.lit("[MALFORMED_RECORD_IN_PARSING] Encountered error while reading file "),
        file,
        F.lit(f". Column {last.name} is not {schema.fields[-1].dataType.simpleString()}: "),
        last.text,
    )
    kind = schema.fields[-1].dataType
    return F.when(last.is_wrong, F.raise_error(message).cast(kind)).otherwise(last.value)


def as_rows(rows: DataFrame, name: str, table: Table) -> DataFrame:
    """Return ``rows``, which fail the run if one of them has a value that its line would not bring back."""
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
    delimiter = (option(table, "csv.field-delimiter") or ",").replace("\\t", "\t")
    special = f"\r\n\0{delimiter}{option(table, 'csv.escape-character') or ''}"
    texts = {
        column.name: _plain(F.col(quoted(column.name)), name, column.name, delimiter, special)
        for column in columns
        if parse_type(column.type).is_text
    }
    return rows.withColumns(texts) if texts else rows  # Spark Connect takes no empty one


def _without_last(text: Column, table: Table) -> Column:
    """Return ``text`` without its last character; NULL if that leaves what means NULL."""
    rest = F.nullif(F.substring(text, F.lit(1), F.length(text) - 1), F.lit(""))
    literal = option(table, "csv.null-literal")
    return F.nullif(rest, F.lit(literal)) if literal else rest


def _parsed(text: Column, kind: DataType) -> Column:
    """Return ``text`` as Spark's parser of CSV reads a field, or NULL if it is no value of ``kind``."""
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

"""The filesystem connector: directories of CSV, JSON or Parquet files, read as streams and appended to.

Reading: each file is read once, in order of modification time; new files are picked up as they appear, and a file that
arrives with an old time stamp is not skipped. A row that does not fit the columns fails the run; with
``ignore-parse-errors`` a field that cannot be read becomes NULL, and a row of which nothing can be read is skipped.
An empty CSV field is NULL, an empty quoted one is the empty string. Spark records the names of the files in the
checkpoint, so a path may come from the environment, but must not hold a secret.

Writing: Spark's own file sink, exactly once per checkpoint. Text formats write timestamps as Flink does
(``2020-01-01 00:00:00.000000``, with a ``Z`` for TIMESTAMP_LTZ) and NULL as ``null`` in JSON, as nothing in CSV unless
``csv.null-literal`` is set. A changelog needs ``'sink.changelog' = 'true'`` and gains a last column ``op`` with
``+I``, ``-U``, ``+U`` or ``-D``.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StringType

from plans.connectors import option
from plans.errors import RunError
from plans.model import Table
from runtime.connectors.schema import physical_schema
from runtime.operator import KIND
from runtime.secrets import resolve

__all__ = ["read", "writer"]

OP = "op"
_CORRUPT = "__corrupt"
_EVERY_AGE = "36500d"


def read(spark: SparkSession, name: str, table: Table, columns: tuple[str, ...]) -> DataFrame:
    """The files of ``table`` as a stream of ``columns``; RunError if the path does not exist."""
    schema = physical_schema(table)
    chosen = table.options["format"]
    lenient = chosen != "parquet" and option(table, f"{chosen}.ignore-parse-errors") == "true"
    reader = spark.readStream.format(chosen)
    if chosen == "csv":
        # Spark takes what nullValue stands for, "" by default, for NULL even in quotes; no file has this one.
        reader = reader.option("nullValue", "\0")
    reader = reader.options(**_format_options(table))
    reader = reader.option("maxFileAge", _EVERY_AGE)  # by default, files older than the newest by a week are dropped
    if files := table.options.get("source.max-files-per-trigger"):
        reader = reader.option("maxFilesPerTrigger", files)
    if lenient:
        schema = schema.add(_CORRUPT, StringType())
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", _CORRUPT)
    elif chosen != "parquet":
        reader = reader.option("mode", "FAILFAST")
    try:
        rows = reader.schema(schema).load(resolve(table.options["path"]))
        rows.schema.fieldNames()  # on Spark Connect, only asking for the schema makes the server look at the path
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise RunError(
            f"table {name} cannot be read: there is nothing at {table.options['path']!r}",
            hint="create the directory, or correct the path; a relative path starts where the run starts",
            path=f"tables.{name}.options.path",
        ) from error
    if lenient:
        readable = [F.col(_quoted(field)).isNotNull() for field in schema.fieldNames() if field != _CORRUPT]
        some = readable[0]
        for one in readable[1:]:
            some = some | one
        rows = rows.where(F.col(_CORRUPT).isNull() | some)
    return rows.select(*(_quoted(column) for column in columns))


def writer(
    df: DataFrame, name: str, table: Table, *, changelog: bool, checkpoint: str | None = None
) -> DataStreamWriter:
    """A writer that appends files below the table's path; RunError for a changelog without ``sink.changelog``."""
    if option(table, "sink.changelog") == "true":
        df = _with_op(df, changelog)
    elif changelog:
        raise RunError(
            f"table {name} cannot take updates: files only grow",
            hint="set 'sink.changelog' = 'true' to write every change as a row with its kind in a column 'op'",
            path=f"tables.{name}.options.sink.changelog",
        )
    chosen = table.options["format"]
    out = df.writeStream.format(chosen).outputMode("append").option("path", resolve(table.options["path"]))
    if chosen != "parquet":
        out = out.option("timestampNTZFormat", "yyyy-MM-dd HH:mm:ss.SSSSSS").option("timeZone", "UTC")
        out = out.option("timestampFormat", "yyyy-MM-dd HH:mm:ss.SSSSSSXXX")
    if chosen == "json":
        out = out.option("ignoreNullFields", "false")
    return out.options(**_format_options(table))


def _with_op(df: DataFrame, changelog: bool) -> DataFrame:
    if not changelog:
        return df.withColumn(OP, F.lit("+I"))
    names = F.array(*(F.lit(kind) for kind in ("+I", "-U", "+U", "-D")))
    data = [_quoted(column) for column in df.columns if column != KIND]
    return df.select(*data, F.element_at(names, F.col(KIND).cast("int") + 1).alias(OP))


def _format_options(table: Table) -> dict[str, str]:
    """Spark's options for the table's ``csv.*`` options; the quote is doubled to escape it, as RFC 4180 has it."""
    if table.options["format"] != "csv":
        return {}
    quote = "" if option(table, "csv.disable-quote-character") == "true" else option(table, "csv.quote-character") or ""
    options = {
        "sep": (option(table, "csv.field-delimiter") or ",").replace("\\t", "\t"),
        "quote": quote,
        "escape": option(table, "csv.escape-character") or quote,
    }
    if (literal := option(table, "csv.null-literal")) is not None:
        options["nullValue"] = literal
    if option(table, "csv.allow-comments") == "true":
        options["comment"] = "#"
    return options


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

"""The formats of files, their options under Flink's names, and the column types that each can hold.

>>> table = Table(columns=(), options={"path": "/o", "format": "json", "csv.null-literal": "-"})
>>> print(*check_format("tables.orders.options", table))
tables.orders.options.csv.null-literal: 'csv.null-literal' belongs to the format csv, but the table's format is json
  hint: remove it, or write 'format' = 'csv'
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from hintplan.plans.connectors.columns import BINARY, NESTED, avro_misfit, physical, refuse_types, with_other_keys
from hintplan.plans.connectors.files.csv_marks import why_spark_splits
from hintplan.plans.connectors.options import option
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import Diagnostic
from hintplan.plans.settings.setting import Setting

FORMATS = ("csv", "json", "parquet", "orc", "avro", "raw")

TEXTS = ("csv", "json")
"""The text formats. A field of such a file may not parse as its column's type."""

AVRO_PACKAGE = "org.apache.spark:spark-avro_2.13"
"""The package with which Spark writes Avro files. PySpark does not include it."""

_IGNORE_PARSE_ERRORS = "true: values that cannot be read become NULL; false: such a row fails the run."
_UNREAD = "unreadable values become NULL without a warning"

FORMAT_OPTIONS: tuple[Setting, ...] = (
    *(
        option(f"{name}.ignore-parse-errors", "bool", default="false", description=_IGNORE_PARSE_ERRORS, loses=_UNREAD)
        for name in ("json", "csv")
    ),
    option(
        "csv.field-delimiter",
        "character",
        default=",",
        description="The delimiter between fields: one character, or \\t.",
    ),
    option(
        "csv.quote-character",
        "character",
        default='"',
        description="The quote character around fields; doubled inside them.",
    ),
    option("csv.disable-quote-character", "bool", default="false", description="true: fields are never quoted."),
    option(
        "csv.escape-character",
        "character",
        description="The escape character; the quote character if absent.",
    ),
    option("csv.allow-comments", "bool", default="false", description="true: lines that start with # are skipped."),
    option("csv.null-literal", description="The text that means NULL."),
    option(
        "parquet.compression",
        "choice",
        choices=("snappy", "gzip", "zstd", "lz4", "uncompressed"),
        default="snappy",
        description="The compression of Parquet files.",
    ),
    option(
        "orc.compress",
        "choice",
        choices=("zstd", "zlib", "snappy", "lz4", "none"),
        default="zstd",
        description="The compression of ORC files.",
    ),
    option(
        "avro.codec",
        "choice",
        choices=("snappy", "deflate", "zstandard", "bzip2", "xz", "null"),
        default="snappy",
        description="The compression of Avro files.",
    ),
    option(
        "avro.timestamp_mapping.legacy",
        "bool",
        default="true",
        description="true: TIMESTAMP is timestamp-millis in Avro; false: local-timestamp-millis.",
    ),
)

_MOST_SCALE = 18
"""The maximum scale of a DECIMAL for which Arrow computes the same number as Spark from every text."""
_CORRUPT_IN_SPARK = "_corrupt_record"
"""Spark does not read a column of this name from a file."""

_RULES = "a sink closes its files at the end of each micro-batch; set 'source.max-files-per-trigger', or the trigger"
_COMMITS = "each micro-batch commits the partitions to which it adds files; watermarks and policy classes are not used"

IDLE: Mapping[str, str] = {
    "sink.rolling-policy.": _RULES,
    "auto-compaction": "files are left as they were written; repartition them with a batch job",
    "compaction.": "files are left as they were written; repartition them with a batch job",
    "sink.shuffle-by-partition.enable": "each task writes the partitions of its rows",
    "sink.parallelism": "as many tasks write as make the rows",
    "source.monitor-interval": "a stream looks for new files before each micro-batch, and a batch job once",
    "source.report-statistics": "Spark has statistics of its own",
}
"""Options of Flink's connector that change no row, and the reason why they have no effect.

A key that ends in a dot includes all options with this prefix.
"""

REFUSED: Mapping[str, str] = {
    "sink.partition-commit.": _COMMITS,
    "partition.time-extractor.": _COMMITS,
    "source.path.regex-pattern": "all files of the directory are read; choose by METADATA FROM 'file.path' in a query",
    "parquet.utc-timezone": "TIMESTAMP has no time zone in Parquet, and is read and written unchanged",
    "parquet.": "the only setting of Parquet that is supported is 'parquet.compression'",
    "orc.": "the only setting of ORC that is supported is 'orc.compress'",
    "json.encode.decimal-as-plain-number": "DECIMAL is always written without an exponent",
    "json.fail-on-missing-field": "a missing field is NULL",
    "json.timestamp-format.standard": "times are written as in SQL, and read in both forms",
    "raw.charset": "text is UTF-8",
    "raw.endianness": "only text and bytes are read and written, a line each",
}
"""Options of Flink's connector and its formats that are missing here, and the reason.

A key that ends in a dot includes all options with this prefix.
"""

INSTEAD_OF_FORMATS: Mapping[str, str] = {
    **dict.fromkeys(
        ("debezium-json", "canal-json", "maxwell-json", "ogg-json"),
        "write 'json' and 'source.changelog' = 'true' for rows with their kind in a field op; or read a topic",
    ),
    **dict.fromkeys(("avro-confluent", "debezium-avro-confluent"), "write 'avro': a file has its schema"),
    "protobuf": "write 'parquet' or 'avro'; or read a topic",
    **dict.fromkeys(("text", "txt", "string"), "write 'raw' and one column, a line each"),
    "excel": "write 'csv'",
}
"""Hints for file formats that Flink has and this connector lacks."""


def check_format(path: str, table: Table) -> Iterator[Diagnostic]:
    """Yield the problems of format options, and of column types that the files cannot hold."""
    table_format = table.options.get("format", "")
    for key in table.options:
        prefix = key.split(".")[0]
        if prefix in FORMATS and prefix != table_format and table_format in FORMATS:
            yield Diagnostic(
                message=f"{key!r} belongs to the format {prefix}, but the table's format is {table_format}",
                hint=f"remove it, or write 'format' = '{prefix}'",
                path=f"{path}.{key}",
            )
    unquoted = table.options.get("csv.disable-quote-character", "").lower() == "true"
    if unquoted and "csv.quote-character" in table.options:
        yield Diagnostic(
            message="'csv.quote-character' cannot be set when 'csv.disable-quote-character' is true",
            hint="remove one of them",
            path=f"{path}.csv.quote-character",
        )
    if table_format == "csv":
        yield from refuse_types(path, table, NESTED + BINARY, "a CSV file cannot hold", "use json or parquet")
    for column, data_type in _types(table) if table_format == "json" else ():
        if entries := with_other_keys(data_type):
            message = f"column {column.name!r} has a {entries} whose keys are no text, which a JSON file cannot hold"
            yield Diagnostic(message=message, hint="declare them STRING, or use parquet", path=f"{path}.connector")
    if table_format == "raw":
        yield from _check_raw(path, table)
    if table_format in ("orc", "avro"):
        for column, data_type in _types(table):
            yield from _check_type(path, table, column, data_type)


def stored_columns(table: Table) -> tuple[TableColumn, ...]:
    """Return the columns that files hold. Directory names hold the others."""
    return tuple(column for column in physical(table) if column.name not in table.partitioned_by)


def ignores_parse_errors(table: Table) -> bool:
    """Return True if values that cannot be read are NULL; then each column of a row decides whether the row counts."""
    return table.options.get(f"{table.options['format']}.ignore-parse-errors", "").lower() == "true"


def why_spark_parses(table: Table, columns: Collection[str]) -> str | None:
    """Return the reason why Spark reads these columns of a text format, or None if workers can."""
    if table.options["format"] == "csv" and (reason := why_spark_splits(table)) is not None:
        return reason
    stored = {column.name: parse_type(column.type) for column in stored_columns(table)}
    if _CORRUPT_IN_SPARK in stored:
        return f"column {_CORRUPT_IN_SPARK}"
    if not stored.keys() & set(columns) and table.options.get("source.changelog", "false").lower() == "false":
        return "no column of the files is read"
    for name, data_type in stored.items():
        if name not in columns and not ignores_parse_errors(table):
            continue
        if data_type.root == "DECIMAL" and (data_type.scale or 0) > _MOST_SCALE:
            return f"{data_type} column {name}"
    return None


def is_legacy(table: Table) -> bool:
    """Return True if Avro files use Flink's legacy mapping of timestamps."""
    return table.options.get("avro.timestamp_mapping.legacy", "true").lower() == "true"


def _types(table: Table) -> Iterator[tuple[TableColumn, DataType]]:
    for column in stored_columns(table):
        try:
            yield column, parse_type(column.type)
        except ValueError:
            continue  # The column's own check reports a wrong type.


def _check_type(path: str, table: Table, column: TableColumn, data_type: DataType) -> Iterator[Diagnostic]:
    path = f"{path}.format"
    cannot = f"a file of {table.options['format']} cannot hold column {column.name!r} of type {column.type}"
    if _has_multiset(data_type):
        yield Diagnostic(message=cannot, hint="declare its MULTISET as a MAP<..., INT>, or use parquet", path=path)
        return
    if table.options["format"] == "orc":
        if _has_instant(data_type):
            hint = "declare it TIMESTAMP(6), or use parquet"
            yield Diagnostic(message=f"{cannot}: ORC has no TIMESTAMP_LTZ, in Flink neither", hint=hint, path=path)
        return
    if is_legacy(table) and (misfit := avro_misfit(data_type)):
        message = f"{cannot}: Flink maps no {misfit} to its times"
        hint = "declare it TIMESTAMP(3), or set 'avro.timestamp_mapping.legacy' = 'false'"
        yield Diagnostic(message=message, hint=hint, path=path)
    if with_other_keys(data_type):
        yield Diagnostic(message=f"{cannot}: keys of a MAP are text", hint="declare its keys STRING", path=path)
    for name in (column.name, *_names(data_type)):
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            message = f"a file of avro cannot have a field {name!r}: names are letters, digits and underscores"
            yield Diagnostic(message=message, hint="rename it, or use parquet", path=path)


def _has_multiset(data_type: DataType) -> bool:
    return data_type.root == "MULTISET" or any(map(_has_multiset, data_type.children))


def _has_instant(data_type: DataType) -> bool:
    return data_type.root == "TIMESTAMP_LTZ" or any(map(_has_instant, data_type.children))


def _names(data_type: DataType) -> Iterator[str]:
    """Yield the field names of all rows in a type."""
    yield from data_type.names
    for child in data_type.children:
        yield from _names(child)


def _check_raw(path: str, table: Table) -> Iterator[Diagnostic]:
    columns = [column for column, _ in _types(table)]
    if len(columns) != 1:
        listed = ", ".join(column.name for column in columns) or "none"
        yield Diagnostic(
            message=f"a file of raw is one column, a line each, and there are {len(columns)}: {listed}",
            hint="declare one column of STRING, or choose another format",
            path=f"{path}.format",
        )
    for column, data_type in _types(table):
        if not data_type.is_text and data_type.root not in BINARY:
            yield Diagnostic(
                message=f"a file of raw cannot hold column {column.name!r} of type {column.type}",
                hint="declare it STRING or BYTES, and CAST it in the query",
                path=f"{path}.format",
            )
    for key in ("source.changelog", "sink.changelog"):
        if table.options.get(key, "false").lower() != "false":
            yield Diagnostic(
                message=f"{key!r} needs a field op next to the row, which raw lines do not have",
                hint="use json",
                path=f"{path}.{key}",
            )

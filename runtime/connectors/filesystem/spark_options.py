"""The format and the options with which Spark reads and writes the files of a table."""

from __future__ import annotations

import json

from hintplan.plans.connectors.files.csv_marks import delimiter_of, is_quoted
from hintplan.plans.connectors.files.formats import TEXTS, is_legacy, stored_columns
from hintplan.plans.connectors.table import option
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.filesystem.csv_files import LINE_BREAK
from hintplan.runtime.connectors.filesystem.row_kinds import OP
from hintplan.runtime.connectors.messages.avro_values import record_schema

_LONGEST = str(2**31 - 1)
"""The maximum length of a JSON text in bytes; by default, the parser accepts at most 20 million characters."""

_NO_TEXT = "\uffff\ufffe\uffff"
"""Three characters that Unicode never assigns, so that no file contains them."""

_COMPRESSION = {"parquet": "parquet.compression", "orc": "orc.compress", "avro": "avro.codec"}
_CODECS = {("avro", "null"): "uncompressed", ("parquet", "lz4"): "lz4_raw"}
"""Codecs with another name in Spark. Only Hadoop reads Parquet files with the codec that Spark calls lz4."""


def spark_format(table: Table) -> str:
    """Return Spark's name for the format of the files."""
    file_format = table.options["format"]
    return "text" if file_format == "raw" else file_format


def read_options(table: Table, *, breaks_lines: bool) -> dict[str, str]:
    """Return Spark's options for reading: the options of the format, and no limit on the length of JSON texts.

    ``breaks_lines`` makes Spark accept line breaks in the rows of a CSV file.
    """
    # Spark reads the text of nullValue, "" by default, as NULL even in quotes. No CSV file contains this text.
    defaults = {"csv": {"nullValue": _NO_TEXT}, "json": {"maxStringLen": _LONGEST}}
    lines = {"multiLine": "true", "lineSep": LINE_BREAK} if breaks_lines else {}
    return defaults.get(table.options["format"], {}) | lines | _format_options(table)


def write_options(table: Table) -> dict[str, str]:
    """Return Spark's options for writing: the options of the format, with times and NULL written as Flink does."""
    options = {}
    file_format = table.options["format"]
    if file_format in _COMPRESSION:
        codec = option(table, _COMPRESSION[file_format]) or ""
        options["compression"] = _CODECS.get((file_format, codec), codec)
    if file_format == "avro":
        types = {column.name: column.type for column in stored_columns(table)}
        types |= {OP: "STRING"} if option(table, "sink.changelog") == "true" else {}
        options["avroSchema"] = json.dumps(record_schema(types, legacy=is_legacy(table)))
    if file_format in TEXTS:
        options["timestampNTZFormat"] = "yyyy-MM-dd HH:mm:ss.SSSSSS"
        options["timestampFormat"] = "yyyy-MM-dd HH:mm:ss.SSSSSSXXX"
        options["timeZone"] = "UTC"
    if file_format == "json":
        options["ignoreNullFields"] = "false"
    if file_format == "csv":
        # By default, Spark strips blanks and control characters from texts without quotes.
        options |= dict.fromkeys(("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"), "false")
        options["emptyValue"] = _format_options(table)["quote"] * 2
    return options | _format_options(table)


def _format_options(table: Table) -> dict[str, str]:
    """Return Spark's options for the table's ``csv.*`` options; by default, a quote is doubled (RFC 4180)."""
    if table.options["format"] != "csv":
        return {}
    quote = option(table, "csv.quote-character") or "" if is_quoted(table) else ""
    options = {
        "sep": delimiter_of(table),
        "quote": quote,
        "escape": option(table, "csv.escape-character") or quote,
    }
    if (literal := option(table, "csv.null-literal")) is not None:
        options["nullValue"] = literal
    if option(table, "csv.allow-comments") == "true":
        options["comment"] = "#"
    return options

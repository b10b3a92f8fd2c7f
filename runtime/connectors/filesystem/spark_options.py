"""The format and the options of a table as Spark's readers and writers of files have them."""

from __future__ import annotations

import json

from hintplan.plans.connectors.files.formats import TEXTS, is_legacy, stored_columns
from hintplan.plans.connectors.table import option
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.filesystem.csv_files import LINE_BREAK, is_quoted
from hintplan.runtime.connectors.filesystem.row_kinds import OP
from hintplan.runtime.connectors.messages.avro_values import record_schema

_LONGEST = str(2**31 - 1)
"""Bytes of a text; by default, the parser of JSON takes no more than 20 million characters."""

_NO_TEXT = "\uffff\ufffe\uffff"
"""Three characters that Unicode keeps out of texts."""

_COMPRESSION = {"parquet": "parquet.compression", "orc": "orc.compress", "avro": "avro.codec"}
_CODECS = {("avro", "null"): "uncompressed", ("parquet", "lz4"): "lz4_raw"}
"""Codecs that Spark has by another name; what it calls lz4 in Parquet, only Hadoop reads."""


def spark_format(table: Table) -> str:
    """Spark's name for the format of the files."""
    chosen = table.options["format"]
    return "text" if chosen == "raw" else chosen


def read_options(table: Table, *, breaks_lines: bool) -> dict[str, str]:
    """Spark's options for reading: those of the format, without a limit for texts of JSON.

    ``breaks_lines`` makes Spark look for line breaks in rows of CSV.
    """
    # Spark takes what nullValue stands for, "" by default, for NULL even in quotes; no file of CSV has this one.
    defaults = {"csv": {"nullValue": _NO_TEXT}, "json": {"maxStringLen": _LONGEST}}
    lines = {"multiLine": "true", "lineSep": LINE_BREAK} if breaks_lines else {}
    return defaults.get(table.options["format"], {}) | lines | _format_options(table)


def write_options(table: Table) -> dict[str, str]:
    """Spark's options for writing: those of the format, and times and NULL as Flink writes them."""
    options = {}
    chosen = table.options["format"]
    if chosen in _COMPRESSION:
        codec = option(table, _COMPRESSION[chosen]) or ""
        options["compression"] = _CODECS.get((chosen, codec), codec)
    if chosen == "avro":
        types = {column.name: column.type for column in stored_columns(table)}
        types |= {OP: "STRING"} if option(table, "sink.changelog") == "true" else {}
        options["avroSchema"] = json.dumps(record_schema(types, legacy=is_legacy(table)))
    if chosen in TEXTS:
        options["timestampNTZFormat"] = "yyyy-MM-dd HH:mm:ss.SSSSSS"
        options["timestampFormat"] = "yyyy-MM-dd HH:mm:ss.SSSSSSXXX"
        options["timeZone"] = "UTC"
    if chosen == "json":
        options["ignoreNullFields"] = "false"
    if chosen == "csv":
        # By default, Spark cuts blanks and control characters off texts that are not in quotes.
        options |= dict.fromkeys(("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"), "false")
        options["emptyValue"] = _format_options(table)["quote"] * 2
    return options | _format_options(table)


def _format_options(table: Table) -> dict[str, str]:
    """Spark's options for the table's ``csv.*`` options; the quote is doubled to escape it, as RFC 4180 has it."""
    if table.options["format"] != "csv":
        return {}
    quote = option(table, "csv.quote-character") or "" if is_quoted(table) else ""
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

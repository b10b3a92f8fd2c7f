"""The options of a table as Spark's readers and writers of files have them."""

from __future__ import annotations

from plans.connectors.table import option
from plans.declarations.tables import Table

_LONGEST = str(2**31 - 1)
"""Bytes of a text; by default, the parser of JSON takes no more than 20 million characters."""


def read_options(table: Table) -> dict[str, str]:
    """Spark's options for reading: those of the format, without a limit for texts of JSON."""
    # Spark takes what nullValue stands for, "" by default, for NULL even in quotes; no file of CSV has this one.
    defaults = {"csv": {"nullValue": "\0"}, "json": {"maxStringLen": _LONGEST}}
    return defaults.get(table.options["format"], {}) | _format_options(table)


def write_options(table: Table) -> dict[str, str]:
    """Spark's options for writing: those of the format, and times and NULL as Flink writes them."""
    options = {}
    if table.options["format"] != "parquet":
        options["timestampNTZFormat"] = "yyyy-MM-dd HH:mm:ss.SSSSSS"
        options["timestampFormat"] = "yyyy-MM-dd HH:mm:ss.SSSSSSXXX"
        options["timeZone"] = "UTC"
    if table.options["format"] == "json":
        options["ignoreNullFields"] = "false"
    return options | _format_options(table)


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

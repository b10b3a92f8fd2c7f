r"""The characters that separate the fields and records of CSV files, and the characters that workers cannot use.

>>> from hintplan.plans.declarations.tables import Table, TableColumn
>>> options = {"format": "csv", "csv.escape-character": "\\"}
>>> why_spark_splits(Table(columns=(TableColumn(name="s", type="STRING"),), options=options))
'csv.escape-character with texts'
"""

from __future__ import annotations

from hintplan.plans.connectors.columns import physical
from hintplan.plans.declarations.tables import Table
from hintplan.plans.declarations.types import parse_type

_NO_DELIMITERS = ("\r", "\n", "\0", "#")


def is_quoted(table: Table) -> bool:
    """Return True if fields may be in quotes."""
    return table.options.get("csv.disable-quote-character", "").lower() != "true"


def may_break_lines(table: Table) -> bool:
    """Return True if a row of the table's files may contain line breaks."""
    stored = (column for column in physical(table) if column.name not in table.partitioned_by)
    return table.options["format"] == "csv" and is_quoted(table) and any(parse_type(c.type).is_text for c in stored)


def delimiter_of(table: Table) -> str:
    """Return the delimiter between fields."""
    return table.options.get("csv.field-delimiter", ",").replace("\\t", "\t")


def why_spark_splits(table: Table) -> str | None:
    """Return the reason why only Spark can find the fields of a CSV file, or None if workers can.

    If fields may contain line breaks, the ends of records are sure only if quotes are doubled and the delimiter is no
    blank.
    """
    delimiter = delimiter_of(table)
    quote = table.options.get("csv.quote-character", '"') if is_quoted(table) else ""
    escape = table.options.get("csv.escape-character", quote) if quote else ""
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in (*_NO_DELIMITERS, quote, escape):
        return "csv.field-delimiter"
    if not quote.isascii() or quote == "#" or (quote and quote <= " "):
        return "csv.quote-character"
    if not escape.isascii() or len(escape) > 1:
        return "csv.escape-character"
    if may_break_lines(table):
        if escape != quote:
            return "csv.escape-character with texts"
        if delimiter <= " ":
            return "a blank as csv.field-delimiter with texts"
    return None

"""The filesystem connector: files in a directory, whose rows may be changes.

>>> table = Table(columns=(), options={"path": "/o", "format": "json", "csv.null-literal": "-"})
>>> print(*FILESYSTEM.check("tables.orders.options", table))
tables.orders.options.csv.null-literal: 'csv.null-literal' belongs to the format csv, but the table's format is json
  hint: remove it, or write 'format' = 'csv'
>>> _covers("/data", "file:///data/out/"), _covers("/data/out", "/data")
(True, False)
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from plans.connectors.columns import BINARY, NESTED, physical, refuse_types, with_other_keys
from plans.connectors.connector import (
    ALL_KINDS,
    INSERT_ONLY,
    UPSERT_KINDS,
    Connector,
    LookingUp,
    MetadataKey,
    Reading,
    Writing,
)
from plans.connectors.options import option
from plans.connectors.reach import file_place
from plans.declarations.row_kinds import RowKind
from plans.declarations.tables import Table
from plans.declarations.types import parse_type
from plans.errors import Diagnostic

_SOURCE_KINDS: Mapping[str, tuple[RowKind, ...]] = {"true": ALL_KINDS, "upsert": UPSERT_KINDS}
"""What a scan emits, by ``source.changelog``."""


def _source_kinds(table: Table) -> tuple[RowKind, ...]:
    return _SOURCE_KINDS.get(table.options.get("source.changelog", "").lower(), INSERT_ONLY)


def _sink_kinds(table: Table) -> tuple[RowKind, ...]:
    return ALL_KINDS if table.options.get("sink.changelog", "").lower() == "true" else INSERT_ONLY


def _check(path: str, table: Table) -> Iterator[Diagnostic]:
    chosen = table.options.get("format", "")
    place = file_place("path", table.options.get("path", ""))
    if not place.is_local and "?" in place.path:
        yield Diagnostic(
            message="parameters do not belong into the path", hint="configure Spark instead", path=f"{path}.path"
        )
    if "@" in place.authority:
        yield Diagnostic(
            message="a user does not belong into the path, and a password must not stand in the text",
            hint="configure Spark with the credentials of the file system",
            path=f"{path}.path",
        )
    for key in table.options:
        prefix = key.split(".")[0]
        if prefix in ("csv", "json") and prefix != chosen and chosen in ("csv", "json", "parquet"):
            yield Diagnostic(
                message=f"{key!r} belongs to the format {prefix}, but the table's format is {chosen}",
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
    if chosen == "csv":
        yield from refuse_types(path, table, NESTED + BINARY, "a CSV file cannot hold", "use json or parquet")
    for column in physical(table) if chosen == "json" else ():
        try:
            entries = with_other_keys(parse_type(column.type))
        except ValueError:
            continue  # a wrong type is reported with the column, not with the options
        if entries:
            message = f"column {column.name!r} has a {entries} whose keys are no text, which a JSON file cannot hold"
            yield Diagnostic(message=message, hint="declare them STRING, or use parquet", path=f"{path}.connector")
    if _source_kinds(table) == UPSERT_KINDS:
        there = {column.name for column in physical(table)}
        if not table.primary_key:
            yield Diagnostic(
                message="'source.changelog' = 'upsert' replaces rows by their key, but the table has no primary key",
                hint="declare PRIMARY KEY (...) NOT ENFORCED",
                path=f"{path}.source.changelog",
            )
        for name in table.primary_key:
            if name not in there:
                yield Diagnostic(
                    message=f"the primary key column {name!r} is computed, so upserts do not have it",
                    hint="use physical columns in PRIMARY KEY",
                    path=f"{path}.source.changelog",
                )
    for key in ("source.changelog", "sink.changelog"):
        if table.options.get(key, "").lower() in ("true", "upsert") and any(c.name == "op" for c in physical(table)):
            yield Diagnostic(
                message=f"{key!r} adds a column 'op', but the table has a column of that name",
                hint="rename the table's column",
                path=f"{path}.{key}",
            )


def _overlaps(source: Table, sink: Table) -> bool:
    return _covers(source.options.get("path", ""), sink.options.get("path", ""))


def _covers(directory: str, path: str) -> bool:
    """Whether ``path`` is ``directory`` or below it."""
    above, below = _plain(directory), _plain(path)
    return below == above or below.startswith(above.rstrip("/") + "/") or above == "."


def _plain(path: str) -> str:
    """``path`` without the scheme of local files, dots and doubled slashes."""
    return posixpath.normpath(re.sub(r"/+", "/", re.sub(r"^file:(?://)?(?=/)", "", path)))


_IGNORE_PARSE_ERRORS = "Whether what cannot be read becomes NULL; else such a row fails the run."
_UNREAD = "what cannot be read becomes NULL, and nobody is told"

FILESYSTEM = Connector(
    name="filesystem",
    description="Files in a directory: csv, json or parquet.",
    options=(
        option("path", required=True, description="The directory of the files."),
        option("format", required=True, choices=("csv", "json", "parquet"), description="The format of the files."),
        option(
            "source.max-files-per-trigger", "int", description="The number of files in a micro-batch; all if absent."
        ),
        option(
            "source.changelog",
            "choice",
            choices=("true", "false", "upsert"),
            default="false",
            description="Whether rows are changes, with the row kind in a field op; upsert: by primary key.",
        ),
        option(
            "sink.changelog",
            "bool",
            default="false",
            description="Whether every change is written, with its row kind in a last column op; else only inserts.",
        ),
        option("json.ignore-parse-errors", "bool", default="false", description=_IGNORE_PARSE_ERRORS, loses=_UNREAD),
        option("csv.ignore-parse-errors", "bool", default="false", description=_IGNORE_PARSE_ERRORS, loses=_UNREAD),
        option(
            "csv.field-delimiter",
            "character",
            default=",",
            description="What stands between fields: one character, or \\t.",
        ),
        option(
            "csv.quote-character",
            "character",
            default='"',
            description="What stands around fields; doubled inside of them.",
        ),
        option(
            "csv.disable-quote-character", "bool", default="false", description="Whether there is no quoting at all."
        ),
        option(
            "csv.escape-character",
            "character",
            description="What takes away the meaning of the next character; the quote character if absent.",
        ),
        option(
            "csv.allow-comments", "bool", default="false", description="Whether lines that start with # are skipped."
        ),
        option("csv.null-literal", description="The text that means NULL."),
    ),
    reading=Reading(kinds=_source_kinds, is_suggested=True),
    writing=Writing(
        kinds=_sink_kinds,
        place="path",
        writes_files=True,
        is_suggested=True,
        updates_hint="set 'sink.changelog' = 'true' on the table, or write to an upsert sink",
    ),
    looking_up=LookingUp(modes=("full",)),
    metadata=(
        MetadataKey(name="file.path", type="STRING"),
        MetadataKey(name="file.name", type="STRING"),
        MetadataKey(name="file.size", type="BIGINT"),
        MetadataKey(name="file.modification-time", type="TIMESTAMP_LTZ(3)"),
    ),
    check=_check,
    reaches=lambda table: (file_place("path", table.options.get("path", "")),),
    overlaps=_overlaps,
)

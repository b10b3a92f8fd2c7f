"""The filesystem connector: files in a directory. Their rows may be changes.

>>> _covers("/data", "file:///data/out/"), _covers("/data/out", "/data")
(True, False)
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import ClassVar

from hintplan.plans.connectors.columns import physical
from hintplan.plans.connectors.connector import LookedUp, MetadataKey, Readable, Writable
from hintplan.plans.connectors.files.formats import (
    AVRO_PACKAGE,
    FORMAT_OPTIONS,
    FORMATS,
    IDLE,
    INSTEAD_OF_FORMATS,
    REFUSED,
    TEXTS,
    check_format,
    ignores_parse_errors,
    stored_columns,
    why_spark_parses,
)
from hintplan.plans.connectors.options import option
from hintplan.plans.connectors.reach import Place, file_place
from hintplan.plans.declarations.computations import LookupMode
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, UPSERT_KINDS, RowKinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import Diagnostic

_SOURCE_KINDS: Mapping[str, RowKinds] = {"true": ALL_KINDS, "upsert": UPSERT_KINDS}
"""The row kinds that a scan emits, by ``source.changelog``."""

_COMMIT = "sink.partition-commit"
POLICY, SUCCESS_FILE = f"{_COMMIT}.policy.kind", f"{_COMMIT}.success-file.name"
TRIGGER, DELAY = f"{_COMMIT}.trigger", f"{_COMMIT}.delay"
_NO_POLICIES = {
    "metastore": "there is no metastore; readers find partitions by the names of directories",
    "custom": "policies of one's own are classes of Java",
}
_NO_DELAY = "each micro-batch commits its partitions, and a job without rows has no batches"
_LOOKED_UP = ("csv", "json", "parquet", "orc")
_OF_PARTITIONS = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP")
_IN_ARROW = ("csv", "json", "parquet", "orc")
"""The formats that workers read in Arrow."""
_TITLES = {"avro": "Avro", "raw": "raw text"}
_SCHEMES = ("", "file", "s3", "s3a", "hdfs")
"""The schemes of file systems from which workers read files in Arrow."""


def _check_partitions(path: str, table: Table) -> Iterator[Diagnostic]:
    """Check the columns whose values directory names hold. Their types are the types that Flink reads."""
    if table.partitioned_by and not stored_columns(table):
        yield Diagnostic(
            message="all columns are partition columns, and nothing is left for the files",
            hint="leave one out of PARTITIONED BY",
            path=f"{path.removesuffix('.options')}.partitioned-by",
        )
    for column in physical(table):
        if column.name not in table.partitioned_by:
            continue
        try:
            data_type = parse_type(column.type)
        except ValueError:
            continue  # The column's own check reports a wrong type.
        if not data_type.is_text and data_type.root not in _OF_PARTITIONS:
            yield Diagnostic(
                message=f"partition column {column.name!r} is {column.type}, which the name of a directory cannot hold",
                hint="declare it STRING, INT or DATE",
                path=f"{path.removesuffix('.options')}.partitioned-by",
            )
    default = table.options.get("partition.default-name")
    if default is not None and not table.partitioned_by:
        yield Diagnostic(
            message="'partition.default-name' has no meaning without partitions",
            hint="declare the table with PARTITIONED BY (...), or remove it",
            path=f"{path}.partition.default-name",
        )
    elif default is not None and not default.strip():
        yield Diagnostic(
            message="'partition.default-name' is empty",
            hint="remove it, or write a name",
            path=f"{path}.partition.default-name",
        )


def _check_commits(path: str, table: Table) -> Iterator[Diagnostic]:
    """Check the options for partition commits."""
    options = {key: table.options[key] for key in (SUCCESS_FILE, TRIGGER, DELAY) if key in table.options}
    if POLICY not in table.options:
        for key in options:
            message = f"{key!r} has no meaning without {POLICY!r}"
            yield Diagnostic(
                message=message, hint=f"add '{POLICY}' = 'success-file', or remove it", path=f"{path}.{key}"
            )
        return
    for kind in table.options[POLICY].split(","):
        if kind.strip() != "success-file":
            why = _NO_POLICIES.get(kind.strip(), "it is no policy of Flink's")
            message = f"{POLICY!r} cannot be {kind.strip()!r}: {why}"
            yield Diagnostic(message=message, hint="write 'success-file'", path=f"{path}.{POLICY}")
    name = options.get(SUCCESS_FILE, "_SUCCESS")
    if not re.fullmatch("[_.][^/:]+", name):
        message = f"{SUCCESS_FILE!r} must begin with '_' or '.', as files that readers ignore do, found {name!r}"
        yield Diagnostic(message=message, hint="write a name such as '_SUCCESS'", path=f"{path}.{SUCCESS_FILE}")
    if options.get(TRIGGER, "process-time") != "process-time":
        message = (
            f"{TRIGGER!r} cannot be {options[TRIGGER]!r}: a micro-batch has no watermark that could pass a partition"
        )
        yield Diagnostic(message=message, hint="write 'process-time', or remove it", path=f"{path}.{TRIGGER}")
    if not _is_zero(options.get(DELAY, "0 s")):
        message = f"{DELAY!r} cannot be {options[DELAY]!r}: {_NO_DELAY}"
        yield Diagnostic(message=message, hint="write '0 s', or remove it", path=f"{path}.{DELAY}")


def _is_zero(duration: str) -> bool:
    try:
        return parse_duration(duration) == 0
    except ValueError:
        return False


def _covers(directory: str, path: str) -> bool:
    """Return True if ``path`` is ``directory`` or is inside it."""
    above, below = _plain(directory), _plain(path)
    return below == above or below.startswith(above.rstrip("/") + "/") or above == "."


def _plain(path: str) -> str:
    """Return ``path`` without the scheme of local files, dot segments and doubled slashes."""
    return posixpath.normpath(re.sub(r"/+", "/", re.sub(r"^file:(?://)?(?=/)", "", path)))


def _only_spark_reads(table: Table, columns: Collection[str]) -> Iterator[str]:
    """Yield the reasons why Spark reads ``columns`` of ORC files: values that depend on calendars, odd names."""
    for column in stored_columns(table):
        if column.name in columns:
            data_type = parse_type(column.type)
            yield from (f"{root} column {column.name}" for root in ("DATE", "TIMESTAMP") if data_type.contains(root))
            if "." in column.name:
                yield f"column {column.name}"


class Filesystem(Readable, Writable, LookedUp):
    """Files in a directory."""

    name = "filesystem"
    description = "Files in a directory: csv, json, parquet, orc, avro or raw."
    options = (
        option("path", required=True, description="The directory of the files."),
        option("format", required=True, choices=FORMATS, description="The format of the files."),
        option(
            "source.max-files-per-trigger", "int", description="The number of files in a micro-batch; all if absent."
        ),
        option(
            "source.changelog",
            "choice",
            choices=("true", "false", "upsert"),
            default="false",
            description="true: rows are changes, with the row kind in a field op; upsert: changes by primary key.",
        ),
        option(
            "sink.changelog",
            "bool",
            default="false",
            description="true: write every change, with its row kind in a last column op; false: accept only inserts.",
        ),
        option(
            "partition.default-name",
            default="__DEFAULT_PARTITION__",
            description="The value in the name of a directory that means NULL, or empty text.",
        ),
        option(
            POLICY,
            description="The commit of a partition: success-file writes an empty file into it; absent: no commit.",
        ),
        option(SUCCESS_FILE, default="_SUCCESS", description="The name of the success files."),
        option(TRIGGER, default="process-time", description="The trigger of a partition commit: process-time."),
        option(DELAY, default="0 s", description="The delay of a partition commit: 0 s."),
        *FORMAT_OPTIONS,
    )
    suggested_as_source = True
    read_in_pieces = True
    read_in_arrow = True
    destination = "path"
    writes_files = True
    overwrites = True
    suggested_as_sink = True
    updates_hint = "set 'sink.changelog' = 'true' on the table, or write to an upsert sink"
    lookup_modes = ("full",)
    lookup_only = f"files of {', '.join(_LOOKED_UP)} without PARTITIONED BY"
    metadata = (
        MetadataKey(name="file.path", type="STRING"),
        MetadataKey(name="file.name", type="STRING"),
        MetadataKey(name="file.size", type="BIGINT"),
        MetadataKey(name="file.modification-time", type="TIMESTAMP_LTZ(3)"),
    )
    refused: ClassVar[Mapping[str, str]] = REFUSED
    idle: ClassVar[Mapping[str, str]] = IDLE
    values: ClassVar[Mapping[str, Mapping[str, str]]] = {"format": INSTEAD_OF_FORMATS}
    partitions = True
    times = "in texts"
    stands_in: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("s3", "hdfs", "file", "files"),
            "write 'connector' = 'filesystem', with the directory of the files as 'path'",
        ),
        "hive": "write 'connector' = 'filesystem', with the directory of the table as 'path', and 'format' = 'parquet' "
        "or 'orc'",
    }

    def source_kinds(self, table: Table) -> RowKinds:
        return _SOURCE_KINDS.get(table.options.get("source.changelog", "").lower(), INSERT_ONLY)

    def why_spark_reads(self, table: Table, columns: Collection[str]) -> str | None:
        """Return the reason why Spark reads these columns.

        A run may find a further reason, because only a run sees the files and the configuration of their file system.
        """
        file_format = table.options.get("format", "")
        if file_format not in _IN_ARROW:
            return _TITLES.get(file_format, file_format.upper())
        scheme = file_place("path", table.options.get("path", "")).scheme
        if scheme not in _SCHEMES:
            return f"{scheme}://"
        if file_format == "orc":
            return next(_only_spark_reads(table, columns), None)
        if file_format not in TEXTS:
            return None
        read = {c.name for c in stored_columns(table)} if ignores_parse_errors(table) else columns
        nested = (c.name for c in table.columns if c.name in read and parse_type(c.type).children)
        reason = next((f"nested column {name}" for name in nested), None)
        return why_spark_parses(table, columns) if reason is None else reason

    def sink_kinds(self, table: Table) -> RowKinds:
        return ALL_KINDS if table.options.get("sink.changelog", "").lower() == "true" else INSERT_ONLY

    def lookup_modes_of(self, table: Table) -> tuple[LookupMode, ...]:
        return ("full",) if table.options.get("format") in _LOOKED_UP and not table.partitioned_by else ()

    def check(self, path: str, table: Table) -> Iterator[Diagnostic]:
        place = file_place("path", table.options.get("path", ""))
        if not place.is_local and "?" in place.path:
            yield Diagnostic(
                message="parameters do not belong into the path", hint="configure Spark instead", path=f"{path}.path"
            )
        if "@" in place.authority:
            yield Diagnostic(
                message="a path must not contain a user or a password",
                hint="configure Spark with the credentials of the file system",
                path=f"{path}.path",
            )
        yield from check_format(path, table)
        yield from _check_partitions(path, table)
        yield from _check_commits(path, table)
        if self.source_kinds(table) == UPSERT_KINDS:
            physical_names = {column.name for column in physical(table)}
            if not table.primary_key:
                yield Diagnostic(
                    message="'source.changelog' = 'upsert' replaces rows by their key, but the table has no primary "
                    "key",
                    hint="declare PRIMARY KEY (...) NOT ENFORCED",
                    path=f"{path}.source.changelog",
                )
            for name in table.primary_key:
                if name not in physical_names:
                    yield Diagnostic(
                        message=f"the primary key column {name!r} is computed, so upserts do not have it",
                        hint="use physical columns in PRIMARY KEY",
                        path=f"{path}.source.changelog",
                    )
        for key in ("source.changelog", "sink.changelog"):
            has_op = any(column.name == "op" for column in physical(table))
            if has_op and table.options.get(key, "").lower() in ("true", "upsert"):
                yield Diagnostic(
                    message=f"{key!r} adds a column 'op', but the table has a column of that name",
                    hint="rename the table's column",
                    path=f"{path}.{key}",
                )

    def reaches(self, table: Table) -> Iterable[Place]:
        return (file_place("path", table.options.get("path", "")),)

    def overlaps(self, source: Table, sink: Table) -> bool:
        return _covers(source.options.get("path", ""), sink.options.get("path", ""))

    def extras_of(self, table: Table) -> tuple[str, ...]:
        return ("kafka",) if table.options.get("format") == "avro" else ()

    def spark_package(self, table: Table, is_written: bool) -> str:
        return AVRO_PACKAGE if is_written and table.options.get("format") == "avro" else ""


FILESYSTEM = Filesystem()

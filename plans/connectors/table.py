"""What each connector accepts, as data: its options, whether it reads and writes, and which row kinds its sink takes.

Option names are Flink's. ``check_table`` finds everything wrong with a table's options before anything runs. How a
connector reads and writes belongs to the runtime; this module only knows names, values and column types.

>>> table = Table(columns=(TableColumn(name="v", type="INT"),), options={"connector": "print", "print-identifer": "x"})
>>> print(*check_table("result", table))
tables.result.options.print-identifer: the print connector has no option 'print-identifer'
  hint: did you mean 'print-identifier'?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from plans.connectors.datagen import check_fields
from plans.connectors.jdbc import SQLITE_URL, check_jdbc, is_postgres, jdbc_places
from plans.connectors.lookups import HTTP, PYTHON, PYTHON_CLASSES, REDIS, check_http, check_python, check_redis
from plans.connectors.options import ConnectorSpec, LookupMode, OptionSpec, bad_value
from plans.connectors.reach import Place, file_place
from plans.declarations.row_kinds import RowKind
from plans.declarations.tables import Table, TableColumn
from plans.declarations.types import parse_type
from plans.errors import Diagnostic
from plans.settings.lookup import SETTINGS
from plans.settings.setting import SettingError, parse_value

__all__ = [
    "CONNECTORS",
    "SQLITE_URL",
    "ConnectorSpec",
    "OptionSpec",
    "can_lookup",
    "can_read",
    "can_write",
    "check_table",
    "is_bounded",
    "is_upsert_sink",
    "is_upsert_source",
    "option",
    "places",
    "shown_options",
    "sink_kinds",
    "source_kinds",
]

ALL_KINDS: frozenset[RowKind] = frozenset(("+I", "-U", "+U", "-D"))
UPSERT_KINDS: frozenset[RowKind] = frozenset(("+I", "+U", "-D"))
INSERT_ONLY: frozenset[RowKind] = frozenset(("+I",))

_NESTED = ("ARRAY", "MAP", "ROW")
_BINARY = ("BYTES", "BINARY", "VARBINARY")

_FILESYSTEM = ConnectorSpec(
    name="filesystem",
    readable=True,
    writable=True,
    lookups=("full",),
    options=(
        OptionSpec(name="path", required=True),
        OptionSpec(name="format", required=True, choices=("csv", "json", "parquet")),
        OptionSpec(name="source.max-files-per-trigger", kind="int"),
        OptionSpec(name="source.changelog", kind="word", choices=("true", "false", "upsert"), default="false"),
        OptionSpec(name="sink.changelog", kind="bool", default="false"),
        OptionSpec(name="json.ignore-parse-errors", kind="bool", default="false"),
        OptionSpec(name="csv.ignore-parse-errors", kind="bool", default="false"),
        OptionSpec(name="csv.field-delimiter", kind="character", default=","),
        OptionSpec(name="csv.quote-character", kind="character", default='"'),
        OptionSpec(name="csv.disable-quote-character", kind="bool", default="false"),
        OptionSpec(name="csv.escape-character", kind="character"),
        OptionSpec(name="csv.allow-comments", kind="bool", default="false"),
        OptionSpec(name="csv.null-literal"),
    ),
    reaches=lambda table: (file_place("path", table.options.get("path", "")),),
)

_PRINT = ConnectorSpec(
    name="print",
    readable=False,
    writable=True,
    options=(OptionSpec(name="print-identifier"),),
    refusal="it only writes",
)

_BLACKHOLE = ConnectorSpec(name="blackhole", readable=False, writable=True, options=(), refusal="it only writes")

_DATAGEN = ConnectorSpec(
    name="datagen",
    readable=True,
    writable=False,
    options=(
        OptionSpec(name="rows-per-second", kind="int", maximum=1_000_000_000, default="10000"),
        OptionSpec(name="number-of-rows", kind="int", minimum=0),
    ),
    field_options=True,
    refusal="it only reads",
)

_JDBC = ConnectorSpec(
    name="jdbc",
    readable=False,
    writable=True,
    lookups=("sync", "async", "full"),
    options=(
        OptionSpec(name="url", required=True, environment=True),
        OptionSpec(name="table-name", required=True),
        OptionSpec(name="username", environment=True),
        OptionSpec(name="password", secret=True),
        OptionSpec(name="connection.pool-size", kind="int", maximum=1_000, default="10"),
        OptionSpec(name="connection.timeout", kind="duration", default="30 s"),
        OptionSpec(name="statement.timeout", kind="duration", default="30 s"),
        OptionSpec(name="scan.fetch-size", kind="int", maximum=1_000_000, default="10000"),
    ),
    reaches=jdbc_places,
    refusal="a database is not read as a stream; look it up with JOIN ... FOR SYSTEM_TIME AS OF, or export the table",
)

CONNECTORS: Mapping[str, ConnectorSpec] = {
    spec.name: spec for spec in (_BLACKHOLE, _DATAGEN, _FILESYSTEM, HTTP, _JDBC, _PRINT, PYTHON, REDIS)
}


_SOURCE_KINDS: Mapping[str, tuple[RowKind, ...]] = {
    "true": ("+I", "-U", "+U", "-D"),
    "upsert": ("+I", "+U", "-D"),
}
"""What a scan emits, by ``source.changelog``."""


def can_read(table: Table) -> bool:
    """Whether the table's connector can be scanned."""
    spec = CONNECTORS.get(table.options.get("connector", ""))
    return spec is not None and spec.readable


def is_bounded(table: Table) -> bool:
    """Whether reading the table comes to an end: files do, datagen does with ``number-of-rows`` or a sequence."""
    if table.options.get("connector") != "datagen" or "number-of-rows" in table.options:
        return True
    return any(key.startswith("fields.") and value == "sequence" for key, value in table.options.items())


def can_write(table: Table) -> bool:
    """Whether the table's connector can be inserted into."""
    spec = CONNECTORS.get(table.options.get("connector", ""))
    return spec is not None and spec.writable and not is_postgres(table)


def can_lookup(table: Table) -> frozenset[LookupMode]:
    """The modes in which a lookup join can use the table; empty if it cannot."""
    spec = CONNECTORS.get(table.options.get("connector", ""))
    if spec is None:
        return frozenset()
    if spec is _JDBC and not is_postgres(table):
        return frozenset(("sync", "full"))
    if spec is PYTHON:
        return frozenset(mode for mode in spec.lookups if PYTHON_CLASSES[mode] in table.options)
    return frozenset(spec.lookups)


def is_upsert_sink(table: Table) -> bool:
    """Whether the sink replaces and deletes rows by the table's primary key."""
    return table.options.get("connector") == "jdbc" and not is_postgres(table) and bool(table.primary_key)


def sink_kinds(table: Table) -> frozenset[RowKind]:
    """The row kinds the table accepts as a sink; empty if it cannot be written to."""
    if not can_write(table):
        return frozenset()
    connector = table.options["connector"]
    if connector in ("print", "blackhole"):
        return ALL_KINDS
    if connector == "filesystem":
        return ALL_KINDS if option(table, "sink.changelog") == "true" else INSERT_ONLY
    return UPSERT_KINDS if is_upsert_sink(table) else INSERT_ONLY


def source_kinds(table: Table) -> tuple[RowKind, ...]:
    """The row kinds that a scan of the table emits."""
    return _SOURCE_KINDS.get(table.options.get("source.changelog", "").lower(), ("+I",))


def is_upsert_source(table: Table) -> bool:
    """Whether a scan of the table emits rows that replace each other by its primary key."""
    return source_kinds(table) == _SOURCE_KINDS["upsert"]


def option(table: Table, name: str) -> str | None:
    """The value of an option of a checked table, or its default; booleans come in lower case."""
    spec = next(o for o in CONNECTORS[table.options["connector"]].options if o.name == name)
    value = table.options.get(name, spec.default)
    return value.lower() if value is not None and spec.kind in ("bool", "word") else value


def places(table: Table) -> tuple[Place, ...]:
    """What reading, writing or asking a checked table reaches."""
    spec = CONNECTORS.get(table.options.get("connector", ""))
    return () if spec is None else tuple(spec.reaches(table))


def in_order(options: Mapping[str, str]) -> dict[str, str]:
    """``options`` of a table as a plan lists them: the connector, its options in their order, then all others."""
    spec = CONNECTORS.get(options.get("connector", ""))
    known = ("connector", *(option.name for option in spec.options)) if spec is not None else ("connector",)
    return {**{name: options[name] for name in known if name in options}, **dict(sorted(options.items()))}


def shown_options(name: str, table: Table) -> dict[str, str]:
    """The options to show; a value that is refused may be a literal secret, so it is not repeated."""
    refused = {problem.path for problem in check_table(name, table)}
    return {
        key: "(refused)" if f"tables.{name}.options.{key}" in refused else value for key, value in table.options.items()
    }


def check_table(name: str, table: Table) -> tuple[Diagnostic, ...]:
    """Everything wrong with the options of table ``name``, with paths such as ``tables.orders.options.path``."""
    return tuple(_check(f"tables.{name}.options", table))


def _check(path: str, table: Table) -> Iterator[Diagnostic]:
    connector = table.options.get("connector")
    spec = CONNECTORS.get(connector or "")
    if spec is None:
        known = ", ".join(sorted(CONNECTORS))
        close = get_close_matches(connector or "", CONNECTORS, n=1)
        yield Diagnostic(
            message=f"there is no connector {connector!r}" if connector else "the table names no connector",
            hint=f"did you mean {close[0]!r}? Known are {known}" if close else f"write 'connector' = one of {known}",
            path=f"{path}.connector",
        )
        return
    known_options = {o.name: o for o in spec.options}
    for key, value in table.options.items():
        if key == "connector" or (spec.field_options and key.startswith("fields.")):
            continue
        if any(key.startswith(family) and key != family for family in spec.families):
            yield from _check_placeholders(path, key, value)
            continue
        if key in SETTINGS["cache"] and spec.lookups:
            yield from _check_lookup_option(path, key, value)
        elif key not in known_options:
            yield _unknown(path, spec, key)
        elif problem := bad_value(known_options[key], value):
            message, hint = problem
            yield Diagnostic(message=message, hint=hint, path=f"{path}.{key}")
    for wanted in spec.options:
        if wanted.required and wanted.name not in table.options:
            yield Diagnostic(
                message=f"the {spec.name} connector needs the option {wanted.name!r}",
                hint=f"add '{wanted.name}' = " + (f"one of {', '.join(wanted.choices)}" if wanted.choices else "'...'"),
                path=f"{path}.{wanted.name}",
            )
    if spec is _FILESYSTEM:
        yield from _check_filesystem(path, table)
    elif spec is _DATAGEN:
        yield from check_fields(path, table)
    elif spec is _JDBC:
        yield from _check_jdbc(path, table)
    elif spec is REDIS:
        yield from check_redis(path, table)
    elif spec is HTTP:
        yield from check_http(path, table)
    elif spec is PYTHON:
        yield from check_python(path, table)


def _check_lookup_option(path: str, key: str, value: str) -> Iterator[Diagnostic]:
    """Whether the value is one; which options go together is known where the table is looked up."""
    try:
        parse_value(SETTINGS["cache"][key], value)
    except SettingError as error:
        yield Diagnostic(message=f"{key!r}: {error}", hint=error.hint, path=f"{path}.{key}")


def _unknown(path: str, spec: ConnectorSpec, key: str) -> Diagnostic:
    names = [*(o.name for o in spec.options), *(SETTINGS["cache"] if spec.lookups else ())]
    close = get_close_matches(key, names, n=1)
    if close:
        hint = f"did you mean {close[0]!r}?"
    elif names:
        hint = f"it knows {', '.join(names)}" + (" and fields.<column>.<setting>" if spec.field_options else "")
    else:
        hint = "it has no options; remove it"
    return Diagnostic(message=f"the {spec.name} connector has no option {key!r}", hint=hint, path=f"{path}.{key}")


def _check_filesystem(path: str, table: Table) -> Iterator[Diagnostic]:
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
        yield from _refuse_types(path, table, _NESTED + _BINARY, "a CSV file cannot hold", "use json or parquet")
    if is_upsert_source(table):
        physical = {column.name for column in _physical(table)}
        if not table.primary_key:
            yield Diagnostic(
                message="'source.changelog' = 'upsert' replaces rows by their key, but the table has no primary key",
                hint="declare PRIMARY KEY (...) NOT ENFORCED",
                path=f"{path}.source.changelog",
            )
        for name in table.primary_key:
            if name not in physical:
                yield Diagnostic(
                    message=f"the primary key column {name!r} is computed, so upserts do not have it",
                    hint="use physical columns in PRIMARY KEY",
                    path=f"{path}.source.changelog",
                )
    for key in ("source.changelog", "sink.changelog"):
        if table.options.get(key, "").lower() in ("true", "upsert") and any(c.name == "op" for c in _physical(table)):
            yield Diagnostic(
                message=f"{key!r} adds a column 'op', but the table has a column of that name",
                hint="rename the table's column",
                path=f"{path}.{key}",
            )


def _check_jdbc(path: str, table: Table) -> Iterator[Diagnostic]:
    yield from check_jdbc(path, table)
    if not is_postgres(table):
        yield from _refuse_types(path, table, _NESTED, "an SQLite table cannot hold", "write its parts as columns")
    yield from _check_key(path, table)


def _check_placeholders(path: str, key: str, value: str) -> Iterator[Diagnostic]:
    if problem := bad_value(OptionSpec(name=key, environment=True), value):
        message, hint = problem
        yield Diagnostic(message=message, hint=hint, path=f"{path}.{key}")


def _check_key(path: str, table: Table) -> Iterator[Diagnostic]:
    computed = [column.name for column in table.columns if column.expression is not None]
    for name in table.primary_key:
        if name in computed:
            yield Diagnostic(
                message=f"the primary key column {name!r} is computed, so it is not in the database",
                hint="use physical columns in PRIMARY KEY",
                path=f"{path}.connector",
            )


def _refuse_types(path: str, table: Table, roots: tuple[str, ...], message: str, hint: str) -> Iterator[Diagnostic]:
    for column in _physical(table):
        try:
            root = parse_type(column.type).root
        except ValueError:
            continue  # a wrong type is reported with the column, not with the options
        if root in roots:
            yield Diagnostic(
                message=f"{message} column {column.name!r} of type {column.type}", hint=hint, path=f"{path}.connector"
            )


def _physical(table: Table) -> tuple[TableColumn, ...]:
    return tuple(column for column in table.columns if column.expression is None)

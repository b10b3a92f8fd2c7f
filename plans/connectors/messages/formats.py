"""The formats of messages: which there are, what they can be told, and which columns are in the key and the value.

>>> table = Table(columns=(), options={"format": "json", "json.ignore-parse-errors": "true"})
>>> value_part(table).option("ignore-parse-errors"), key_part(table)
('true', None)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from plans.connectors.columns import BINARY, NESTED, physical
from plans.connectors.options import bad_value, option
from plans.connectors.reach import HostPlace, http_host
from plans.declarations.tables import Table, TableColumn
from plans.declarations.types import DataType, parse_type
from plans.errors import Diagnostic
from plans.settings.setting import Setting
from plans.text.names import did_you_mean

CHANGELOGS = ("debezium-json", "canal-json")
"""The formats whose values are changes."""

AVRO = ("avro", "avro-confluent")
"""The formats that need a package of their own."""

ROWS = ("json", "csv", "raw", *AVRO)
"""The formats whose messages are rows, which keys can have, too."""

FORMATS = (*ROWS, *CHANGELOGS)

_RAW = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", *BINARY)
_IGNORE = "Whether what cannot be read becomes NULL, and a message of which nothing can be read is skipped."
_UNREAD = "what cannot be read becomes NULL or is skipped, and nobody is told"
_STANDARD = "How times are written: SQL is 2020-01-01 00:00:00, ISO-8601 is 2020-01-01T00:00:00."


def _lenient(name: str) -> Setting:
    return option(f"{name}.ignore-parse-errors", "bool", default="false", description=_IGNORE, loses=_UNREAD)


def _times(name: str) -> Setting:
    return option(
        f"{name}.timestamp-format.standard", "choice", choices=("SQL", "ISO-8601"), default="SQL", description=_STANDARD
    )


FORMAT_OPTIONS: tuple[Setting, ...] = (
    _lenient("json"),
    option("json.fail-on-missing-field", "bool", default="false", description="Whether a field must be there."),
    _times("json"),
    option(
        "json.encode.decimal-as-plain-number",
        "bool",
        default="false",
        description="Whether DECIMAL is written without an exponent.",
    ),
    option("json.encode.ignore-null-fields", "bool", default="false", description="Whether NULL is not written."),
    _lenient("csv"),
    option("csv.field-delimiter", "character", default=",", description="What stands between fields."),
    option("csv.quote-character", "character", default='"', description="What stands around fields; doubled inside."),
    option("csv.disable-quote-character", "bool", default="false", description="Whether there is no quoting at all."),
    option("csv.escape-character", "character", description="What takes away the meaning of the next character."),
    option("csv.null-literal", description="The text that means NULL."),
    option("raw.charset", choices=("UTF-8",), default="UTF-8", description="The encoding of text."),
    option(
        "raw.endianness",
        "choice",
        choices=("big-endian", "little-endian"),
        default="big-endian",
        description="The order of the bytes of a number.",
    ),
    option("avro.encoding", "choice", choices=("binary",), default="binary", description="How Avro is encoded."),
    option(
        "avro.timestamp_mapping.legacy",
        "bool",
        default="true",
        description="Whether TIMESTAMP is timestamp-millis in Avro, and not local-timestamp.",
    ),
    option("avro-confluent.url", description="The schema registry, as http://host:8081 or https://host."),
    option(
        "avro-confluent.subject", description="What the schema of a sink is registered under; topic-value if absent."
    ),
    option("avro-confluent.basic-auth.user-info", secret=True, description="user:password, as ${env:NAME}."),
    option("avro-confluent.bearer-auth.token", secret=True, description="A token, as ${env:NAME}."),
    _lenient("debezium-json"),
    _times("debezium-json"),
    option(
        "debezium-json.schema-include",
        "bool",
        default="false",
        description="Whether messages have a schema beside the payload.",
    ),
    _lenient("canal-json"),
    _times("canal-json"),
    option("canal-json.database.include", description="A regular expression of the databases whose changes are read."),
    option("canal-json.table.include", description="A regular expression of the tables whose changes are read."),
)
"""What formats can be told; with ``key.`` or ``value.`` before it where ``key.format`` or ``value.format`` chose it."""

_SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in FORMAT_OPTIONS}
_REGISTRY = "avro-confluent.url"
_URL = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._/-]*)?")
_MILLIS = 3
_PATTERNS = ("canal-json.database.include", "canal-json.table.include")
PREFIXED = ("key.", "value.")
"""What options of the format of a key or value start with."""

INCLUDE = "value.fields-include"
PREFIX = "key.fields-prefix"

PART_OPTIONS: tuple[Setting, ...] = (
    option("key.format", "choice", choices=ROWS, description="The format of keys."),
    option(PREFIX, description="What the columns of the key start with, and its fields do not."),
    option("value.format", "choice", choices=FORMATS, description="The format of values."),
    option(
        INCLUDE,
        "choice",
        choices=("ALL", "EXCEPT_KEY"),
        default="ALL",
        description="Whether the columns of the key are in the value, too.",
    ),
)

_OF_PARTS = ("key.fields", *(each.name for each in PART_OPTIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The key or the value of messages; ``columns`` are the table's, and ``fields`` their names in the format.

    ``before`` is what stands before its options in the table.
    """

    format: str
    columns: tuple[TableColumn, ...]
    fields: tuple[str, ...]
    options: Mapping[str, str]
    before: str = ""

    def option(self, name: str) -> str | None:
        """The value of the format's option ``name``, without the format, or its default."""
        setting = _SETTINGS[f"{self.format}.{name}"]
        value = self.options.get(setting.name, setting.default)
        return None if value is None else str(value).lower() if setting.kind in ("bool", "choice") else str(value)


def key_columns(table: Table) -> tuple[str, ...]:
    """The columns of the key: those that the table says, else its primary key if it has a format for keys."""
    if (listed := table.options.get("key.fields")) is not None:
        return tuple(name.strip() for name in listed.split(";") if name.strip())
    return table.primary_key if "key.format" in table.options else ()


def key_part(table: Table) -> Part | None:
    """The key of the messages of a checked table; None if nobody looks at it."""
    if "key.format" not in table.options:
        return None
    types = {column.name: column for column in physical(table)}
    columns = tuple(types[name] for name in key_columns(table))
    prefix = table.options.get(PREFIX, "")
    return _part(table, "key", table.options["key.format"].lower(), columns, prefix)


def value_part(table: Table) -> Part:
    """The value of the messages of a checked table."""
    chosen, side = _value_format(table)
    left_out = key_columns(table) if table.options.get(INCLUDE, "ALL").upper() == "EXCEPT_KEY" else ()
    columns = tuple(column for column in physical(table) if column.name not in left_out)
    return _part(table, side, chosen, columns, "")


def is_changelog(table: Table) -> bool:
    """Whether the values of the messages are changes."""
    return _value_format(table)[0] in CHANGELOGS


def _value_format(table: Table) -> tuple[str, Literal["value", ""]]:
    if "value.format" in table.options:
        return table.options["value.format"].lower(), "value"
    return table.options.get("format", "").lower(), ""


def _part(table: Table, side: str, chosen: str, columns: tuple[TableColumn, ...], prefix: str) -> Part:
    before = f"{side}." if side else ""
    options = {
        key.removeprefix(before): value for key, value in table.options.items() if key.startswith(f"{before}{chosen}.")
    }
    fields = tuple(column.name.removeprefix(prefix) for column in columns)
    return Part(format=chosen, columns=columns, fields=fields, options=options, before=before)


def check_formats(path: str, table: Table) -> Iterator[Diagnostic]:
    """What is wrong with formats, their options, and the columns that are in the key and the value."""
    problems = [*_check_options(path, table), *_check_key(path, table)]
    yield from problems
    if problems or not _value_format(table)[0]:
        return
    key = key_part(table)
    for name, part in (
        ("key.format", key),
        ("format" if "format" in table.options else "value.format", value_part(table)),
    ):
        if part is not None:
            yield from _check_part(f"{path}.{name}", part)


def _check_options(path: str, table: Table) -> Iterator[Diagnostic]:
    value, side = _value_format(table)
    chosen = {"key": table.options.get("key.format", "").lower(), side: value}
    for key, text in table.options.items():
        before, name = "", key
        if key.startswith(PREFIXED) and key not in _OF_PARTS:
            before, _, name = key.partition(".")
        of_format = name.partition(".")[0]
        if before:
            setting = _SETTINGS.get(name)
            if setting is None:
                message = f"{key!r} is no option of a format of messages"
                yield Diagnostic(
                    message=message, hint=did_you_mean(name, _SETTINGS, what="options"), path=f"{path}.{key}"
                )
                continue
            if problem := bad_value(setting, text):
                yield Diagnostic(
                    message=f"{before}.{problem[0].lstrip(chr(39))}", hint=problem[1], path=f"{path}.{key}"
                )
        elif name not in _SETTINGS:
            continue
        if chosen.get(before) != of_format:
            option_of = f"{before}.format" if before else "format"
            yield Diagnostic(
                message=f"{key!r} is for {option_of!r} = {of_format!r}, which the table does not have",
                hint=f"write '{side}.{key}'"
                if not before and side and value == of_format
                else f"remove it, or write '{option_of}' = '{of_format}'",
                path=f"{path}.{key}",
            )  # fmt: skip
        if name in _PATTERNS:
            try:
                re.compile(text)
            except re.error as error:
                message = f"{key!r} is no regular expression: {error}"
                yield Diagnostic(message=message, hint="write it like 'shop_.*'", path=f"{path}.{key}")
    for before in ("", "key.", "value."):

        def on(name: str, before: str = before) -> bool:
            return table.options.get(before + name, "").lower() == "true"

        if on("json.ignore-parse-errors") and on("json.fail-on-missing-field"):
            yield Diagnostic(
                message=f"'{before}json.fail-on-missing-field' cannot be true where '{before}json.ignore-parse-errors' "
                "is",
                hint="remove one of them",
                path=f"{path}.{before}json.fail-on-missing-field",
            )
        if on("csv.disable-quote-character") and f"{before}csv.quote-character" in table.options:
            yield Diagnostic(
                message=f"'{before}csv.quote-character' cannot be set where '{before}csv.disable-quote-character' is",
                hint="remove one of them",
                path=f"{path}.{before}csv.quote-character",
            )


def _check_key(path: str, table: Table) -> Iterator[Diagnostic]:
    there = [column.name for column in physical(table)]
    for name in key_columns(table):
        if name not in there:
            hint = f"the columns are {', '.join(there)}"
            option_of = "key.fields" if "key.fields" in table.options else "key.format"
            message = f"the key column {name!r} is no physical column of the table"
            yield Diagnostic(message=message, hint=hint, path=f"{path}.{option_of}")
    prefix = table.options.get(PREFIX, "")
    if not prefix:
        return
    if table.options.get(INCLUDE, "ALL").upper() != "EXCEPT_KEY":
        message = f"{PREFIX!r} needs {INCLUDE!r} = 'EXCEPT_KEY': the columns with the prefix are not in the value"
        yield Diagnostic(message=message, hint=f"add '{INCLUDE}' = 'EXCEPT_KEY'", path=f"{path}.{PREFIX}")
    for name in key_columns(table):
        if not name.startswith(prefix):
            message = f"the key column {name!r} does not start with {prefix!r}"
            yield Diagnostic(message=message, hint=f"name it {prefix}{name}", path=f"{path}.{PREFIX}")


def registries(table: Table) -> Iterator[HostPlace]:
    """The schema registries that a checked table asks."""
    for part in (key_part(table), value_part(table)):
        if part is not None and part.format == "avro-confluent":
            yield http_host(part.before + _REGISTRY, part.options[_REGISTRY])


def _check_registry(path: str, part: Part) -> Iterator[Diagnostic]:
    key = f"{part.before}{_REGISTRY}"
    url = part.options.get(_REGISTRY)
    if url is None:
        message = f"the format {part.format} needs the option {key!r}"
        yield Diagnostic(message=message, hint=f"add '{key}' = 'http://host:8081'", path=path)
    elif not _URL.fullmatch(url):
        message = f"{key!r} must start with http:// or https:// and name a host, with no user and no parameters"
        yield Diagnostic(message=message, hint=f"write '{key}' = 'http://host:8081'", path=path)


def _check_part(path: str, part: Part) -> Iterator[Diagnostic]:
    if part.format == "avro-confluent":
        yield from _check_registry(path, part)
    types: dict[str, DataType] = {}
    for column in part.columns:
        try:
            types[column.name] = parse_type(column.type)
        except ValueError:
            return  # a wrong type is reported with the column, not with the options
    if part.format == "raw":
        if len(types) != 1:
            message = f"the format raw is one column, and there are {len(types)}: {', '.join(types) or 'none'}"
            yield Diagnostic(message=message, hint="choose another format, such as json", path=path)
            return
        ((name, only),) = types.items()
        if not only.is_text and only.root not in _RAW:
            message = f"the format raw cannot hold column {name!r} of type {only.as_nullable()}"
            yield Diagnostic(message=message, hint="declare it STRING or BYTES", path=path)
    for name, data_type in types.items():
        if part.format == "csv" and data_type.root in NESTED + BINARY:
            message = f"the format csv cannot hold column {name!r} of type {data_type.as_nullable()}"
            yield Diagnostic(message=message, hint="use json", path=path)
        elif misfit := _avro_misfit(part, data_type):
            message = f"the format {part.format} cannot hold column {name!r}: Flink maps no {misfit} to its times"
            hint = "declare it TIMESTAMP(3), or set 'avro.timestamp_mapping.legacy' = 'false' with the format avro"
            yield Diagnostic(message=message, hint=hint, path=path)
        elif part.format not in ("csv", "raw") and _has_other_keys(data_type):
            message = f"column {name!r} has a MAP whose keys are no text, which {part.format} cannot hold"
            yield Diagnostic(message=message, hint="declare its keys STRING", path=path)


def _avro_misfit(part: Part, data_type: DataType) -> str:
    """What of a type the older mapping of times to Avro cannot hold; empty if it can all."""
    legacy = part.format != "avro" or part.option("timestamp_mapping.legacy") == "true"
    if part.format in AVRO and legacy:
        if data_type.root == "TIMESTAMP_LTZ" or (
            data_type.root == "TIMESTAMP" and (data_type.precision or 0) > _MILLIS
        ):
            return str(data_type.as_nullable())
        return next(filter(None, (_avro_misfit(part, child) for child in data_type.children)), "")
    return ""


def _has_other_keys(data_type: DataType) -> bool:
    if data_type.root == "MAP" and not data_type.children[0].is_text:
        return True
    return any(_has_other_keys(child) for child in data_type.children)

"""Checks of the formats of a table, their options, and the columns of key and value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from hintplan.plans.connectors.columns import BINARY, NESTED, avro_misfit, physical, with_other_keys
from hintplan.plans.connectors.messages.format_options import (
    DESCRIPTORS,
    FORMATS,
    IN_AVRO,
    INCLUDE,
    INSTEAD_OF_OPTIONS,
    MESSAGE,
    OF_REGISTRY,
    PART_OPTIONS,
    PREFIX,
    PREFIXED,
    PROTOBUF,
    ROWS,
    SETTINGS,
)
from hintplan.plans.connectors.messages.formats import Part, key_columns, key_part, value_format, value_part
from hintplan.plans.connectors.options import bad_value
from hintplan.plans.declarations.tables import Table
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import Diagnostic
from hintplan.plans.text.names import did_you_mean

_RAW = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", *BINARY)
_URL = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._/-]*)?")
_PROTOBUF = (*_RAW, "CHAR", "VARCHAR", "STRING")
_PATTERNS = ("canal-json.database.include", "canal-json.table.include")
_OF_PARTS = ("key.fields", *(part_option.name for part_option in PART_OPTIONS))


def check_formats(path: str, table: Table, values: Collection[str] = FORMATS) -> Iterator[Diagnostic]:
    """Yield the problems of formats, their options, and the columns of key and value.

    A format must be one of ``values``, and a key's format one of ``ROWS``. Another check reports any other format; this
    one then skips the columns.
    """
    problems = [*_check_options(path, table), *_check_key(path, table)]
    yield from problems
    if problems or not value_format(table)[0]:
        return
    key = key_part(table)
    for name, part, formats in (
        ("key.format", key, ROWS),
        ("format" if "format" in table.options else "value.format", value_part(table), values),
    ):
        if part is not None and part.format in formats:
            yield from _check_part(f"{path}.{name}", part)


def _check_options(path: str, table: Table) -> Iterator[Diagnostic]:
    value, side = value_format(table)
    chosen = {"key": table.options.get("key.format", "").lower(), side: value}
    for key, text in table.options.items():
        before, name = "", key
        if key.startswith(PREFIXED) and key not in _OF_PARTS:
            before, _, name = key.partition(".")
        format_name = name.partition(".")[0]
        if before:
            setting = SETTINGS.get(name)
            if setting is None:
                message = f"{key!r} is no option of a format of messages"
                candidates = [candidate for candidate in SETTINGS if f"{before}.{candidate}" not in table.options]
                hint = INSTEAD_OF_OPTIONS.get(key) or did_you_mean(name, candidates, what="options")
                yield Diagnostic(message=message, hint=hint, path=f"{path}.{key}")
                continue
            if problem := bad_value(replace(setting, name=key), text):
                yield Diagnostic(message=problem[0], hint=problem[1], path=f"{path}.{key}")
        elif name not in SETTINGS:
            continue
        if chosen.get(before) != format_name:
            option_of = f"{before}.format" if before else "format"
            yield Diagnostic(
                message=f"{key!r} is for {option_of!r} = {format_name!r}, which the table does not have",
                hint=f"write '{side}.{key}'"
                if not before and side and value == format_name
                else f"remove it, or write '{option_of}' = '{format_name}'",
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
    physical_names = [column.name for column in physical(table)]
    for name in key_columns(table):
        if name not in physical_names:
            hint = f"the columns are {', '.join(physical_names)}"
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


def _check_registry(path: str, part: Part) -> Iterator[Diagnostic]:
    key = f"{part.before}{part.format}.url"
    url = part.options.get(f"{part.format}.url")
    if url is None:
        message = f"the format {part.format} needs the option {key!r}"
        yield Diagnostic(message=message, hint=f"add '{key}' = 'http://host:8081'", path=path)
    elif not _URL.fullmatch(url):
        message = f"{key!r} must start with http:// or https:// and name a host, with no user and no parameters"
        yield Diagnostic(message=message, hint=f"write '{key}' = 'http://host:8081'", path=path)


def _check_part(path: str, part: Part) -> Iterator[Diagnostic]:
    if part.format in OF_REGISTRY:
        yield from _check_registry(path, part)
    if part.format == PROTOBUF:
        yield from _check_definition(path, part)
    types: dict[str, DataType] = {}
    for column in part.columns:
        try:
            types[column.name] = parse_type(column.type)
        except ValueError:
            return  # The column's own check reports a wrong type.
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
        elif part.format == PROTOBUF and (unknown := _not_in_protobuf(data_type)):
            message = f"the format protobuf cannot hold column {name!r}: it knows no {unknown}"
            yield Diagnostic(message=message, hint="declare it as the field of the message is", path=path)
        elif part.format in IN_AVRO and _is_legacy(part) and (misfit := avro_misfit(data_type)):
            message = f"the format {part.format} cannot hold column {name!r}: Flink maps no {misfit} to its times"
            hint = "declare it TIMESTAMP(3), or set 'avro.timestamp_mapping.legacy' = 'false' with the format avro"
            yield Diagnostic(message=message, hint=hint, path=path)
        elif part.format not in ("csv", "raw", PROTOBUF) and (entries := with_other_keys(data_type)):
            message = f"column {name!r} has a {entries} whose keys are no text, which {part.format} cannot hold"
            yield Diagnostic(message=message, hint="declare them STRING", path=path)


def _check_definition(path: str, part: Part) -> Iterator[Diagnostic]:
    for name, hint in (
        (MESSAGE, "'com.example.Orders$Order', or the message's name in Protobuf, such as 'shop.Order'"),
        (DESCRIPTORS, "'orders.desc', a file made with protoc --include_imports --descriptor_set_out=orders.desc"),
    ):
        if not part.options.get(name, "").strip():
            message = f"the format {part.format} needs the option '{part.before}{name}'"
            yield Diagnostic(message=message, hint=f"add '{part.before}{name}' = {hint}", path=path)


def _not_in_protobuf(data_type: DataType) -> str:
    """Return the part of a type that Protobuf cannot hold, else an empty text."""
    if data_type.children and data_type.root != "MULTISET":
        return next(filter(None, map(_not_in_protobuf, data_type.children)), "")
    return "" if data_type.root in _PROTOBUF else str(data_type.as_nullable())


def _is_legacy(part: Part) -> bool:
    return part.format != "avro" or part.option("timestamp_mapping.legacy") == "true"

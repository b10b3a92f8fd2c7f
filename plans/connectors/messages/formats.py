"""The columns of a table in the key and the value of its messages, and the format of each.

>>> table = Table(columns=(), options={"format": "json", "json.ignore-parse-errors": "true"})
>>> value_part(table).option("ignore-parse-errors"), key_part(table)
('true', None)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from hintplan.plans.connectors.columns import physical
from hintplan.plans.connectors.messages.format_options import (
    CHANGELOGS,
    DESCRIPTORS,
    IN_AVRO,
    INCLUDE,
    OF_REGISTRY,
    PREFIX,
    PROTOBUF,
    SETTINGS,
)
from hintplan.plans.connectors.reach import Place, http_host, local_file
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.frozen import frozen


@frozen
class Part:
    """The key or the value of a message. ``fields`` are the names of the ``columns`` in the format.

    ``before`` is the prefix of the format's options in the table. ``definition`` is the content of the file that
    defines the message; it is empty until a run reads the file.
    """

    format: str
    columns: tuple[TableColumn, ...]
    fields: tuple[str, ...]
    options: Mapping[str, str]
    before: str = ""
    definition: bytes = b""

    def option(self, name: str) -> str | None:
        """Return the value of the format's option ``name``, or its default. ``name`` has no prefix."""
        setting = SETTINGS[f"{self.format}.{name}"]
        value = self.options.get(setting.name, setting.default)
        return None if value is None else str(value).lower() if setting.kind in ("bool", "choice") else str(value)


def key_columns(table: Table) -> tuple[str, ...]:
    """Return the columns of the key: ``key.fields``, or the primary key if the table has a ``key.format``."""
    if (listed := table.options.get("key.fields")) is not None:
        return tuple(name.strip() for name in listed.split(";") if name.strip())
    return table.primary_key if "key.format" in table.options else ()


def key_part(table: Table) -> Part | None:
    """Return the key of the messages of a checked table, or None if the table ignores keys."""
    if "key.format" not in table.options:
        return None
    types = {column.name: column for column in physical(table)}
    columns = tuple(types[name] for name in key_columns(table))
    prefix = table.options.get(PREFIX, "")
    return _part(table, "key", table.options["key.format"].lower(), columns, prefix)


def value_part(table: Table) -> Part:
    """Return the value of the messages of a checked table."""
    chosen, side = value_format(table)
    left_out = key_columns(table) if table.options.get(INCLUDE, "ALL").upper() == "EXCEPT_KEY" else ()
    columns = tuple(column for column in physical(table) if column.name not in left_out)
    return _part(table, side, chosen, columns, "")


def is_changelog(table: Table) -> bool:
    """Return True if the values of the messages are changes."""
    return value_format(table)[0] in CHANGELOGS


def value_format(table: Table) -> tuple[str, Literal["value", ""]]:
    """Return the format of values in lower case, and the prefix of its options, without the dot."""
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


def places_of_schemas(table: Table) -> Iterator[Place]:
    """Yield the schema registries and the files with message definitions that a checked table reads."""
    for part in (key_part(table), value_part(table)):
        if part is not None and part.format in OF_REGISTRY:
            url = f"{part.format}.url"
            yield http_host(part.before + url, part.options[url])
        if part is not None and part.format == PROTOBUF:
            yield local_file(part.before + DESCRIPTORS, part.options[DESCRIPTORS], is_definition=True)


def has_binary_format(table: Table) -> bool:
    """Return True if Python needs a library to read or write the messages of a checked table."""
    return any(
        part is not None and part.format in (*IN_AVRO, PROTOBUF) for part in (key_part(table), value_part(table))
    )

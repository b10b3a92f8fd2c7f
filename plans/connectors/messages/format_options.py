"""The formats of messages and their options."""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.connectors.options import option
from hintplan.plans.settings.setting import Setting

DEBEZIUM_AVRO = "debezium-avro-confluent"

CHANGELOGS = ("debezium-json", DEBEZIUM_AVRO, "canal-json")
"""The formats whose values are changes."""

CONFLUENT = "avro-confluent"
AVRO = ("avro", CONFLUENT)

IN_AVRO = (*AVRO, DEBEZIUM_AVRO)

OF_REGISTRY = (CONFLUENT, DEBEZIUM_AVRO)
"""The Avro formats whose messages contain the number of their schema in a registry."""

PROTOBUF = "protobuf"

ROWS = ("json", "csv", "raw", *AVRO, PROTOBUF)
"""The formats whose messages are rows. Keys can have them, too."""

FORMATS = (*ROWS, *CHANGELOGS)

MESSAGE = f"{PROTOBUF}.message-class-name"
DESCRIPTORS = f"{PROTOBUF}.descriptor-file"

_IGNORE = "true: values that cannot be read become NULL, and messages that cannot be read at all are skipped."
_UNREAD = "unreadable values become NULL or are skipped without a warning"
_STANDARD = "The notation of times: SQL is 2020-01-01 00:00:00, ISO-8601 is 2020-01-01T00:00:00."


def _lenient(name: str) -> Setting:
    return option(f"{name}.ignore-parse-errors", "bool", default="false", description=_IGNORE, loses=_UNREAD)


def _times(name: str) -> Setting:
    return option(
        f"{name}.timestamp-format.standard", "choice", choices=("SQL", "ISO-8601"), default="SQL", description=_STANDARD
    )


def _of_registry(name: str) -> tuple[Setting, ...]:
    return (
        option(f"{name}.url", description="The schema registry, as http://host:8081 or https://host."),
        option(
            f"{name}.subject", description="The subject under which a sink registers its schema; topic-value if absent."
        ),
        option(f"{name}.basic-auth.user-info", secret=True, description="user:password, as ${env:NAME}."),
        option(f"{name}.bearer-auth.token", secret=True, description="A token, as ${env:NAME}."),
    )


FORMAT_OPTIONS: tuple[Setting, ...] = (
    _lenient("json"),
    option("json.fail-on-missing-field", "bool", default="false", description="true: a missing field is an error."),
    _times("json"),
    option(
        "json.encode.decimal-as-plain-number",
        "bool",
        default="false",
        description="true: DECIMAL is written without an exponent.",
    ),
    option(
        "json.encode.ignore-null-fields",
        "bool",
        default="false",
        description="true: fields that are NULL are not written.",
    ),
    _lenient("csv"),
    option("csv.field-delimiter", "character", default=",", description="The delimiter between fields."),
    option(
        "csv.quote-character",
        "character",
        default='"',
        description="The quote character around fields; doubled inside.",
    ),
    option("csv.disable-quote-character", "bool", default="false", description="true: fields are never quoted."),
    option("csv.escape-character", "character", description="The escape character."),
    option("csv.null-literal", description="The text that means NULL."),
    option("raw.charset", choices=("UTF-8",), default="UTF-8", description="The encoding of text."),
    option(
        "raw.endianness",
        "choice",
        choices=("big-endian", "little-endian"),
        default="big-endian",
        description="The order of the bytes of a number.",
    ),
    option("avro.encoding", "choice", choices=("binary",), default="binary", description="The encoding of Avro."),
    option(
        "avro.timestamp_mapping.legacy",
        "bool",
        default="true",
        description="true: TIMESTAMP is timestamp-millis in Avro; false: local-timestamp-millis.",
    ),
    *_of_registry(CONFLUENT),
    option(
        MESSAGE, description="The message: its name in Protobuf, or of its class in Java, as com.example.Orders$Order."
    ),
    option(DESCRIPTORS, description="A local file with its definition, as protoc --descriptor_set_out writes it."),
    option(
        "protobuf.ignore-parse-errors",
        "bool",
        default="false",
        description="true: a message that cannot be read is skipped.",
        loses="unreadable messages are skipped without a warning",
    ),
    option(
        "protobuf.read-default-values",
        "bool",
        default="false",
        description="true: an absent field has its default value; false: NULL.",
    ),
    option("protobuf.write-null-string-literal", description="The text for NULL in arrays and maps."),
    _lenient("debezium-json"),
    _times("debezium-json"),
    option(
        "debezium-json.schema-include",
        "bool",
        default="false",
        description="True if messages have a schema next to the payload.",
    ),
    *_of_registry(DEBEZIUM_AVRO),
    _lenient("canal-json"),
    _times("canal-json"),
    option("canal-json.database.include", description="A regular expression of the databases whose changes are read."),
    option("canal-json.table.include", description="A regular expression of the tables whose changes are read."),
)
"""The options of formats.

If ``key.format`` or ``value.format`` selects the format, ``key.`` or ``value.`` precedes the name of an option.
"""

_CHANGES = "let Debezium write the changes, and read them with 'debezium-json'"
_WITHOUT_IDS = "let the messages be written without the id of a schema, and write "
_OF_ROWS: Mapping[str, str] = {
    **dict.fromkeys(("parquet", "orc"), "write 'avro' or 'json': files have this format, not messages"),
    "protobuf-confluent": f"{_WITHOUT_IDS}'protobuf'",
    "protobuf-registry": f"{_WITHOUT_IDS}'protobuf'",
    **dict.fromkeys(("json-confluent", "json-registry"), f"{_WITHOUT_IDS}'json'"),
    "avro-registry": "write 'avro-confluent'",
    "avro-glue": f"{_WITHOUT_IDS}'avro'; or write 'avro-confluent' for a registry of Confluent's",
    "text": "write 'raw' and one column",
    "string": "write 'raw' and one column",
}
INSTEAD_OF_FORMATS: Mapping[str, str] = {**_OF_ROWS, **dict.fromkeys(("maxwell-json", "ogg-json"), _CHANGES)}
"""Hints for message formats that Flink, or an extension of Flink, has and hintplan lacks."""
INSTEAD_OF_KEYS: Mapping[str, str] = {
    **_OF_ROWS,
    **dict.fromkeys(("maxwell-json", "ogg-json", *CHANGELOGS), "write 'json': a key is a row, and no change"),
}
"""Hints for formats that a key cannot have."""


def _of_parts(options: Mapping[str, str]) -> dict[str, str]:
    return {before + name: text for name, text in options.items() for before in ("", "key.", "value.")}


_OF_SCHEMAS = ("url", "subject")
_PARSED = "it is about how Flink parses, and changes no row"
_KEYS_OF_MAPS = "remove it if the table is only read; if it is written, filter out NULL keys in the query"
_CERTIFICATES = (
    "remove it, and install the authority of a registry's certificate in the system of the driver and of each worker"
)
IDLE_OF_FORMATS = _of_parts(
    {
        **{
            f"{name}.{way}.credentials-source": f"'{name}.{way}.{login_option}' sets the user"
            for name in OF_REGISTRY
            for way, login_option in (("basic-auth", "user-info"), ("bearer-auth", "token"))
        },
        "json.decode.json-parser.enabled": _PARSED,
    }
)
"""Options of formats that have no effect here, and the reason."""
INSTEAD_OF_OPTIONS = _of_parts(
    {
        **{f"{name}.schema-registry.{fact}": f"write '{name}.{fact}'" for name in OF_REGISTRY for fact in _OF_SCHEMAS},
        **{f"{name}.schema": "remove it: the columns of the table determine it" for name in OF_REGISTRY},
        **{
            f"{name}.ssl.{store}.{fact}": _CERTIFICATES
            for name in OF_REGISTRY
            for store in ("keystore", "truststore")
            for fact in ("location", "password")
        },
        "json.map-null-key.mode": _KEYS_OF_MAPS,
        "json.map-null-key.literal": _KEYS_OF_MAPS,
        "debezium-json.map-null-key.mode": _KEYS_OF_MAPS,
        "csv.array-element-delimiter": "write 'json': CSV has no arrays here",
        "csv.allow-comments": "remove it, and read the lines with 'raw': WHERE NOT line LIKE '#%'",
        "maxwell-json.ignore-parse-errors": "write 'debezium-json.ignore-parse-errors'",
    }
)
"""Hints for options that only Flink's formats have."""

SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in FORMAT_OPTIONS}
"""The options of formats by name."""

PREFIXED = ("key.", "value.")
"""The prefixes of options for the format of a key or a value."""

INCLUDE = "value.fields-include"
PREFIX = "key.fields-prefix"

PART_OPTIONS: tuple[Setting, ...] = (
    option("key.format", "choice", choices=ROWS, description="The format of keys."),
    option(PREFIX, description="The prefix of the key columns, which the fields of the key do not have."),
    option("value.format", "choice", choices=FORMATS, description="The format of values."),
    option(
        INCLUDE,
        "choice",
        choices=("ALL", "EXCEPT_KEY"),
        default="ALL",
        description="ALL: the value has the columns of the key, too; EXCEPT_KEY: it does not.",
    ),
)

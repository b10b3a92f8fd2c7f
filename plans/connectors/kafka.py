"""The kafka connector: messages of topics. A message is a row or, in a changelog format, a change.

>>> from hintplan.plans.declarations.tables import TableColumn
>>> options = {"connector": "kafka", "topic": "orders", "format": "json", "scan.startup.mode": "earliest-offset"}
>>> table = Table(columns=(TableColumn(name="id", type="INT"),), primary_key=("id",), options=options)
>>> print(*KAFKA.check("tables.orders.options", table))
tables.orders.options.format: a topic of json keeps no row of each primary key: its messages are rows that only come
  hint: use 'connector' = 'upsert-kafka', or remove the PRIMARY KEY
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import ClassVar

from hintplan.plans.connectors.connector import TASKS_WRITE, MetadataKey, Readable, Writable
from hintplan.plans.connectors.messages.check_formats import check_formats
from hintplan.plans.connectors.messages.format_options import (
    FORMAT_OPTIONS,
    FORMATS,
    IDLE_OF_FORMATS,
    INSTEAD_OF_FORMATS,
    INSTEAD_OF_KEYS,
    INSTEAD_OF_OPTIONS,
    PART_OPTIONS,
    PREFIXED,
)
from hintplan.plans.connectors.messages.formats import has_binary_format, is_changelog, key_columns, places_of_schemas
from hintplan.plans.connectors.messages.properties import IDLE as IDLE_PROPERTIES
from hintplan.plans.connectors.messages.properties import PROPERTY, SERVERS, check_properties, places_of_servers
from hintplan.plans.connectors.messages.startup import (
    BOUNDED,
    BOUNDED_OPTIONS,
    STARTUP_OPTIONS,
    check_start,
    check_startup,
    is_bounded_topic,
)
from hintplan.plans.connectors.options import option
from hintplan.plans.connectors.reach import Place
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

SPARK_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
"""The package with which Spark reads and writes topics. PySpark does not include it."""

TOPIC_OPTIONS = (
    option(SERVERS, required=True, description="The bootstrap servers, as host:port,host:port."),
    option("topic", description="The topic; a source may have several, with semicolons between them."),
)
PARALLEL = option(
    "source.max-offsets-per-trigger", "int", description="The number of messages in a micro-batch; all if absent."
)
_OF_FORMATS = "the metadata of a format is not available"
_OF_VALUES = (
    "schema", "ingestion-timestamp", "event-timestamp", "database", "table", "sql-type", "pk-names",
    "source.timestamp", "source.database", "source.schema", "source.table", "source.properties",
)  # fmt: skip

METADATA = (
    MetadataKey(name="topic", type="STRING"),
    MetadataKey(name="partition", type="INT"),
    MetadataKey(name="offset", type="BIGINT"),
    MetadataKey(name="timestamp", type="TIMESTAMP_LTZ(3)"),
    MetadataKey(name="timestamp-type", type="STRING"),
    MetadataKey(name="headers", type="MAP<STRING, BYTES>", writable=True),
    MetadataKey(name="leader-epoch", type="INT", absent="Spark does not provide it"),
    *(MetadataKey(name=f"value.{name}", type="STRING", absent=_OF_FORMATS) for name in _OF_VALUES),
)
"""The metadata of a message. Spark does not write ``timestamp``: the broker or its client sets it."""


def check_topic(path: str, table: Table) -> Iterator[Diagnostic]:
    """Yield a problem for each topic name that brokers do not accept."""
    for name in table.options.get("topic", "x").split(";"):
        if not name or not all(c.isascii() and (c.isalnum() or c in "._-") for c in name) or len(name) > 249:
            message = f"'topic' is {table.options['topic']!r}, expected letters, digits, dots, underscores and hyphens"
            yield Diagnostic(message=message, hint="write 'topic' = 'orders'", path=f"{path}.topic")


OLD_OPTIONS = "write 'connector', and the options as Flink has had them since 1.11"
TAKES_CHANGES = "'connector' = 'kafka', whose messages may be changes"
_NO_TRANSACTIONS = "messages are sent without transactions"
IDLE: Mapping[str, str] = {
    **IDLE_PROPERTIES,
    **IDLE_OF_FORMATS,
    "scan.parallelism": "a task reads each partition of a topic",
    "scan.topic-partition-discovery.interval": "new partitions are found before each micro-batch",
    "sink.parallelism": TASKS_WRITE,
    "sink.transaction-naming-strategy": _NO_TRANSACTIONS,
    "sink.transactional-id-prefix": _NO_TRANSACTIONS,
}
"""Options of Flink's connector that have no effect here, and the reason."""
_FORMATS = {
    **INSTEAD_OF_FORMATS,
    "debezium-avro": "write 'debezium-avro-confluent', for messages whose schemas are in a registry",
}


class TopicConnector(Readable, Writable):
    """Topics of Apache Kafka."""

    families = (PROPERTY, *PREFIXED)
    destination = "topic"
    metadata = METADATA
    times = "in texts"
    splits = True

    def reaches(self, table: Table) -> Iterable[Place]:
        return (*places_of_servers(table), *places_of_schemas(table))

    def extras_of(self, table: Table) -> tuple[str, ...]:
        return ("kafka",) if has_binary_format(table) else ()

    def spark_package(self, table: Table, is_written: bool) -> str:
        return SPARK_PACKAGE


class Kafka(TopicConnector):
    """Topics whose messages are rows or changes."""

    name = "kafka"
    description = "The messages of topics of Apache Kafka."
    read_in_arrow = True
    options = (
        *TOPIC_OPTIONS,
        option("topic-pattern", description="A regular expression of the topics of a source."),
        option("format", "choice", choices=FORMATS, description="The format of values."),
        option("key.fields", description="The columns of the key, with semicolons between them."),
        *PART_OPTIONS,
        *STARTUP_OPTIONS,
        *BOUNDED_OPTIONS,
        PARALLEL,
        option(
            "sink.delivery-guarantee",
            "choice",
            choices=("at-least-once", "exactly-once"),
            default="at-least-once",
            description="The delivery guarantee of a sink after a restart.",
        ),
        option(
            "sink.partitioner",
            "choice",
            choices=("default",),
            default="default",
            description="The partition of a message: the partition of its key, or any partition without a key.",
        ),
        *FORMAT_OPTIONS,
    )
    bounding_option = BOUNDED
    takes_what_is_there = True
    idle: ClassVar[Mapping[str, str]] = IDLE
    instead: ClassVar[Mapping[str, str]] = {
        "sink.semantic": "write 'sink.delivery-guarantee'",
        "connector.type": OLD_OPTIONS,
        "format.type": "write 'format'",
        "update-mode": "remove it: 'format' sets whether messages are changes",
        **INSTEAD_OF_OPTIONS,
    }
    values: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "format": _FORMATS,
        "value.format": _FORMATS,
        "key.format": INSTEAD_OF_KEYS,
        "scan.startup.mode": {
            "group-offsets": "write where the first run begins, later runs continue from their checkpoint: "
            "'earliest-offset' or 'latest-offset', or from where Flink stopped, as "
            "docs/moving-from-flink.md#start-where-flink-stopped describes"
        },
        "sink.partitioner": {
            "fixed": "remove it: the messages of a key go to one partition",
            "round-robin": "remove it: messages without a key go to any partition",
        },
    }
    stands_in: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            (
                "mysql-cdc",
                "postgres-cdc",
                "oracle-cdc",
                "sqlserver-cdc",
                "mongodb-cdc",
                "db2-cdc",
                "tidb-cdc",
                "vitess-cdc",
                "oceanbase-cdc",
            ),
            "let Debezium write the changes to a topic, and read it: 'connector' = 'kafka', 'format' = 'debezium-json'",
        ),
        **dict.fromkeys(
            ("kinesis", "firehose", "sqs", "pulsar", "rabbitmq", "pubsub", "rocketmq"),
            "bring the messages to a topic, such as with Kafka Connect, and use 'connector' = 'kafka'",
        ),
        **dict.fromkeys(("kafka-0.10", "kafka-0.11", "universal"), "write 'connector' = 'kafka'"),
    }

    def source_kinds(self, table: Table) -> RowKinds:
        return ALL_KINDS if is_changelog(table) else INSERT_ONLY

    def why_spark_reads(self, table: Table, columns: Collection[str]) -> str | None:
        return "changelog" if is_changelog(table) else None

    def is_bounded_topic(self, table: Table) -> bool:
        return is_bounded_topic(table)

    def check_scan(self, path: str, table: Table) -> Iterable[Diagnostic]:
        return check_start(path, table)

    def sink_kinds(self, table: Table) -> RowKinds:
        options = table.options
        return () if "topic-pattern" in options or ";" in options.get("topic", "") else self.source_kinds(table)

    def check(self, path: str, table: Table) -> Iterator[Diagnostic]:
        options = table.options
        yield from check_properties(path, table)
        yield from check_startup(path, table)
        yield from check_topic(path, table)
        if ("topic" in options) == ("topic-pattern" in options):
            both = "topic" in options
            yield Diagnostic(
                message="the table has both 'topic' and 'topic-pattern'" if both else "the table names no topic",
                hint="remove one of them" if both else "add 'topic' = '...'",
                path=f"{path}.topic",
            )
        if ("format" in options) == ("value.format" in options):
            both = "format" in options
            yield Diagnostic(
                message="the table has both 'format' and 'value.format'" if both else "the table has no format",
                hint="remove one of them" if both else f"add 'format' = one of {', '.join(FORMATS)}",
                path=f"{path}.format",
            )
        if ("key.fields" in options) != ("key.format" in options):
            present, lacking = ("key.fields", "key.format") if "key.fields" in options else ("key.format", "key.fields")
            yield Diagnostic(
                message=f"{present!r} needs {lacking!r}, which the table does not have",
                hint=f"add '{lacking}' = '...'",
                path=f"{path}.{present}",
            )
        elif "key.fields" in options and not key_columns(table):
            yield Diagnostic(message="'key.fields' is empty", hint="name a column", path=f"{path}.key.fields")
        yield from check_formats(path, table)
        if table.primary_key and not is_changelog(table) and ("format" in options or "value.format" in options):
            chosen = "format" if "format" in options else "value.format"
            yield Diagnostic(
                message=f"a topic of {options[chosen]} keeps no row of each primary key: its messages are rows that "
                "only come",
                hint=f"use 'connector' = 'upsert-{self.name}', or remove the PRIMARY KEY",
                path=f"{path}.{chosen}",
            )
        if options.get("sink.delivery-guarantee", "").lower() == "exactly-once":
            yield Diagnostic(
                message="'sink.delivery-guarantee' = 'exactly-once' is not held: a batch that is replayed is written "
                "again",
                hint=f"write 'at-least-once'; or 'connector' = 'upsert-{self.name}' with a PRIMARY KEY, where "
                "messages that come again change nothing",
                path=f"{path}.sink.delivery-guarantee",
            )

    def overlaps(self, source: Table, sink: Table) -> bool:
        topics = source.options.get("topic", "").split(";")
        return sink.options.get("topic") in topics and source.options.get(SERVERS) == sink.options.get(SERVERS)


KAFKA = Kafka()

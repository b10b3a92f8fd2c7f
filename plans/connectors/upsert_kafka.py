"""The upsert-kafka connector: a topic in which the last message of each key is the row of that primary key.

>>> from hintplan.plans.declarations.tables import TableColumn
>>> options = {"connector": "upsert-kafka", "topic": "totals", "key.format": "json", "value.format": "json"}
>>> table = Table(columns=(TableColumn(name="id", type="INT"),), options=options)
>>> print(*UPSERT_KAFKA.check("tables.totals.options", table))
tables.totals.options.key.format: messages replace each other by their key, but the table has no primary key
  hint: declare PRIMARY KEY (...) NOT ENFORCED
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from hintplan.plans.connectors.connector import BATCHES_WRITE
from hintplan.plans.connectors.kafka import IDLE, PARALLEL, TAKES_CHANGES, TOPIC_OPTIONS, TopicConnector, check_topic
from hintplan.plans.connectors.messages.check_formats import check_formats
from hintplan.plans.connectors.messages.format_options import (
    CHANGELOGS,
    INSTEAD_OF_FORMATS,
    INSTEAD_OF_KEYS,
    INSTEAD_OF_OPTIONS,
    PART_OPTIONS,
    ROWS,
)
from hintplan.plans.connectors.messages.properties import SERVERS, check_properties
from hintplan.plans.declarations.row_kinds import UPSERT_KINDS, RowKinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic

_NO_CHANGES = dict.fromkeys(CHANGELOGS, f"write 'json'; or {TAKES_CHANGES}")
_REQUIRED = ("key.format", "value.format", "topic")


class UpsertKafka(TopicConnector):
    """Topics whose last message of each key is the row of that key."""

    name = "upsert-kafka"
    description = "A topic of Apache Kafka that has the row of each primary key."
    options = tuple(
        replace(
            topic_option,
            required=topic_option.required or topic_option.name in _REQUIRED,
            choices=ROWS if topic_option.name == "value.format" else topic_option.choices,
        )
        for topic_option in (*TOPIC_OPTIONS, *PART_OPTIONS, PARALLEL)
    )
    updates_condition = "with a PRIMARY KEY"
    idle: ClassVar[Mapping[str, str]] = {
        **IDLE,
        "sink.buffer-flush.interval": BATCHES_WRITE,
        "sink.buffer-flush.max-rows": BATCHES_WRITE,
        "sink.delivery-guarantee": "the last message of a key counts, so a repeated message changes nothing",
    }
    instead: ClassVar[Mapping[str, str]] = {
        "format": "write 'key.format' and 'value.format'",
        "scan.startup.mode": "remove it: a topic of upserts is read from its beginning",
        **INSTEAD_OF_OPTIONS,
    }
    values: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "key.format": INSTEAD_OF_KEYS,
        "value.format": {**_NO_CHANGES, **INSTEAD_OF_FORMATS},
    }
    stands_in: ClassVar[Mapping[str, str]] = dict.fromkeys(
        (
            "elasticsearch",
            "elasticsearch-6",
            "elasticsearch-7",
            "elasticsearch-8",
            "opensearch",
            "opensearch-1",
            "opensearch-2",
            "clickhouse",
            "doris",
            "starrocks",
            "cassandra",
        ),
        "write to a topic with 'connector' = 'upsert-kafka', and let a sink of Kafka Connect load it from there",
    )

    def source_kinds(self, table: Table) -> RowKinds:
        return UPSERT_KINDS

    def sink_kinds(self, table: Table) -> RowKinds:
        return UPSERT_KINDS

    def upserts(self, table: Table) -> bool:
        return True

    def check(self, path: str, table: Table) -> Iterator[Diagnostic]:
        yield from check_properties(path, table)
        yield from check_topic(path, table)
        if not table.primary_key:
            yield Diagnostic(
                message="messages replace each other by their key, but the table has no primary key",
                hint="declare PRIMARY KEY (...) NOT ENFORCED",
                path=f"{path}.key.format",
            )
        if ";" in table.options.get("topic", ""):
            yield Diagnostic(message="the table has several topics", hint="name one", path=f"{path}.topic")
        yield from check_formats(path, table, ROWS)

    def overlaps(self, source: Table, sink: Table) -> bool:
        return all(source.options.get(key) == sink.options.get(key) for key in ("topic", SERVERS))


UPSERT_KAFKA = UpsertKafka()

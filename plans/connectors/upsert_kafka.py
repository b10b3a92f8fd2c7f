"""The upsert-kafka connector: a topic in which the last message of each key is the row of that primary key.

>>> from hintplan.plans.declarations.tables import TableColumn
>>> options = {"connector": "upsert-kafka", "topic": "totals", "key.format": "json", "value.format": "json"}
>>> table = Table(columns=(TableColumn(name="id", type="INT"),), options=options)
>>> print(*UPSERT_KAFKA.check("tables.totals.options", table))
tables.totals.options.key.format: messages replace each other by their key, but the table has no primary key
  hint: declare PRIMARY KEY (...) NOT ENFORCED
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hintplan.plans.connectors.connector import BATCHES_WRITE, Connector, Reading, Writing
from hintplan.plans.connectors.kafka import (
    IDLE,
    METADATA,
    PARALLEL,
    SPARK_PACKAGE,
    TAKES_CHANGES,
    TOPIC_OPTIONS,
    check_topic,
    extras_of_topics,
)
from hintplan.plans.connectors.messages.check_formats import check_formats
from hintplan.plans.connectors.messages.format_options import (
    CHANGELOGS,
    INSTEAD_OF_FORMATS,
    INSTEAD_OF_KEYS,
    INSTEAD_OF_OPTIONS,
    PART_OPTIONS,
    PREFIXED,
    ROWS,
)
from hintplan.plans.connectors.messages.formats import places_of_schemas
from hintplan.plans.connectors.messages.properties import PROPERTY, SERVERS, check_properties, reached
from hintplan.plans.declarations.row_kinds import UPSERT_KINDS
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic


def _check(path: str, table: Table) -> Iterator[Diagnostic]:
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


_NO_CHANGES = dict.fromkeys(CHANGELOGS, f"write 'json'; or {TAKES_CHANGES}")
_REQUIRED = ("key.format", "value.format", "topic")

UPSERT_KAFKA = Connector(
    name="upsert-kafka",
    description="A topic of Apache Kafka that has the row of each primary key.",
    options=tuple(
        replace(
            topic_option,
            required=topic_option.required or topic_option.name in _REQUIRED,
            choices=ROWS if topic_option.name == "value.format" else topic_option.choices,
        )
        for topic_option in (*TOPIC_OPTIONS, *PART_OPTIONS, PARALLEL)
    ),
    families=(PROPERTY, *PREFIXED),
    reading=Reading(kinds=lambda table: UPSERT_KINDS, is_bounded=lambda table: True),
    writing=Writing(
        kinds=lambda table: UPSERT_KINDS, upserts=lambda table: True, place="topic", takes_updates="with a PRIMARY KEY"
    ),
    metadata=METADATA,
    check=_check,
    reaches=lambda table: (*reached(table), *places_of_schemas(table)),
    overlaps=lambda source, sink: all(source.options.get(key) == sink.options.get(key) for key in ("topic", SERVERS)),
    extras_of=extras_of_topics,
    spark_package=lambda table, is_written: SPARK_PACKAGE,
    times="in texts",
    idle={
        **IDLE,
        "sink.buffer-flush.interval": BATCHES_WRITE,
        "sink.buffer-flush.max-rows": BATCHES_WRITE,
        "sink.delivery-guarantee": "the last message of a key counts, so a repeated message changes nothing",
    },
    instead={
        "format": "write 'key.format' and 'value.format'",
        "scan.startup.mode": "leave it out: a topic of upserts is read from its beginning",
        **INSTEAD_OF_OPTIONS,
    },
    values={"key.format": INSTEAD_OF_KEYS, "value.format": {**_NO_CHANGES, **INSTEAD_OF_FORMATS}},
    stands_in=dict.fromkeys(
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
    ),
)

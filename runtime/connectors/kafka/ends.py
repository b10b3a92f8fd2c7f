"""The end offsets of a topic, read by Kafka's own client in Spark's JVM, and the messages that a topic has lost.

Messages that a broker deletes by age or size still count, because only the start of a partition moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.connectors.connector import NOT_THERE, Mark, SinkFacts
from hintplan.runtime.connectors.kafka.client import client_options
from hintplan.runtime.lookup.sources.failures import redacted
from hintplan.runtime.spark.failure import is_transient, root_cause

_SECONDS = 10.0
"""Seconds between two marks of a run. After an older mark, only the loss of later messages goes unnoticed."""
_UNKNOWN = "UnknownTopicOrPartitionException"
_NAMELESS = "AAAAAAAAAAAAAAAAAAAAAA"
"""The topic id from a broker that does not support topic ids."""


@dataclass(slots=True, kw_only=True)
class Marking:
    """Marks the ends of the topic of ``table`` after a batch, at most once per interval."""

    table: Table
    mark: Mark
    clock: Callable[[], float] = time.monotonic
    _last: float | None = field(default=None)

    def __call__(self, spark: SparkSession, batch: int) -> None:
        """Mark the end offsets after ``batch``; if the broker does not answer, the next batch tries again."""
        if self._last is not None and self.clock() < self._last + _SECONDS:
            return
        try:
            self.mark(batch, ends(spark, self.table))
        except (Py4JError, _Unknown):
            return
        self._last = self.clock()


def ends(spark: SparkSession, table: Table) -> dict[str, Any]:
    """Return the id of the topic and the end of each partition; raise Py4JError if the broker does not answer."""
    jvm: Any = spark._jvm
    topic = table.options["topic"]
    with _admin(spark, table) as admin:
        description = _topic(admin, topic)
        latest = jvm.org.apache.kafka.clients.admin.OffsetSpec.latest()
        partitions = {
            int(partition.partition()): jvm.org.apache.kafka.common.TopicPartition(topic, partition.partition())
            for partition in description.partitions()
        }
        offsets = admin.listOffsets(dict.fromkeys(partitions.values(), latest)).all().get()
        return {
            "topic": str(description.topicId()),
            "ends": {
                str(number): int(offsets.get(topic_partition).offset())
                for number, topic_partition in partitions.items()
            },
        }


def missing_messages(spark: SparkSession, table: Table, facts: SinkFacts) -> str | None:
    """Return the part of ``facts`` that the topic lacks; None if nothing is missing.

    Raises Unavailable if no broker answers.
    """
    try:
        current = ends(spark, table)
    except _Unknown:
        return NOT_THERE
    except Py4JJavaError as error:
        kind = Unavailable if is_transient(error) else RunError
        cause = redacted(root_cause(error), table.options)
        raise kind(
            f"the end of topic {table.options['topic']!r}, to which this checkpoint has written, is unknown: {cause}",
            hint="is the broker up, and may the user of the run describe the topic?",
        ) from error
    if _NAMELESS not in (current["topic"], facts["topic"]) and current["topic"] != facts["topic"]:
        return "was recreated"
    for number, end in facts["ends"].items():
        ends_at = current["ends"].get(number)
        if ends_at is None:
            return f"no longer has partition {number}"
        if ends_at < end:
            return f"ends at offset {ends_at} in partition {number}, and ended at {end}"
    return None


class _Unknown(Exception):
    """The topic does not exist."""


def _topic(admin: JavaObject, topic: str) -> JavaObject:
    try:
        return admin.describeTopics([topic]).allTopicNames().get().get(topic)
    except Py4JJavaError as error:
        if _UNKNOWN in str(error.java_exception.toString()):
            raise _Unknown from error
        raise


@contextmanager
def _admin(spark: SparkSession, table: Table) -> Iterator[JavaObject]:
    settings = {name.removeprefix("kafka."): value for name, value in client_options(table, {}).items()}
    jvm: Any = spark._jvm
    admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
    try:
        yield admin
    finally:
        admin.close()

"""Where the partitions of a topic end, by Kafka's own client in Spark's JVM: what a sink had, and what a topic lacks.

Messages that a broker drops by age or size stay counted, for only the start of a partition moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.connectors.connector import NOT_THERE, Mark
from hintplan.runtime.connectors.kafka.client import client_options
from hintplan.runtime.lookup.sources.failures import redacted
from hintplan.runtime.spark.failure import is_transient, root_cause

_SECONDS = 10.0
"""Between two marks of a run. A mark that is older lets pass only a topic that was put back to what came after it."""
_UNKNOWN = "UnknownTopicOrPartitionException"
_NAMELESS = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of a topic on a broker that gives topics none."""


@dataclass(slots=True, kw_only=True)
class Marking:
    """Marks the ends of the topic of ``table`` after a batch, unless it has just done so."""

    table: Table
    mark: Mark
    clock: Callable[[], float] = time.monotonic
    _last: float | None = field(default=None)

    def __call__(self, spark: SparkSession, batch: int) -> None:
        """Mark what the topic has since ``batch``; a broker that does not answer now is asked after the next one."""
        if self._last is not None and self.clock() < self._last + _SECONDS:
            return
        try:
            self.mark(batch, ends(spark, self.table))
        except (Py4JError, _Unknown):
            return
        self._last = self.clock()


def ends(spark: SparkSession, table: Table) -> dict[str, Any]:
    """Return the id of the topic and the end of each partition; Py4JError if the broker does not say."""
    jvm: Any = spark._jvm
    topic = table.options["topic"]
    with _admin(spark, table) as admin:
        about = _topic(admin, topic)
        latest = jvm.org.apache.kafka.clients.admin.OffsetSpec.latest()
        partitions = {
            int(found.partition()): jvm.org.apache.kafka.common.TopicPartition(topic, found.partition())
            for found in about.partitions()
        }
        told = admin.listOffsets(dict.fromkeys(partitions.values(), latest)).all().get()
        return {
            "topic": str(about.topicId()),
            "ends": {str(number): int(told.get(place).offset()) for number, place in partitions.items()},
        }


def lacks(spark: SparkSession, table: Table, writer: Callable[[], str | None], had: Mapping[str, Any]) -> str | None:
    """Return what the topic lacks of what it ``had``; None if it has all of that. Unavailable if no broker says."""
    try:
        there = ends(spark, table)
    except _Unknown:
        return NOT_THERE
    except Py4JJavaError as error:
        kind = Unavailable if is_transient(error) else RunError
        said = redacted(root_cause(error), table.options)
        raise kind(
            f"nobody says where topic {table.options['topic']!r} ends, which this checkpoint has written to: {said}",
            hint="is the broker up, and may the user of the run describe the topic?",
        ) from error
    if _NAMELESS not in (there["topic"], had["topic"]) and there["topic"] != had["topic"]:
        return "was made anew"
    for number, end in had["ends"].items():
        ends_at = there["ends"].get(number)
        if ends_at is None:
            return f"has no partition {number} any more"
        if ends_at < end:
            return f"ends at offset {ends_at} in partition {number}, and ended at {end}"
    return None


class _Unknown(Exception):
    """There is no topic of that name."""


def _topic(admin: Any, topic: str) -> Any:
    try:
        return admin.describeTopics([topic]).allTopicNames().get().get(topic)
    except Py4JJavaError as error:
        if _UNKNOWN in str(error.java_exception.toString()):
            raise _Unknown from error
        raise


@contextmanager
def _admin(spark: SparkSession, table: Table) -> Iterator[Any]:
    settings = {name.removeprefix("kafka."): value for name, value in client_options(table, {}).items()}
    jvm: Any = spark._jvm
    admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
    try:
        yield admin
    finally:
        admin.close()

"""The upsert-kafka connector: reads and writes a topic as upserts, in which the last message of a key wins."""

from __future__ import annotations

from hintplan.plans.connectors.upsert_kafka import UPSERT_KAFKA
from hintplan.runtime.connectors.kafka.source import TopicSource
from hintplan.runtime.connectors.kafka.write import TopicSink

__all__ = ["CODE"]


class UpsertKafkaCode(TopicSource, TopicSink):
    """Topics whose last message of each key is the row of that key."""

    connector = UPSERT_KAFKA
    upserts = True


CODE = UpsertKafkaCode()

"""The kafka connector: reads topics as streams of rows or changes, and writes rows and changes as messages."""

from __future__ import annotations

from hintplan.plans.connectors.kafka import KAFKA
from hintplan.runtime.connectors.kafka.source import ArrowTopicSource
from hintplan.runtime.connectors.kafka.write import ArrowTopicSink

__all__ = ["CODE"]


class KafkaCode(ArrowTopicSource, ArrowTopicSink):
    """Topics whose messages are rows or changes."""

    connector = KAFKA
    upserts = False


CODE = KafkaCode()

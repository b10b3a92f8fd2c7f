"""The upsert-kafka connector: reads and writes a topic as upserts, in which the last message of a key wins."""

from __future__ import annotations

from functools import partial

from hintplan.plans.connectors.upsert_kafka import UPSERT_KAFKA
from hintplan.runtime.connectors.connector import ConnectorCode
from hintplan.runtime.connectors.kafka.ends import lacks
from hintplan.runtime.connectors.kafka.source import read, read_batch
from hintplan.runtime.connectors.kafka.write import batch_writer, micro_batch_writer, writer

__all__ = ["CODE"]

CODE = ConnectorCode(
    connector=UPSERT_KAFKA,
    read=partial(read, upserts=True),
    read_batch=read_batch,
    writer=partial(writer, upserts=True),
    micro_batch_writer=partial(micro_batch_writer, upserts=True),
    batch_writer=partial(batch_writer, upserts=True),
    lacks=lacks,
)

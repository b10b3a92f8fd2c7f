"""The kafka connector: reads topics as streams of rows or changes, and writes rows and changes as messages."""

from __future__ import annotations

from functools import partial

from hintplan.plans.connectors.kafka import KAFKA
from hintplan.runtime.connectors.connector import ConnectorCode
from hintplan.runtime.connectors.kafka.ends import lacks
from hintplan.runtime.connectors.kafka.source import read, read_batch, read_in_arrow
from hintplan.runtime.connectors.kafka.write import arrow_writer, batch_writer, micro_batch_writer, writer

__all__ = ["CODE"]

CODE = ConnectorCode(
    connector=KAFKA,
    read=partial(read, upserts=False),
    read_in_arrow=read_in_arrow,
    read_batch=read_batch,
    writer=partial(writer, upserts=False),
    arrow_writer=arrow_writer,
    micro_batch_writer=partial(micro_batch_writer, upserts=False),
    batch_writer=partial(batch_writer, upserts=False),
    lacks=lacks,
)

"""The delta connector: tables of Delta Lake, which delta-rs commits to, without any jar in Spark."""

from __future__ import annotations

from plans.connectors.delta import DELTA
from runtime.connectors.connector import ConnectorCode
from runtime.connectors.delta.read import read_batch
from runtime.connectors.delta.write import batch_overwriter, batch_writer, batches_had, micro_batch_writer, writer

__all__ = ["CODE"]

CODE = ConnectorCode(
    connector=DELTA,
    read_batch=read_batch,
    writer=writer,
    micro_batch_writer=micro_batch_writer,
    batch_writer=batch_writer,
    batch_overwriter=batch_overwriter,
    batches_had=batches_had,
)

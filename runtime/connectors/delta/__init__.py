"""The delta connector: tables of Delta Lake, which delta-rs commits to, without any jar in Spark."""

from __future__ import annotations

from plans.connectors.delta import DELTA
from runtime.connectors.connector import ConnectorCode
from runtime.connectors.delta.write import batch_writer, batches_had, micro_batch_writer, writer

__all__ = ["CODE"]

CODE = ConnectorCode(
    connector=DELTA,
    writer=writer,
    micro_batch_writer=micro_batch_writer,
    batch_writer=batch_writer,
    batches_had=batches_had,
)

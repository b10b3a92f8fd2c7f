"""The iceberg connector: tables of Apache Iceberg, which pyiceberg commits to, without any jar in Spark."""

from __future__ import annotations

from plans.connectors.iceberg import ICEBERG
from runtime.connectors.connector import ConnectorCode
from runtime.connectors.iceberg.read import read_batch
from runtime.connectors.iceberg.write import batch_overwriter, batch_writer, batches_had, micro_batch_writer, writer

__all__ = ["CODE"]

CODE = ConnectorCode(
    connector=ICEBERG,
    read_batch=read_batch,
    writer=writer,
    micro_batch_writer=micro_batch_writer,
    batch_writer=batch_writer,
    batch_overwriter=batch_overwriter,
    batches_had=batches_had,
)

"""The iceberg connector: Apache Iceberg tables, to which pyiceberg commits; Spark needs no jar."""

from __future__ import annotations

from hintplan.plans.connectors.iceberg import ICEBERG
from hintplan.runtime.connectors.iceberg.read import read_batch
from hintplan.runtime.connectors.iceberg.write import batches_had, lacks, sink
from hintplan.runtime.connectors.lakes.sink import code_of

__all__ = ["CODE"]

CODE = code_of(ICEBERG, read_batch=read_batch, sink=sink, batches_had=batches_had, lacks=lacks)

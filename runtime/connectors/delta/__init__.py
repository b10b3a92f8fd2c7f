"""The delta connector: Delta Lake tables, to which delta-rs commits; Spark needs no jar."""

from __future__ import annotations

from hintplan.plans.connectors.delta import DELTA
from hintplan.runtime.connectors.delta.read import read_batch
from hintplan.runtime.connectors.delta.write import batches_had, lacks, sink
from hintplan.runtime.connectors.lakes.sink import code_of

__all__ = ["CODE"]

CODE = code_of(DELTA, read_batch=read_batch, sink=sink, batches_had=batches_had, lacks=lacks)

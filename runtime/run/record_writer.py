"""Records which operators have written state to a checkpoint, so that a later run detects lost state.

writer = RecordWriter(spark=spark, checkpoint="/data/checkpoints/revenue", record=record)
writer.write({"sink_r": {"join_o_c"}})
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hintplan.plans.checkpoint.continuation import record_of_written
from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.record import write_record


@dataclass(slots=True, kw_only=True)
class RecordWriter:
    """Updates ``record``, the current record of ``checkpoint``."""

    spark: SparkSession
    checkpoint: str
    record: CheckpointRecord

    def write(self, operators: Mapping[str, Collection[str]]) -> None:
        """Add the operators of each query that have written state in all partitions, in a batch that has ended.

        The next call retries a failed write.
        """
        wanted = record_of_written(self.record, operators)
        if wanted is not None:
            with suppress(RunError, PySparkException, Py4JError, OSError):
                write_record(self.spark, self.checkpoint, wanted)
                self.record = wanted

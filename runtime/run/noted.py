"""Records which operators have written state to a checkpoint, so that a later run detects lost state.

note = noted(spark, "/data/checkpoints/revenue", record)
note({"sink_r": {"join_o_c"}})
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hintplan.plans.checkpoint.continuation import record_of_written
from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.record import write_record

Note = Callable[[Mapping[str, Collection[str]]], None]
"""A function of the operators of each query that have written state in all partitions, in a batch that has ended."""


def noted(spark: SparkSession, checkpoint: str, record: CheckpointRecord) -> Note:
    """Return a function that updates ``record``, the current record of ``checkpoint``.

    The function retries a failed write at its next call.
    """

    def note(operators: Mapping[str, Collection[str]]) -> None:
        nonlocal record
        wanted = record_of_written(record, operators)
        if wanted is not None:
            with suppress(RunError, PySparkException, Py4JError, OSError):
                write_record(spark, checkpoint, wanted)
                record = wanted

    return note

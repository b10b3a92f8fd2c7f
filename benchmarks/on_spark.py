"""Runs a workload on Spark, by this engine or by Spark's own operators; a process of its own for the memory's sake.

This engine compiles the workload's SQL and runs the plan, as ``hintplan run --once`` does. The others read what the
plan reads. A part of the workload may run first, so that the JVM and the workers are warm. What is asked comes pickled
on standard input; the answer, one line of JSON, has the rows and the milliseconds of each micro-batch of the last run,
from trigger to commit, the CPU time of all processes, and what the stateful operator kept.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memory import cpu_seconds
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from workloads import FILES, Workload, script

from hintplan import compile_sql
from hintplan.runtime.run.execute import execute
from hintplan.runtime.spark.session import prepare_session, start_session

__all__ = ["OURS", "STORES", "Task"]

OURS = "this engine"
PARTITIONS = 2
_STORES = "org.apache.spark.sql.execution.streaming.state."
STATEFUL = ("aggregate", "join", "rank", "deduplicate")
STORES = {
    "Spark native, RocksDB": _STORES + "RocksDBStateStoreProvider",
    "Spark native, heap": _STORES + "HDFSBackedStateStoreProvider",
    "transformWithState per key": _STORES + "RocksDBStateStoreProvider",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What ``engine`` is to run, one workload after the other; the last one counts."""

    engine: str
    workloads: tuple[Workload, ...]


def main() -> None:
    # The parent pickles it under the name by which it knows this module.
    sys.modules["on_spark"] = sys.modules[__name__]
    task: Task = pickle.load(sys.stdin.buffer)
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as scratch:
        conf = {"spark.driver.memory": "6g", "spark.local.dir": scratch, "spark.sql.warehouse.dir": scratch}
        spark = start_session(f"local[{PARTITIONS}]", conf)
        for workload in task.workloads:
            before = cpu_seconds(os.getpid())
            answer = ours(spark, workload) if task.engine == OURS else native(spark, workload, task.engine)
        print(json.dumps({**answer, "cpu_seconds": cpu_seconds(os.getpid()) - before}), flush=True)
        spark.stop()


def ours(spark: SparkSession, workload: Workload) -> dict[str, Any]:
    """Rows and milliseconds of each micro-batch, and what state there was in the end."""
    text = script(workload, options=f", 'source.max-files-per-trigger' = '{FILES}'", primary_keys=False)
    execution = execute(compile_sql(text, {"parallelism.default": str(PARTITIONS)}), spark, once=True)
    batches, ended = [], False
    while not ended:
        ended = execution.await_termination(1.0)
        batches += execution.new_batches()
    (state,) = (kept for name, kept in batches[-1].operators.items() if name.startswith(STATEFUL))
    return {
        "rows": [batch.rows_in for batch in batches],
        "milliseconds": [batch.duration_ms for batch in batches],
        "state_rows": state.state_rows,
        "state_bytes": state.state_bytes,
    }


def native(spark: SparkSession, workload: Workload, engine: str) -> dict[str, Any]:
    """As :func:`ours`, without the state."""
    own = prepare_session(spark, time_zone="UTC", once=True)
    own.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    own.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
    own.conf.set("spark.sql.streaming.stateStore.providerClass", STORES[engine])
    inputs = []
    for table in workload.tables:
        schema = own.read.parquet(str(table.directory)).schema
        reader = own.readStream.schema(schema).option("maxFilesPerTrigger", FILES)
        inputs.append(reader.parquet(str(table.directory)))
    if len(inputs) == 2:
        frame, mode = inputs[0].join(inputs[1], "k"), "append"
    elif engine == "transformWithState per key":
        frame, mode = per_key(inputs[0]), "append"
    elif workload.natively and "deduplicate" in workload.name:
        frame, mode = inputs[0].dropDuplicates(["k"]), "append"
    else:
        frame, mode = inputs[0].groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("s")), "update"
    with tempfile.TemporaryDirectory(prefix="hintplan-benchmark-") as checkpoint:
        writer = frame.writeStream.format("noop").outputMode(mode).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        batches = [progress for progress in query.recentProgress if progress.numInputRows]
    return {
        "rows": [batch.numInputRows for batch in batches],
        "milliseconds": [batch.durationMs["triggerExecution"] for batch in batches],
    }


class PerKey(StatefulProcessor):
    """COUNT and SUM in a ValueState per key: the usual way to write a stateful operator in PySpark."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("sums", "n bigint, s double")

    def handleInputRows(self, key, rows, timerValues) -> Iterator[Row]:
        count, total = self.state.get() if self.state.exists() else (0, 0.0)
        for row in rows:
            count += 1
            total += row.v
        self.state.update((count, total))
        yield Row(k=key[0], n=count, s=total)

    def close(self) -> None:
        del self.state


def per_key(frame: DataFrame) -> DataFrame:
    return frame.groupBy("k").transformWithState(PerKey(), "k bigint, n bigint, s double", "Append", "None")


if __name__ == "__main__":
    main()

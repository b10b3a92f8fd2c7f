"""Spark's files of a checkpoint: its queries, the last committed batch of each, and what the state store has of them.

Everything is read through Spark, hence on any file system that Spark knows, and read only: the state data source loads
a committed version into a directory of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from plans.errors import RunError
from runtime.engine.saved import Saved, decode
from runtime.inspect.counts import Counted
from runtime.inspect.partition import COUNTED_DDL, Question, count_partition, read_counted
from runtime.spark.path_patterns import literally


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The last committed batch of a query; ``started`` is when, in ms, which is also its operators' ``now``."""

    number: int
    started: int


def committed_batches(spark: SparkSession, checkpoint: str) -> dict[str, Batch | None]:
    """The last committed batch of each query in ``checkpoint``, None for one that has committed none."""
    root = literally(checkpoint.rstrip("/"))
    found: dict[str, int | None] = {path[-2]: None for path in _paths(spark, f"{root}/*/metadata")}
    for *_, query, _folder, name in _paths(spark, f"{root}/*/commits/*"):
        if name.isdigit():
            found[query] = max(int(name), found.get(query) or 0)
    files = [f"{root}/{query}/offsets/{number}" for query, number in found.items() if number is not None]
    if not files:
        return dict.fromkeys(found)
    read = spark.read.text(files, wholetext=True).select("value", "_metadata.file_path").collect()
    started = {_parts(row.file_path)[-3]: _started(row.value, row.file_path) for row in read}
    return {
        query: None if number is None else Batch(number=number, started=started[query])
        for query, number in found.items()
    }


def saved_states(
    spark: SparkSession, checkpoint: str, batches: Mapping[str, Batch]
) -> dict[tuple[str, int], dict[int, Saved]]:
    """What each stateful operator of Spark, by query and number, has saved in each partition that has state."""
    root = checkpoint.rstrip("/")
    if not batches:
        return {}
    listed = [
        spark.read.format("state-metadata").load(f"{root}/{query}").select(F.lit(query).alias("query"), "operatorId")
        for query in batches
    ]
    numbers = sorted({(row.query, row.operatorId) for row in reduce(DataFrame.unionAll, listed).collect()})
    if not numbers:
        return {}
    frames = [
        _variable(spark, root, query, number, batches[query].number, "manifest").select(
            F.lit(query).alias("query"), F.lit(number).alias("number"), "partition_id", "value"
        )
        for query, number in numbers
    ]
    found: dict[tuple[str, int], dict[int, Saved]] = {}
    for row in reduce(DataFrame.unionAll, frames).collect():
        saved = decode(tuple(row.value), f"{row.number} of Spark in {row.query}")
        found.setdefault((row.query, row.number), {})[row.partition_id] = saved
    return found


def counted(
    spark: SparkSession, checkpoint: str, batches: Mapping[str, Batch], questions: Sequence[Question]
) -> dict[tuple[str, int, str], list[Counted]]:
    """The answers to ``questions``, by query, number and table, one per partition with state.

    RunError if a segment is missing.
    """
    root = checkpoint.rstrip("/")
    if not questions:
        return {}
    frames = [
        _variable(spark, root, one.query, one.number, batches[one.query].number, "segments")
        .select(
            F.col("partition_id").alias("partition"),
            F.col("user_map_key.id").alias("id"),
            F.col("user_map_value.data").alias("data"),
        )
        .mapInArrow(partial(count_partition, question=one), COUNTED_DDL)
        for one in questions
    ]
    found: dict[tuple[str, int, str], list[Counted]] = {}
    answered = set()
    for row in reduce(DataFrame.unionAll, frames).collect():
        answered.add((row.query, row.number, row.partition))
        found.setdefault((row.query, row.number, row.table), []).append(read_counted(row.counted, row.shown))
    for one in questions:
        for number, saved in sorted(one.saved.items()):
            if saved.segments and (one.query, one.number, number) not in answered:
                raise RunError(
                    f"the state store of {one.query} has lost the segments of operator {saved.operator} in partition "
                    f"{number}",
                    hint="restore the checkpoint directory from a backup, or start with a new one",
                )
    return found


def _variable(spark: SparkSession, root: str, query: str, number: int, batch: int, name: str) -> DataFrame:
    options = {"operatorId": str(number), "batchId": str(batch), "stateVarName": name}
    return spark.read.format("statestore").options(**options).load(f"{root}/{query}")


def _paths(spark: SparkSession, pattern: str) -> list[list[str]]:
    try:
        rows = spark.read.format("binaryFile").load(pattern).select("path").collect()
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return []
    return [_parts(row.path) for row in rows]


def _parts(path: str) -> list[str]:
    return unquote(path).split("/")


def _started(text: str, path: str) -> int:
    """The time in a file of Spark's offset log: a line with its version, one of JSON, and the offsets."""
    try:
        return int(json.loads(text.splitlines()[1])["batchTimestampMs"])
    except (ValueError, KeyError, IndexError) as error:
        raise RunError(
            f"{path} is not what Spark writes there: {error}", hint="restore the checkpoint from a backup"
        ) from error

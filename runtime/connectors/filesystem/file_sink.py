"""Spark's own file sink, given one micro-batch at a time, after what the run looks at before a batch is written.

It is the sink that ``writeStream.format("json")`` has: it lists the files of each batch in its log beside them, and
skips a batch that the log has. On classic Spark only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from hintplan.runtime.spark.versions import facts

_DATASOURCES = "org.apache.spark.sql.execution.datasources"
FORMAT_CLASSES = {
    "json": f"{_DATASOURCES}.json.JsonFileFormat",
    "csv": f"{_DATASOURCES}.csv.CSVFileFormat",
    "parquet": f"{_DATASOURCES}.parquet.ParquetFileFormat",
    "orc": f"{_DATASOURCES}.orc.OrcFileFormat",
    "text": f"{_DATASOURCES}.text.TextFileFormat",
    "avro": "org.apache.spark.sql.avro.AvroFileFormat",
}
"""What Spark writes files of each format with."""


def add_files(
    spark: SparkSession,
    file_format: str,
    path: str,
    partitioned_by: Sequence[str],
    options: Mapping[str, str],
    rows: Any,
    batch: int,
) -> None:
    """Add ``rows``, a DataFrame of the JVM, as the files of ``batch`` below ``path``, unless they are there."""
    jvm: Any = spark._jvm
    found = jvm.PythonUtils.toScalaMap(dict(options))
    partitions = jvm.PythonUtils.toSeq(list(partitioned_by))
    of_files = _class(jvm, facts(spark.version).file_sink)
    there = jvm.org.apache.hadoop.fs.Path(path)
    whole = there.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).makeQualified(there).toString()
    sink = of_files(spark._jsparkSession, whole, _class(jvm, FORMAT_CLASSES[file_format])(), partitions, found)
    sink.addBatch(batch, rows)


def _class(jvm: Any, name: str) -> Any:
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found

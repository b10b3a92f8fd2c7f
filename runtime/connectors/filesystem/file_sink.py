"""Spark's own file sink, called with one micro-batch at a time, after the run has done its checks for the batch.

It is the sink of ``writeStream.format("json")``: it lists the files of each batch in a log in the same directory, and
skips a batch that is in the log. On classic Spark only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from py4j.java_gateway import JavaClass, JavaObject, JVMView
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
"""Spark's classes that write each file format."""


def add_batch_files(
    spark: SparkSession,
    file_format: str,
    path: str,
    partitioned_by: Sequence[str],
    options: Mapping[str, str],
    rows: JavaObject,
    batch: int,
) -> None:
    """Add ``rows``, a DataFrame of the JVM, as the files of ``batch`` below ``path``, unless the log has that batch."""
    jvm: Any = spark._jvm
    settings = jvm.PythonUtils.toScalaMap(dict(options))
    partitions = jvm.PythonUtils.toSeq(list(partitioned_by))
    of_files = java_class(jvm, facts(spark.version).file_sink)
    folder = jvm.org.apache.hadoop.fs.Path(path)
    whole = folder.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).makeQualified(folder).toString()
    sink = of_files(spark._jsparkSession, whole, java_class(jvm, FORMAT_CLASSES[file_format])(), partitions, settings)
    sink.addBatch(batch, rows)


def java_class(jvm: JVMView, name: str) -> JavaClass:
    """Return a class of the JVM by its full name."""
    member = jvm
    for part in name.split("."):
        member = getattr(member, part)
    return member

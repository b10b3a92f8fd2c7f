"""Files of CSV and JSON that tasks write from rows in Arrow, with the bytes, names and log of Spark's file sink.

Spark writes the files instead if they are not on a local file system, if the table has partitions, if a type or an
option is not known here, or if a setting of the session changes what Spark would write.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hintplan.plans.connectors.files.csv_marks import is_quoted
from hintplan.plans.connectors.files.formats import TEXTS
from hintplan.plans.connectors.table import option
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.connector import ArrowSink, BatchWriter, TableWrite
from hintplan.runtime.connectors.filesystem.file_systems import is_local
from hintplan.runtime.connectors.filesystem.row_kinds import OP
from hintplan.runtime.connectors.filesystem.spark_options import write_options
from hintplan.runtime.connectors.filesystem.success import mark_batch
from hintplan.runtime.connectors.filesystem.text_sink.line_files import WRITTEN, LineFiles, write_file, write_in_task
from hintplan.runtime.connectors.filesystem.text_sink.lines import COMMENT, LineStyle, lines_writer
from hintplan.runtime.connectors.filesystem.text_sink.sink_log import SinkLog, access_rights, local_folder
from hintplan.runtime.connectors.filesystem.write import FileWriter, refuse_misfits
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.engine.each_batch import written_by
from hintplan.runtime.engine.row_order import ROW_ORDER
from hintplan.runtime.engine.rows import ROWS, ArrowRows
from hintplan.runtime.operator import KIND
from hintplan.runtime.spark.session import is_remote

_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "spark.sql.files.maxRecordsPerFile": ("0",),
    "spark.sql.legacy.nullValueWrittenAsQuotedEmptyStringCsv": ("false",),
    "spark.sql.legacy.timeParserPolicy": ("CORRECTED", "EXCEPTION"),
    "spark.sql.streaming.commitProtocolClass": (),
}
"""Settings of a session on which Spark's files depend, and the values that mean the same as no value."""

_SPECULATION = "spark.speculation"
_COMPRESSED = "mapreduce.output.fileoutputformat.compress"
_IN_VALUES = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-.: ")
"""The characters of values that are not text. As delimiters, they would bring such values into quotes."""


class ArrowFileWriter(FileWriter, ArrowSink):
    """Appends files that tasks write from rows in Arrow."""

    def arrow_writer(
        self, write: TableWrite, rows: ArrowRows
    ) -> tuple[ArrowRows, Callable[[DataFrame], DataStreamWriter]] | None:
        """Return the facts of the written files, and a writer that adds the files of each micro-batch to the log.

        None if Spark must write the files.
        """
        files = line_files(rows.frame.sparkSession, write, rows.schema)
        if files is None:
            return None
        refuse_misfits(replace(write, changelog=KIND in rows.schema.names))
        add = partial(_add_written, table=write.table, files=files)
        return _written(rows, files), lambda facts: written_by(add, facts, write.checkpoint)

    def micro_batch_writer(self, write: TableWrite) -> BatchWriter:
        """Return a function that writes a micro-batch, in the cases and with the errors of :class:`FileWriter`.

        Rows on the driver are written there.
        """
        return partial(_write, write=write, in_spark=super().micro_batch_writer(write))


def _add_written(facts: DataFrame, batch: int, *, table: Table, files: LineFiles) -> None:
    _add(facts.sparkSession, table, files, batch, lambda: facts.toArrow())


def _write(micro_batch: MicroBatch, batch: int, *, write: TableWrite, in_spark: BatchWriter) -> int:
    spark, rows = micro_batch.spark, micro_batch.in_arrow
    if micro_batch.is_on_driver:
        table = micro_batch.on_driver()
        files = line_files(spark, write, table.schema)
        if files is not None:
            name = files.file_name(batch, 0, 0)
            return _add(spark, write.table, files, batch, partial(write_file, files, name, [table]))
    elif rows is not None:
        files = line_files(spark, write, rows.schema)
        if files is not None:
            frame = _written(rows, files).in_spark(write.name)
            return _add(spark, write.table, files, batch, lambda: frame.toArrow())
    return in_spark(micro_batch, batch)


def _written(rows: ArrowRows, files: LineFiles) -> ArrowRows:
    run = partial(write_in_task, rows=rows.tables(), files=files)
    return replace(rows, read=run, schema=WRITTEN, steps=())


def _add(spark: SparkSession, table: Table, files: LineFiles, batch: int, write: Callable[[], pa.Table]) -> int:
    """Add the files that ``write`` makes to the log, unless it has ``batch``; return the number of new rows."""
    log = SinkLog(spark, table.options["path"])
    count = 0
    if not log.has(batch):
        try:
            facts = write().sort_by("name").to_pylist()
        except BaseException:
            files.remove(batch)
            raise
        # From here on the log may have the files, even if adding them fails.
        log.add(batch, [(file["name"], file["size"], file["modified"]) for file in facts])
        if any(file["retried"] for file in facts) or spark.sparkContext.getConf().get(_SPECULATION, "false") == "true":
            files.remove(batch, wanted={file["name"] for file in facts})
        count = sum(file[ROWS] for file in facts)
    mark_batch(spark, table, batch)
    return count


def line_files(spark: SparkSession, write: TableWrite, schema: pa.Schema) -> LineFiles | None:
    """Return the files that tasks write for rows with ``schema``; None if Spark must write them."""
    table = write.table
    if table.options["format"] not in TEXTS or table.partitioned_by or is_remote(spark):
        return None
    if not is_local(spark, table.options["path"]) or not _is_usual(spark):
        return None
    columns = [field for field in schema if field.name not in (KIND, *ROW_ORDER.names)]
    if option(table, "sink.changelog") == "true":
        columns.append(pa.field(OP, pa.string()))
    style = _style(spark, table, tuple(field.name for field in columns))
    if style is None or lines_writer(style, pa.schema(columns)) is None:
        return None
    file_mode, folder_mode = access_rights(spark)
    return LineFiles(
        name=write.name,
        folder=local_folder(spark, table.options["path"]),
        run=uuid.uuid4().hex[:12],
        style=style,
        schema=pa.schema(columns),
        file_mode=file_mode,
        folder_mode=folder_mode,
    )


def _style(spark: SparkSession, table: Table, names: tuple[str, ...]) -> LineStyle | None:
    """Return the style of the table's lines; None if Spark's writer may write something else."""
    jvm: Any = spark._jvm
    java = int(str(jvm.java.lang.System.getProperty("java.specification.version")).partition(".")[0])
    if table.options["format"] == "json":
        return LineStyle(format="json", names=names, java=java)
    options = write_options(table)
    null = options.get("nullValue", "")
    special = {options["sep"], options["quote"], options["escape"]}
    # Spark refuses a single column that is NULL, and texts that would need quotes where there are none.
    if not is_quoted(table) or (len(names) == 1 and not null):
        return None
    if special & _IN_VALUES or not all(character.isascii() for character in special):
        return None
    if any(character in null for character in (*special, "\r", "\n")) or null.startswith(COMMENT):
        return None
    return LineStyle(
        format="csv",
        names=names,
        java=java,
        delimiter=options["sep"],
        quote=options["quote"],
        escape=options["escape"],
        null=null,
    )


def _is_usual(spark: SparkSession) -> bool:
    if spark._jsparkSession.sessionState().newHadoopConf().getBoolean(_COMPRESSED, False):
        return False
    return all(spark.conf.get(key, None) in (None, *values) for key, values in _SETTINGS.items())

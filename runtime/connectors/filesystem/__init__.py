"""The filesystem connector: directories of files that jobs read, append to and look up rows in."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from hintplan.plans.connectors.filesystem import FILESYSTEM
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.connector import LookupTable
from hintplan.runtime.connectors.filesystem.overwrite import OverwritingFileWriter
from hintplan.runtime.connectors.filesystem.read import FileReader
from hintplan.runtime.connectors.filesystem.text_sink.arrow_sink import ArrowFileWriter
from hintplan.runtime.connectors.filesystem.wrong_line import first_wrong_line
from hintplan.runtime.lookup.source import LookupSource, source_of_classes
from hintplan.runtime.spark.explanation import WrongLine

__all__ = ["CODE"]

_SOURCE = source_of_classes(FILESYSTEM.name, f"{__name__}.scan", {"full": "FilesScan"})


class FilesystemCode(FileReader, OverwritingFileWriter, ArrowFileWriter, LookupTable):
    """Directories of files."""

    connector = FILESYSTEM

    def find_wrong_line(self, spark: SparkSession, table: Table, file: str) -> WrongLine | None:
        """Return the first line of a text file that does not fit, and its wrong column."""
        return first_wrong_line(spark, table, file)

    def lookup_source(self, options: Mapping[str, str]) -> LookupSource:
        return _SOURCE


CODE = FilesystemCode()

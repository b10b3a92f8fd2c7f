"""METADATA columns of files, of what Spark knows of the file of a row; meaning as in Flink.

A path is without scheme and host, and as it is, where Spark gives a URL.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hintplan.plans.declarations.tables import Table
from hintplan.runtime.types import to_spark


def plain_path(file: Column) -> Column:
    """The path of the file of a row, by what Spark knows of it in ``_metadata``."""
    # A plus is itself in a path, and a blank in what url_decode takes.
    url = F.replace(file["file_path"], F.lit("+"), F.lit("%2B"))
    return F.regexp_replace(F.url_decode(url), "^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?", "")


_VALUES: dict[str, Callable[[Column], Column]] = {
    "file.path": plain_path,
    "file.name": lambda file: F.substring_index(plain_path(file), "/", -1),
    "file.size": lambda file: file["file_size"],
    "file.modification-time": lambda file: file["file_modification_time"],
}


def metadata_columns(rows: DataFrame, table: Table) -> dict[str, Column]:
    """The METADATA columns of ``table`` by name, for ``rows`` as Spark has read them."""
    asked = [column for column in table.columns if column.metadata is not None]
    if not asked:
        return {}
    file = rows.metadataColumn("_metadata")
    return {
        column.name: _VALUES[column.metadata or ""](file).cast(to_spark(column.type)).alias(column.name)
        for column in asked
    }

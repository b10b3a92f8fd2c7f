"""METADATA columns of files, derived from Spark's ``_metadata`` and with the meaning that they have in Flink.

Spark gives a path as a URL; here it is unescaped, without scheme and host.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hintplan.plans.declarations.tables import Table
from hintplan.runtime.types import to_spark


def plain_path(file: Column) -> Column:
    """Return the path of a row's file, derived from the row's ``_metadata``."""
    # A plus sign in a path is literal, but url_decode would turn it into a space.
    url = F.replace(file["file_path"], F.lit("+"), F.lit("%2B"))
    return F.regexp_replace(F.url_decode(url), "^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?", "")


_VALUES: dict[str, Callable[[Column], Column]] = {
    "file.path": plain_path,
    "file.name": lambda file: F.substring_index(plain_path(file), "/", -1),
    "file.size": lambda file: file["file_size"],
    "file.modification-time": lambda file: file["file_modification_time"],
}


def metadata_columns(rows: DataFrame, table: Table) -> dict[str, Column]:
    """Return the METADATA columns of ``table`` by name, for ``rows`` as Spark has read them."""
    declared = [column for column in table.columns if column.metadata is not None]
    if not declared:
        return {}
    file = rows.metadataColumn("_metadata")
    return {
        column.name: _VALUES[column.metadata or ""](file).cast(to_spark(column.type)).alias(column.name)
        for column in declared
    }

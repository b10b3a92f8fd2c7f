"""Partition columns: their values are in the names of directories, ``day=2020-01-01/hour=7``, and not in the files.

Names are escaped as Hive does, NULL and empty text are ``partition.default-name``, which is read as NULL. A file counts
if its directory is named after all partition columns, in their order, directly below the table's path; partitions may
come while a stream runs. Conditions on partition columns are conditions on paths, by which Spark leaves out files.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hintplan.plans.connectors.table import option
from hintplan.plans.declarations.tables import Table
from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.connectors.filesystem.metadata import plain_path
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_spark

_DEFAULT = "partition.default-name"


def in_partitions(rows: DataFrame, table: Table, depth: int | None) -> DataFrame:
    """The ``rows`` of files that are in partitions; ``depth`` is how many names the table's path has, if known."""
    names = F.split(plain_path(rows.metadataColumn("_metadata")), "/")
    count = len(table.partitioned_by)
    inside = F.size(names) > count + 1 if depth is None else F.size(names) == depth + count + 2
    for at, column in enumerate(table.partitioned_by):
        inside = inside & (_unescaped(F.split_part(_name(names, count - at), F.lit("="), F.lit(1))) == column)
        inside = inside & F.contains(_name(names, count - at), F.lit("="))
    return rows.where(inside)


def partition_values(rows: DataFrame, name: str, table: Table) -> dict[str, Column]:
    """The partition columns of ``table`` by name, for ``rows`` of :func:`in_partitions`."""
    if not table.partitioned_by:
        return {}
    types = {column.name: column.type for column in table.columns}
    names = F.split(plain_path(rows.metadataColumn("_metadata")), "/")
    count = len(table.partitioned_by)
    return {
        column: _value(_name(names, count - at), types[column], name, table).alias(column)
        for at, column in enumerate(table.partitioned_by)
    }


def with_partition_names(rows: DataFrame, table: Table) -> DataFrame:
    """``rows`` with the partition columns as Spark shall name directories after them, which escapes them."""
    types = {column.name: column.type for column in table.columns}
    texts: Mapping[str, Column] = {
        column: F.coalesce(
            F.nullif(_text(F.col(quoted(column)), types[column]), F.lit("")), F.lit(option(table, _DEFAULT))
        )
        for column in table.partitioned_by
    }
    return rows.withColumns(dict(texts)) if texts else rows  # Spark Connect takes no empty one


def _name(names: Column, back: int) -> Column:
    """The name of the directory that is so many names before that of the file."""
    return F.element_at(names, -1 - back)


def _unescaped(text: Column) -> Column:
    """What a name stands for; what is no escape stays as it is."""
    return F.coalesce(F.try_url_decode(F.replace(text, F.lit("+"), F.lit("%2B"))), text)


def _value(directory: Column, type_text: str, name: str, table: Table) -> Column:
    text = _unescaped(F.substring(directory, F.instr(directory, "=") + 1, F.length(directory)))
    default = F.lit(option(table, _DEFAULT))
    if parse_type(type_text).is_text:
        return F.when(text != default, text)
    kind = to_spark(type_text)
    message = F.concat(
        F.lit(f"table {name}: the directory "), directory, F.lit(f" is named after no {type_text.split(' NOT ')[0]}")
    )
    return F.when(text != default, F.coalesce(text.try_cast(kind), F.raise_error(message).cast(kind)))


def _text(value: Column, type_text: str) -> Column:
    if parse_type(type_text).root != "TIMESTAMP":
        return value.cast("string")
    # As java.time.LocalDateTime writes it: seconds, and their thousandths, only if there are some.
    micros = F.date_format(value, "SSSSSS")
    fraction = F.when(micros == "000000", "").when(
        F.substring(micros, 4, 3) == "000", F.concat(F.lit("."), F.substring(micros, 1, 3))
    )
    seconds = F.concat(F.date_format(value, ":ss"), F.coalesce(fraction, F.concat(F.lit("."), micros)))
    return F.concat(F.date_format(value, "yyyy-MM-dd'T'HH:mm"), F.when(seconds == ":00", F.lit("")).otherwise(seconds))

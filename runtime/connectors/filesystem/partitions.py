"""Partition columns: their values are in directory names, ``day=2020-01-01/hour=7``, and not in the files.

Names are escaped as Hive escapes them. NULL and the empty text become ``partition.default-name``, which is read as
NULL. A file counts only if its directories name all partition columns, in their order, directly below the table's path.
New partitions may appear while a stream runs. A condition on a partition column is a condition on the path, by which
Spark prunes files.
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
    """Keep the ``rows`` of files that are in partitions.

    ``depth`` is the number of names in the table's path, or None if it is unknown.
    """
    path_names = F.split(plain_path(rows.metadataColumn("_metadata")), "/")
    count = len(table.partitioned_by)
    inside = F.size(path_names) > count + 1 if depth is None else F.size(path_names) == depth + count + 2
    for index, column in enumerate(table.partitioned_by):
        inside = inside & (_unescaped(F.split_part(_name(path_names, count - index), F.lit("="), F.lit(1))) == column)
        inside = inside & F.contains(_name(path_names, count - index), F.lit("="))
    return rows.where(inside)


def partition_values(rows: DataFrame, name: str, table: Table) -> dict[str, Column]:
    """Return the partition columns of ``table`` by name, for ``rows`` of :func:`in_partitions`."""
    if not table.partitioned_by:
        return {}
    types = {column.name: column.type for column in table.columns}
    path_names = F.split(plain_path(rows.metadataColumn("_metadata")), "/")
    count = len(table.partitioned_by)
    return {
        column: _value(_name(path_names, count - index), types[column], name, table).alias(column)
        for index, column in enumerate(table.partitioned_by)
    }


def with_partition_names(rows: DataFrame, table: Table) -> DataFrame:
    """Return ``rows`` with partition columns as the texts that Spark uses in directory names, after escaping them."""
    types = {column.name: column.type for column in table.columns}
    texts: Mapping[str, Column] = {
        column: F.coalesce(
            F.nullif(_text(F.col(quoted(column)), types[column]), F.lit("")), F.lit(option(table, _DEFAULT))
        )
        for column in table.partitioned_by
    }
    return rows.withColumns(dict(texts)) if texts else rows  # Spark Connect rejects an empty dict


def _name(names: Column, back: int) -> Column:
    """Return the name of the directory ``back`` levels above the file."""
    return F.element_at(names, -1 - back)


def _unescaped(text: Column) -> Column:
    """Return the unescaped name; an invalid escape stays as it is."""
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
    # Same form as java.time.LocalDateTime: seconds and their fraction appear only if they are not zero.
    micros = F.date_format(value, "SSSSSS")
    fraction = F.when(micros == "000000", "").when(
        F.substring(micros, 4, 3) == "000", F.concat(F.lit("."), F.substring(micros, 1, 3))
    )
    seconds = F.concat(F.date_format(value, ":ss"), F.coalesce(fraction, F.concat(F.lit("."), micros)))
    return F.concat(F.date_format(value, "yyyy-MM-dd'T'HH:mm"), F.when(seconds == ":00", F.lit("")).otherwise(seconds))

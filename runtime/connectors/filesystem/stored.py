"""The types in which files store the columns of a table, and conversions from and to these, also in nested columns.

Three formats differ from the declared types. ORC's TIMESTAMP is a wall clock, which Spark reads as an instant in the
time zone of its JVM. Flink's legacy mapping for Avro stores a wall clock as an instant in UTC. A line of ``raw`` may be
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from hintplan.plans.connectors.columns import BINARY
from hintplan.plans.connectors.files.formats import is_legacy, stored_columns
from hintplan.plans.declarations.tables import Table
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.csv_files import as_rows
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.wall_clocks import UTC, instant_column, wall_clock_column
from hintplan.runtime.types import to_spark

Convert = Callable[[Column], Column]


def stored_schema(table: Table) -> spark_types.StructType:
    """Return the schema with which Spark reads the files of ``table``, with all columns nullable."""
    stored_types = _stored(table)
    return spark_types.StructType(
        [spark_types.StructField(c.name, _replaced(to_spark(c.type), stored_types)) for c in stored_columns(table)]
    )


def read_values(spark: SparkSession, name: str, table: Table) -> dict[str, Column]:
    """Return the declared columns by name, converted from rows with the schema of :func:`stored_schema`."""
    convert: dict[str, Convert] = {}
    match table.options["format"]:
        case "orc":
            zone = _zone(spark, name, table)
            convert = {"TIMESTAMP": lambda value: wall_clock_column(value, zone)}
        case "raw":
            convert = dict.fromkeys(BINARY, lambda value: value.cast("binary"))
    return {c.name: _converted(F.col(quoted(c.name)), parse_type(c.type), convert) for c in stored_columns(table)}


def as_stored(spark: SparkSession, rows: DataFrame, name: str, table: Table) -> DataFrame:
    """Return ``rows`` with the file columns converted to their stored types, and all other columns unchanged."""
    convert: dict[str, Convert] = {}
    match table.options["format"]:
        case "orc":
            zone = _zone(spark, name, table)
            convert = {"TIMESTAMP": lambda value: _in_orc(instant_column(value, zone), name)}
        case "avro" if is_legacy(table):
            convert = {"TIMESTAMP": lambda value: instant_column(value, UTC)}
        case "csv":
            return as_rows(rows, name, table)
        case "raw":
            return rows.withColumns({c.name: _line(F.col(quoted(c.name)), name, c.name) for c in stored_columns(table)})
    types = {c.name: parse_type(c.type) for c in stored_columns(table)}
    changed = {
        column: _converted(F.col(quoted(column)), data_type, convert)
        for column, data_type in types.items()
        if _is_affected(data_type, convert)
    }
    return rows.withColumns(changed) if changed else rows  # Spark Connect rejects an empty dict


def _stored(table: Table) -> dict[type, spark_types.DataType]:
    """Return the Spark types that files store in place of the declared types."""
    match table.options["format"]:
        case "orc":
            return {spark_types.TimestampNTZType: spark_types.TimestampType()}
        case "raw":
            return {spark_types.BinaryType: spark_types.StringType()}
    return {}


def _replaced(found: spark_types.DataType, others: Mapping[type, spark_types.DataType]) -> spark_types.DataType:
    match found:
        case spark_types.ArrayType():
            return spark_types.ArrayType(_replaced(found.elementType, others))
        case spark_types.MapType():
            return spark_types.MapType(_replaced(found.keyType, others), _replaced(found.valueType, others))
        case spark_types.StructType():
            fields = [spark_types.StructField(field.name, _replaced(field.dataType, others)) for field in found.fields]
            return spark_types.StructType(fields)
    return others.get(type(found), found)


def _is_affected(data_type: DataType, convert: Mapping[str, Convert]) -> bool:
    return data_type.root in convert or any(_is_affected(child, convert) for child in data_type.children)


def _converted(value: Column, data_type: DataType, convert: Mapping[str, Convert]) -> Column:
    """Return ``value`` with ``convert`` applied to every value of its types, also in nested ones."""
    if not _is_affected(data_type, convert):
        return value
    children = data_type.children
    match data_type.root:
        case "ARRAY":
            return F.transform(value, lambda element: _converted(element, children[0], convert))
        case "MAP":
            keys = F.transform_keys(value, lambda key, _: _converted(key, children[0], convert))
            return F.transform_values(keys, lambda _, item: _converted(item, children[1], convert))
        case "ROW":
            fields = [
                _converted(value.getField(field), child, convert).alias(field)
                for field, child in zip(data_type.names, children, strict=True)
            ]
            return F.when(value.isNotNull(), F.struct(*fields))
    return convert[data_type.root](value)


def _in_orc(instant: Column, name: str) -> Column:
    """Return ``instant``, or fail the run if ORC cannot represent it.

    ORC stores a time as seconds, truncated towards 1970, and a fraction. The last second before 1970 thus becomes the
    first second after it. Readers can distinguish the two only by fractions below a millisecond.
    """
    micros = F.unix_micros(instant)
    message = F.concat(
        F.lit(f"table {name}: "),
        instant.cast("string"),
        F.lit(
            " is in the last second before 1970, which ORC files cannot distinguish from the next second; use parquet"
        ),
    )
    return F.when(micros.between(-999_000, -1), F.raise_error(message).cast("timestamp")).otherwise(instant)


def _line(value: Column, name: str, column: str) -> Column:
    message = f"table {name}: column {column} is NULL, which a line of raw cannot be"
    return F.coalesce(value.cast("string"), F.raise_error(F.lit(message)).cast("string"))


def _zone(spark: SparkSession, name: str, table: Table) -> str:
    """Return the JVM time zone in which Spark reads and writes ORC's TIMESTAMP; raise RunError if it is unknown."""
    if not any(_is_affected(parse_type(c.type), {"TIMESTAMP": lambda value: value}) for c in stored_columns(table)):
        return UTC
    if is_remote(spark):
        raise RunError(
            f"table {name} has TIMESTAMP in ORC files, which depend on the time zone of Spark's JVM, and a Spark "
            f"Connect client cannot read that time zone",
            hint="use parquet",
            path=f"tables.{name}.options.format",
        )
    jvm: Any = spark.sparkContext._jvm
    zone = str(jvm.java.util.TimeZone.getDefault().getID())
    return UTC if zone in ("Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "UCT", "Etc/UCT") else zone

"""The types that files hold for the columns of a table, and values from the one to the other, also in nested ones.

ORC's TIMESTAMP is a wall clock, which Spark knows as an instant in the time zone of its JVM; Avro as Flink writes it
has a wall clock as an instant in UTC; a line of ``raw`` may be bytes. All else is
stored as it is declared.
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
from hintplan.runtime.types import to_spark

Convert = Callable[[Column], Column]

_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_UTC = "UTC"


def stored_schema(table: Table) -> spark_types.StructType:
    """The columns that are in the files of ``table``, as Spark reads them; all nullable."""
    others = _stored(table)
    return spark_types.StructType(
        [spark_types.StructField(c.name, _replaced(to_spark(c.type), others)) for c in stored_columns(table)]
    )


def read_values(spark: SparkSession, name: str, table: Table) -> dict[str, Column]:
    """The columns of files as the declared ones, by name, for rows of :func:`stored_schema`."""
    convert: dict[str, Convert] = {}
    match table.options["format"]:
        case "orc":
            zone = _zone(spark, name, table)
            convert = {"TIMESTAMP": lambda value: _wall_clock(value, zone)}
        case "raw":
            convert = dict.fromkeys(BINARY, lambda value: value.cast("binary"))
    return {c.name: _converted(F.col(quoted(c.name)), parse_type(c.type), convert) for c in stored_columns(table)}


def as_stored(spark: SparkSession, rows: DataFrame, name: str, table: Table) -> DataFrame:
    """``rows`` with the columns of files as they are stored, and all others as they are."""
    convert: dict[str, Convert] = {}
    match table.options["format"]:
        case "orc":
            zone = _zone(spark, name, table)
            convert = {"TIMESTAMP": lambda value: _in_orc(_instant(value, zone), name)}
        case "avro" if is_legacy(table):
            convert = {"TIMESTAMP": lambda value: _instant(value, _UTC)}
        case "csv":
            return as_rows(rows, name, table)
        case "raw":
            return rows.withColumns({c.name: _line(F.col(quoted(c.name)), name, c.name) for c in stored_columns(table)})
    types = {c.name: parse_type(c.type) for c in stored_columns(table)}
    changed = {n: _converted(F.col(quoted(n)), of, convert) for n, of in types.items() if _is_affected(of, convert)}
    return rows.withColumns(changed) if changed else rows  # Spark Connect takes no empty one


def _stored(table: Table) -> dict[type, spark_types.DataType]:
    """The types of Spark that files have in place of others."""
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
    """``value`` with what ``convert`` has for the types in it."""
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


def _instant(wall_clock: Column, zone: str) -> Column:
    """When it is what a TIMESTAMP says in ``zone``, whatever the time zone of the session is."""
    seconds = (wall_clock - F.expr(_EPOCH)).cast("interval second").cast("decimal(20, 6)")
    in_utc = F.timestamp_micros((seconds * F.lit(1_000_000)).cast("bigint"))
    return in_utc if zone == _UTC else F.to_utc_timestamp(in_utc, zone)


def _wall_clock(instant: Column, zone: str) -> Column:
    """The TIMESTAMP that it is in ``zone`` at an instant."""
    in_utc = instant if zone == _UTC else F.from_utc_timestamp(instant, zone)
    return F.expr(_EPOCH) + F.unix_micros(in_utc) * F.expr("INTERVAL '0.000001' SECOND")


def _in_orc(instant: Column, name: str) -> Column:
    """``instant`` if files of ORC can tell it from another one, else the run fails.

    A time in ORC is its seconds, cut towards 1970, and its fraction. The last second before 1970 is therefore written
    as the first one after it; readers can tell them apart by fractions below a millisecond only.
    """
    micros = F.unix_micros(instant)
    message = F.concat(
        F.lit(f"table {name}: "),
        instant.cast("string"),
        F.lit(" is in the last second before 1970, which files of ORC cannot tell from the next one; use parquet"),
    )
    return F.when(micros.between(-999_000, -1), F.raise_error(message).cast("timestamp")).otherwise(instant)


def _line(value: Column, name: str, column: str) -> Column:
    message = f"table {name}: column {column} is NULL, which a line of raw cannot be"
    return F.coalesce(value.cast("string"), F.raise_error(F.lit(message)).cast("string"))


def _zone(spark: SparkSession, name: str, table: Table) -> str:
    """The time zone of the JVM in which Spark reads and writes the TIMESTAMPs of ORC; RunError if it is not known."""
    if not any(_is_affected(parse_type(c.type), {"TIMESTAMP": lambda value: value}) for c in stored_columns(table)):
        return _UTC
    if is_remote(spark):
        raise RunError(
            f"table {name} has TIMESTAMP in files of ORC, which go by the time zone of Spark's JVM, and a client of "
            "Spark Connect is not told which that is",
            hint="use parquet",
            path=f"tables.{name}.options.format",
        )
    jvm: Any = spark.sparkContext._jvm
    found = str(jvm.java.util.TimeZone.getDefault().getID())
    return _UTC if found in ("Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "UCT", "Etc/UCT") else found

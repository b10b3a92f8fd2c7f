"""The columns of a table in Spark: their schema, and TIME columns, which connectors handle as text.

A TIME is ``10:11:12`` or ``10:11:12.345``, without trailing zeros in the fraction. Texts then compare and sort like
times. An invalid text fails the run, or becomes NULL if the table ignores parse errors.

>>> from hintplan.plans.declarations.tables import TableColumn
>>> declared = Table(columns=(TableColumn(name="t", type="TIME(3) NOT NULL"),), options={})
>>> as_texts(declared).columns[0].type
'STRING NOT NULL'
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from hintplan.plans.declarations.tables import Table
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.spark.names import quoted
from hintplan.runtime.types import to_spark

_CLOCK = "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?$"
_WITHOUT_ZEROS = "^(.{8}([.][0-9]*[1-9])?)[.0]*$"
_LENIENT = "ignore-parse-errors"


def physical_schema(table: Table, columns: tuple[str, ...] | None = None) -> StructType:
    """Return the physical columns of ``table``, or only ``columns`` in their order; all nullable."""
    types = {column.name: column.type for column in table.columns if column.is_physical}
    return StructType([StructField(name, to_spark(types[name])) for name in columns or types])


def as_texts(table: Table) -> Table:
    """Return ``table`` with STRING in place of each TIME."""
    if not any("TIME" in column.type for column in table.columns):
        return table
    columns = (replace(c, type=str(_as_text(parse_type(c.type)))) for c in table.columns)
    return replace(table, columns=tuple(columns))


def times_of(table: Table) -> dict[str, DataType]:
    """Return the columns of ``table`` that are TIME, by name."""
    candidates = {
        c.name: parse_type(c.type) for c in table.columns if c.type.startswith("TIME") and c.expression is None
    }
    return {name: kind for name, kind in candidates.items() if kind.root == "TIME"}


def check_times(rows: DataFrame, name: str, table: Table) -> DataFrame:
    """Return ``rows`` of table ``name`` with its TIME columns checked and truncated to their precision."""
    times = {column: kind for column, kind in times_of(table).items() if column in rows.columns}
    if not times:
        return rows
    lenient = any(key.endswith(_LENIENT) and value.lower() == "true" for key, value in table.options.items())
    return rows.withColumns({c: _checked(F.col(quoted(c)), kind, name, c, lenient) for c, kind in times.items()})


def _checked(text: Column, kind: DataType, name: str, column: str, lenient: bool) -> Column:
    digits = kind.precision or 0
    cut = F.substring(text, 1, len("10:11:12") + digits + bool(digits))
    if digits:
        cut = F.regexp_replace(cut, _WITHOUT_ZEROS, "$1")
    message = F.concat(
        F.lit(f"table {name}: column {column} is {kind.as_nullable()}, found "), F.substring(text, 1, 40)
    )
    otherwise = F.lit(None).cast("string") if lenient else F.raise_error(message).cast("string")
    return F.when(text.isNull() | F.rlike(text, F.lit(_CLOCK)), cut).otherwise(otherwise)


def _as_text(kind: DataType) -> DataType:
    if kind.root == "TIME":
        return DataType(root="STRING", nullable=kind.nullable)
    return replace(kind, children=tuple(map(_as_text, kind.children)))

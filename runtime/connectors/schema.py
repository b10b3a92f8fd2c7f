"""The physical columns of a table as a Spark schema."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

from hintplan.plans.declarations.tables import Table
from hintplan.runtime.types import to_spark


def physical_schema(table: Table, columns: tuple[str, ...] | None = None) -> StructType:
    """Return the physical columns of ``table``, or only ``columns`` in their order; all nullable."""
    types = {column.name: column.type for column in table.columns if column.is_physical}
    return StructType([StructField(name, to_spark(types[name])) for name in columns or types])

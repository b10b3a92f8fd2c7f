"""Converts the schema of a DataFrame to the columns of a table: from the JSON of Spark's types to Flink's types.

The module does not import Spark. It accepts any object whose ``schema.jsonValue()`` returns the JSON of a Spark struct.

>>> print(*table_columns({"type": "struct", "fields": [{"name": "at", "type": "timestamp"}]}))
TableColumn(name='at', type='TIMESTAMP_LTZ(6)', expression=None, metadata=None, virtual=False, comment=None)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hintplan.plans.declarations.tables import TableColumn
from hintplan.plans.declarations.types import DataType

_PLAIN: Mapping[str, DataType] = {
    "boolean": DataType(root="BOOLEAN"),
    "byte": DataType(root="TINYINT"),
    "short": DataType(root="SMALLINT"),
    "integer": DataType(root="INT"),
    "long": DataType(root="BIGINT"),
    "float": DataType(root="FLOAT"),
    "double": DataType(root="DOUBLE"),
    "date": DataType(root="DATE"),
    "string": DataType(root="STRING"),
    "binary": DataType(root="BYTES"),
    "timestamp_ntz": DataType(root="TIMESTAMP", precision=6),
    "timestamp": DataType(root="TIMESTAMP_LTZ", precision=6),
}


def schema_json(given: object) -> Mapping[str, Any]:
    """Return the JSON of a Spark schema; ``given`` is a DataFrame or a schema. Raise ValueError for anything else."""
    json_value = getattr(getattr(given, "schema", given), "jsonValue", None)
    if not callable(json_value):
        raise ValueError(f"expected a DataFrame, found {type(given).__name__}")
    schema_as_json: Mapping[str, Any] = json_value()
    return schema_as_json


def table_columns(schema: Mapping[str, Any]) -> tuple[TableColumn, ...]:
    """Return the nullable columns of a table with ``schema``. Raise ValueError if no table can have them."""
    names: dict[str, str] = {}
    columns: list[TableColumn] = []
    for field in schema["fields"]:
        name = field["name"]
        if (other := names.setdefault(name.lower(), name)) != name or name in {column.name for column in columns}:
            raise ValueError(f"the columns '{other}' and '{name}' differ in nothing, or in case only: rename one")
        try:
            columns.append(TableColumn(name=name, type=str(flink_type(field["type"]))))
        except ValueError as error:
            raise ValueError(f"column '{name}': {error}") from error
    if not columns:
        raise ValueError("it has no columns")
    return tuple(columns)


def flink_type(spark: str | Mapping[str, Any]) -> DataType:
    """Return the Flink type of a Spark type, which ``spark`` holds as JSON. Raise ValueError if a plan has no such
    type.
    """
    if isinstance(spark, str):
        sized = re.fullmatch(r"(decimal|char|varchar)\((\d+)(?:,\s*(-?\d+))?\)", spark)
        if sized is not None and sized[1] == "decimal":
            return DataType(root="DECIMAL", precision=int(sized[2]), scale=int(sized[3] or 0))
        if sized is not None:
            return DataType(root=sized[1].upper(), precision=int(sized[2]))
        if spark in _PLAIN:
            return _PLAIN[spark]
    elif spark.get("type") == "array":
        return DataType(root="ARRAY", children=(flink_type(spark["elementType"]),))
    elif spark.get("type") == "map":
        return DataType(root="MAP", children=(flink_type(spark["keyType"]), flink_type(spark["valueType"])))
    elif spark.get("type") == "struct":
        names = tuple(field["name"] for field in spark["fields"])
        return DataType(root="ROW", names=names, children=tuple(flink_type(field["type"]) for field in spark["fields"]))
    shown = spark if isinstance(spark, str) else spark.get("type")
    raise ValueError(f"a plan has no type for Spark's {shown}; cast the column")

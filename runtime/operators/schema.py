"""Which columns a stateful operator can keep in state, as an Arrow schema."""

from __future__ import annotations

import pyarrow as pa

from plans.declarations.tables import Column
from plans.errors import RunError
from runtime.types import to_arrow


def state_schema(operator: str, columns: tuple[Column, ...]) -> pa.Schema:
    """The Arrow schema of an input's ``columns``; RunError for a type whose values cannot be compared (nested ones)."""
    fields = []
    for column in columns:
        kind = to_arrow(column.type)
        if pa.types.is_nested(kind):
            raise RunError(
                f"column {column.name!r} of type {column.type} cannot be kept in state",
                path=f"operators.{operator}",
                hint="select the parts that the query needs in a sub-query below it",
            )
        fields.append(pa.field(column.name, kind))
    return pa.schema(fields)

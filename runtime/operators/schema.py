"""The Arrow schema of an input of a stateful operator."""

from __future__ import annotations

import pyarrow as pa

from hintplan.plans.declarations.tables import Column
from hintplan.runtime.types import to_arrow


def state_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Return the Arrow schema in which state keeps ``columns``."""
    return pa.schema([pa.field(column.name, to_arrow(column.type)) for column in columns])

"""The rows of a Parquet file, for tests that name one.

    parquet_rows("orders.parquet")   # [{"id": 1, "total": Decimal("20.50")}]

Values are Python's. A test converts them to the types of its columns, as it converts all values.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hintplan.plans.errors import RunError


def parquet_rows(path: str) -> list[dict[str, Any]]:
    """Return the rows of the file at ``path``; RunError if it is no Parquet file."""
    try:
        return list(pq.read_table(path).to_pylist())
    except (pa.ArrowException, OSError) as error:
        raise RunError(f"cannot be read: {str(error).splitlines()[0]}") from error

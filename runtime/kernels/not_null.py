"""The NOT NULL constraints of a sink's table, enforced as Flink's ``table.exec.sink.not-null-enforcer`` = ERROR does.

Executors run it on rows in Arrow. Rows that take something back (-U, -D) pass: the row that they take back has passed.

>>> import pyarrow as pa
>>> NotNull(table="t", columns=("k",))(pa.table({"k": [1, 2]})).num_rows
2
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.errors import RunError
from hintplan.plans.text.nulls import null_hint, null_message
from hintplan.runtime.operator import INSERT, KIND, UPDATE_AFTER

ADDING = (INSERT, UPDATE_AFTER)
"""The kinds of rows that a table has from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotNull:
    """Returns the rows unchanged; RunError if one that is added to ``table`` has NULL in one of ``columns``."""

    table: str
    columns: tuple[str, ...]

    def __call__(self, rows: pa.Table) -> pa.Table:
        nullable = [name for name in self.columns if rows[name].null_count]
        if nullable:
            added = rows
            if KIND in rows.column_names:
                added = rows.filter(pc.is_in(rows[KIND], value_set=pa.array(ADDING, pa.int8())))
            refuse_nulls(added, nullable, self.table)
        return rows


def refuse_nulls(rows: pa.Table, columns: Iterable[str], table: str) -> None:
    """Raise RunError if one of ``columns`` has a NULL in ``rows`` of ``table``."""
    for name in columns:
        if rows[name].null_count:
            raise RunError(null_message(table, name), hint=null_hint(name), path=f"tables.{table}")

"""Finds batch plans that read a table which they write: the rows that such a job reads depend on its progress.

Locations are compared as text by the connector of both tables, without access to any file system.
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.connectors.table import overlap
from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import tables_used


def check_overlap(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for each sink of a batch ``plan`` that writes to a location which the plan reads."""
    if plan.mode != "batch":
        return
    read = {table: o.id for o, table in tables_used(reversed(plan.operators), "reads", "looks up")}
    for sink, written in tables_used(plan.operators, "writes"):
        if written not in plan.tables:
            continue
        for table, operator in read.items():
            if table in plan.tables and overlap(plan.tables[table], plan.tables[written]):
                described = f"table '{table}'" if table == written else f"table '{table}', which is at the same place,"
                yield Diagnostic(
                    message=f"table '{written}' is written while {described} is read by '{operator}': a batch job "
                    f"must not read a table while it is written",
                    path=f"operators.{sink.id}.table",
                    hint="write to another place, and move it when the job has ended",
                )
                break

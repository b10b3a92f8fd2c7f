"""Batch plans that read what they write: what such a job reads depends on how far its writing has come.

Places are compared as they are written, without asking any file system, by the connector of both tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.connectors.table import overlap
from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import tables_used


def check_overlap(plan: Plan) -> Iterator[Diagnostic]:
    """A problem for each sink of a batch ``plan`` that writes where the plan reads."""
    if plan.mode != "batch":
        return
    read = {table: o.id for o, table in tables_used(reversed(plan.operators), "reads", "looks up")}
    for sink, written in tables_used(plan.operators, "writes"):
        if written not in plan.tables:
            continue
        for table, operator in read.items():
            if table in plan.tables and overlap(plan.tables[table], plan.tables[written]):
                what = f"table '{table}'" if table == written else f"table '{table}', which is at the same place,"
                yield Diagnostic(
                    message=f"table '{written}' is written while {what} is read by '{operator}': what a batch job "
                    "reads must not change under it",
                    path=f"operators.{sink.id}.table",
                    hint="write to another place, and move it when the job has ended",
                )
                break

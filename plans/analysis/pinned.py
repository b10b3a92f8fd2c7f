"""Finds operators whose answers must be pinned in the checkpoint, so that a repeated batch sees the same answers.

A lookup queries another system, as the scan of a database does, and a function may return another value each time. All
consumers must see one answer if there is state above, if there are several readers, or if a sink may receive a batch
twice. Pinning is unnecessary for insert-only rows that go directly to one sink that takes each batch once, as Spark's
file sink does.

>>> pinned_operators(Plan(name="p"), ())
frozenset()
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.connectors.table import drops_rows, is_asked, writes_files
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Requesting, Scan, Sink
from hintplan.plans.operators.contract.stateful import is_stateful


def pinned_operators(plan: Plan, sinks: Collection[str]) -> frozenset[str]:
    """Return the operators of the query of ``sinks`` whose lookups, reads or calls must not be repeated."""
    inside = plan.upstream(*sinks)
    operators = [operator for operator in plan.operators if operator.id in inside]
    readers = Counter(name for operator in operators for name in operator.inputs)
    kinds = output_kinds(plan)
    matters: set[str] = set()
    pinned: set[str] = set()
    for operator in reversed(operators):  # readers follow their inputs
        parks = operator.parks_rows
        if operator.id in matters or parks or readers[operator.id] > 1 or kinds[operator.id] != INSERT_ONLY:
            matters.add(operator.id)
            if isinstance(operator, Requesting) or _reads_of_the_moment(plan, operator):
                pinned.add(operator.id)
        if operator.id in matters or is_stateful(operator) or _may_repeat(plan, operator, len(sinks)):
            matters |= {*operator.inputs}
    return frozenset(pinned)


def _reads_of_the_moment(plan: Plan, operator: Operator) -> bool:
    return isinstance(operator, Scan) and is_asked(plan.tables[operator.table])


def _may_repeat(plan: Plan, operator: Operator, sinks: int) -> bool:
    """Return True if a sink may receive a batch twice, or after another sink has received it."""
    if not isinstance(operator, Sink):
        return False
    table = plan.tables[operator.table]
    return sinks > 1 or not (writes_files(table) or drops_rows(table))

"""Where rows are told by their arrival: the order of a changelog source, which Spark reads in any order.

A retraction must not stand before the row that it takes back. Operators with state put out changes that fit in any
order between partitions, but the files of a micro-batch, and the pieces of a large one, are read as it suits the
scheduler. From a scan of changes up to the first operator with state, each row therefore has beside it when it arrived.

    told_by_arrival(plan)  # frozenset({'scan_orders', 'calc_orders'})
"""

from __future__ import annotations

from plans.connectors import source_kinds
from plans.model import Operator, Plan, Scan, Sink, Stateful

__all__ = ["told_by_arrival"]


def told_by_arrival(plan: Plan) -> frozenset[str]:
    """The operators between scans of changes and operators with state, scans included, whose order matters."""
    found: set[str] = set()
    for operator in plan.operators:  # inputs stand before their readers
        if not isinstance(operator, Stateful | Sink) and (_of_changes(operator, plan) or found & {*operator.inputs}):
            found.add(operator.id)
    wanted: set[str] = set()
    for operator in reversed(plan.operators):
        if isinstance(operator, Stateful) or operator.id in wanted:
            wanted |= found & {*operator.inputs}
    return frozenset(wanted)


def _of_changes(operator: Operator, plan: Plan) -> bool:
    return isinstance(operator, Scan) and source_kinds(plan.tables[operator.table]) != ("+I",)

"""Finds operators for which the order of rows matters, and scans that must record or restore the order of arrival.

A retraction must not precede the row that it retracts. Stateful operators emit changes that may be reordered between
partitions. But Spark reads the files of a micro-batch, and the parts of a large file, in any order. From a scan of
changes up to the first stateful operator, each row therefore carries its arrival.

    told_by_arrival(plan)  # frozenset({'scan_orders', 'calc_orders'})

Without a stateful operator between such a scan and a sink, nothing would restore the order. In this case, the scan
itself sorts the rows.

    ordered_by_scan(plan)  # frozenset({'scan_orders'})

Two kinds of operators depend on the order of insert-only rows as well. They are an aggregate with a first value, last
value or list, and a sink-materialize. Joins below them emit rows in the order of their input.

    read_in_order(plan)  # frozenset({'join_o_c', 'scan_orders', 'scan_customers'})
"""

from __future__ import annotations

from hintplan.plans.connectors.table import drops_rows, is_read_in_pieces
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator
from hintplan.plans.operators.contract.stateful import is_stateful


def told_by_arrival(plan: Plan) -> frozenset[str]:
    """Return the operators whose rows carry their arrival.

    They are the scans of changes below stateful operators, and the operators in between.
    """
    above_changes: set[str] = set()
    for operator in plan.operators:  # inputs precede their readers
        if not is_stateful(operator) and (_of_changes(operator, plan) or not above_changes.isdisjoint(operator.inputs)):
            above_changes.add(operator.id)
    wanted: set[str] = set()
    for operator in reversed(plan.operators):
        if is_stateful(operator) or operator.id in wanted:
            wanted |= above_changes & {*operator.inputs}
    return frozenset(wanted)


def ordered_by_scan(plan: Plan) -> frozenset[str]:
    """Return the scans of changes, read in parts, whose rows reach a sink without a stateful operator in between.

    Sinks that drop their rows do not count.
    """
    reaching: set[str] = set()
    for operator in reversed(plan.operators):
        written = operator.is_sink and not drops_rows(plan.tables[operator.table or ""])
        if written or (operator.id in reaching and not is_stateful(operator)):
            reaching |= {*operator.inputs}
    return frozenset(
        operator.id
        for operator in plan.operators
        if operator.id in reaching
        and _of_changes(operator, plan)
        and is_read_in_pieces(plan.tables[operator.table or ""])
    )


def read_in_order(plan: Plan) -> frozenset[str]:
    """Return the operators below any operator that depends on the order of its rows."""
    below: set[str] = set()
    for operator in reversed(plan.operators):
        if operator.reads_order or operator.id in below:
            below |= {*operator.inputs}
    return frozenset(below)


def _of_changes(operator: Operator, plan: Plan) -> bool:
    return operator.is_source and operator.row_kinds(INSERT_ONLY, plan) != INSERT_ONLY

"""Where the order of rows matters, and where they are told by their arrival as Spark reads them in any order.

A retraction must not stand before the row that it takes back. Operators with state put out changes that fit in any
order between partitions, but the files of a micro-batch, and the pieces of a large one, are read as it suits the
scheduler. From a scan of changes up to the first operator with state, each row therefore has beside it when it arrived.

    told_by_arrival(plan)  # frozenset({'scan_orders', 'calc_orders'})

Where no operator with state stands between such a scan and a sink, nothing would put the rows in order. There the scan
itself does.

    ordered_by_scan(plan)  # frozenset({'scan_orders'})

An aggregate with a first or last value or a list, and rows kept by the key of a sink, depend on the order of rows that
are no changes, too: joins below them put out what comes in the order in which it came.

    read_in_order(plan)  # frozenset({'join_o_c', 'scan_orders', 'scan_customers'})
"""

from __future__ import annotations

from hintplan.plans.connectors.table import drops_rows, is_read_in_pieces
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, kind_of, table_of


def told_by_arrival(plan: Plan) -> frozenset[str]:
    """The operators between scans of changes and operators with state, scans included, whose order matters."""
    found: set[str] = set()
    for operator in plan.operators:  # inputs stand before their readers
        if not kind_of(operator).keeps_state and (_of_changes(operator, plan) or not found.isdisjoint(operator.inputs)):
            found.add(operator.id)
    wanted: set[str] = set()
    for operator in reversed(plan.operators):
        if kind_of(operator).keeps_state or operator.id in wanted:
            wanted |= found & {*operator.inputs}
    return frozenset(wanted)


def ordered_by_scan(plan: Plan) -> frozenset[str]:
    """The scans of changes, read in pieces, whose rows reach a sink that keeps them without an operator with state."""
    reaching: set[str] = set()
    for operator in reversed(plan.operators):
        kind = kind_of(operator)
        written = kind.is_sink and not drops_rows(plan.tables[table_of(operator) or ""])
        if written or (operator.id in reaching and not kind.keeps_state):
            reaching |= {*operator.inputs}
    return frozenset(
        operator.id
        for operator in plan.operators
        if operator.id in reaching
        and _of_changes(operator, plan)
        and is_read_in_pieces(plan.tables[table_of(operator) or ""])
    )


def read_in_order(plan: Plan) -> frozenset[str]:
    """The operators whose output, at whatever distance, an operator reads that depends on the order of its rows."""
    found: set[str] = set()
    for operator in reversed(plan.operators):
        if kind_of(operator).reads_order(operator) or operator.id in found:
            found |= {*operator.inputs}
    return frozenset(found)


def _of_changes(operator: Operator, plan: Plan) -> bool:
    kind = kind_of(operator)
    return kind.is_source and kind.row_kinds(operator, INSERT_ONLY, plan) != INSERT_ONLY

"""Finds who reads the tables below operators with state: Python workers, in Arrow, or Spark.

Rows in Arrow go straight into an operator with state. Rows that Spark has read are converted for it, so such a scan is
slower. Builders of a run and ``explain`` use the same reasons. A run may find a further reason, because only a run sees
the files and the configuration of their file system.

    scan_readers(plan)  # {'scan_orders': 'read in Arrow', 'scan_rates': 'read by Spark: Avro'}
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from hintplan.plans.analysis.late_rows import carried_columns
from hintplan.plans.analysis.row_order import ordered_by_scan
from hintplan.plans.connectors.table import has_reader_in_arrow, why_spark_reads
from hintplan.plans.expressions.names import columns_named
from hintplan.plans.model.graph import check_graph
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Scan, Stateful

IN_ARROW = "read in Arrow"
_NAME = re.compile(r"`[^`]+`|[A-Za-z_]\w*")
"""A column by its name, which Arrow need not compute."""


def scan_readers(plan: Plan) -> Mapping[str, str]:
    """Return who reads the scans that feed operators with state and whose connectors have a reader in Arrow.

    The result is empty for a batch plan, and for a plan whose edges or tables are wrong.
    """
    tables = {table for operator in plan.operators if (table := operator.table) is not None}
    if plan.mode == "batch" or any(check_graph(plan)) or not tables <= plan.tables.keys():
        return {}
    feeding = below_state(plan.operators)
    return {
        scan.id: _reader(plan, scan, feeding)
        for scan in plan.scans
        if scan.id in feeding and has_reader_in_arrow(plan.tables[scan.table])
    }


def below_state(operators: Sequence[Operator]) -> frozenset[str]:
    """Return the operators below operators with state; inputs precede their readers in ``operators``."""
    below: set[str] = set()
    for operator in reversed(operators):
        if isinstance(operator, Stateful) or operator.id in below:
            below |= {*operator.inputs}
    return frozenset(below)


def why_spark_scans(plan: Plan, scan: Scan) -> str | None:
    """Return the reason why Spark runs ``scan``, or None if workers can read its table in Arrow."""
    columns = {*scan.columns, *(column.name for column in carried_columns(plan).get(scan.id, ()))}
    if (reason := why_spark_reads(plan.tables[scan.table], columns)) is not None:
        return reason
    pruning = next(_partitions_in_conditions(plan, scan), None)
    return None if pruning is None else f"a condition on partition column {pruning} leaves out files"


def _reader(plan: Plan, scan: Scan, feeding: Collection[str]) -> str:
    reason = why_spark_scans(plan, scan)
    if reason is None and scan.id in ordered_by_scan(plan):
        reason = "its changes reach a sink without an operator with state"
    if reason is not None:
        return f"read by Spark: {reason}"
    computing, blocking = _easiest_way(plan, scan, feeding)
    if computing is None:
        return f"read by Spark: Spark computes {blocking}"
    return f"{IN_ARROW} if Arrow computes {', '.join(computing)}" if computing else IN_ARROW


def _easiest_way(plan: Plan, scan: Scan, feeding: Collection[str]) -> tuple[tuple[str, ...] | None, str]:
    """Return the operators that compute something on the way from ``scan`` to an operator with state.

    Of several ways, the one with the fewest such operators counts. If each way has an operator that runs in Spark only,
    return None and the first such operator.
    """
    ways: dict[str, tuple[str, ...]] = {scan.id: ()}
    easiest: tuple[str, ...] | None = None
    blocking = ""
    for operator in plan.operators:
        below = [ways[name] for name in operator.inputs if name in ways]
        if not below:
            continue
        way = min(below, key=len)
        if isinstance(operator, Stateful):
            easiest = way if easiest is None else min(easiest, way, key=len)
        elif operator.may_run_in_arrow:
            ways[operator.id] = (*way, operator.id) if _computes(operator) else way
        elif operator.id in feeding:
            blocking = blocking or operator.id
    return easiest, blocking


def _computes(operator: Operator) -> bool:
    return any(text is not None and _NAME.fullmatch(text) is None for _, text in operator.expressions())


def _partitions_in_conditions(plan: Plan, scan: Scan) -> Iterator[str]:
    """Yield the partition columns in the conditions directly above ``scan``.

    By such a condition, Spark leaves out files before it opens them.
    """
    partitions = plan.tables[scan.table].partitioned_by
    above = {scan.id} if partitions else set()
    for operator in plan.operators:
        if above.isdisjoint(operator.inputs) or isinstance(operator, Stateful):
            continue
        for where, text in operator.expressions():
            if where == "filter" and text is not None:
                yield from (path[0] for path in columns_named(text) if path[0] in partitions)
        if operator.passes_columns:
            above.add(operator.id)

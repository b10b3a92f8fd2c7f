"""Which operators must be answered the same whenever a batch runs, so that their answers are pinned in the checkpoint.

A lookup asks another system, as the scan of a database does, and a function may return something else each time. Where
state is kept above, or rows go to several readers or into a sink that may get a batch twice, all must have seen one
answer. It does not matter for rows that are only added, and go straight to one sink that takes each batch once, as
Spark's file sink does.

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
from hintplan.plans.operators import Operator, Scan, Sink, kind_of


def pinned_operators(plan: Plan, sinks: Collection[str]) -> frozenset[str]:
    """Those among the operators of the query of ``sinks`` that ask or call someone, and must not be answered anew."""
    inside = plan.upstream(*sinks)
    operators = [operator for operator in plan.operators if operator.id in inside]
    readers = Counter(name for operator in operators for name in operator.inputs)
    kinds = output_kinds(plan)
    matters: set[str] = set()
    found: set[str] = set()
    for operator in reversed(operators):  # readers stand behind what they read
        itself = _parks_rows(operator)
        if operator.id in matters or itself or readers[operator.id] > 1 or kinds[operator.id] != INSERT_ONLY:
            matters.add(operator.id)
            if kind_of(operator).asks is not None or _reads_of_the_moment(plan, operator):
                found.add(operator.id)
        if operator.id in matters or kind_of(operator).keeps_state or _may_repeat(plan, operator, len(sinks)):
            matters |= {*operator.inputs}
    return frozenset(found)


def _reads_of_the_moment(plan: Plan, operator: Operator) -> bool:
    return isinstance(operator, Scan) and is_asked(plan.tables[operator.table])


def _parks_rows(operator: Operator) -> bool:
    asks = kind_of(operator).asks
    return asks is not None and asks.parks_rows(operator)


def _may_repeat(plan: Plan, operator: Operator, sinks: int) -> bool:
    """Whether a sink may be given a batch twice, or after another sink that had it already."""
    if not isinstance(operator, Sink):
        return False
    table = plan.tables[operator.table]
    return sinks > 1 or not (writes_files(table) or drops_rows(table))

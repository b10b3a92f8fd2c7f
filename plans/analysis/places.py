"""Checks that each operator of a plan has suitable inputs and readers.

The kind of an operator defines which these are. For example, a scan of upserts is not a changelog until a
``changelog-normalize`` has normalized it. A ``sink-materialize`` keeps rows by the key of the sinks that read it.

>>> list(check_places(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Operator
from hintplan.plans.operators.contract.operator import Neighbours


def check_places(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for every operator with unsuitable inputs or readers.

    The graph of ``plan`` and its tables must be valid.
    """
    for operator in plan.operators:
        inputs = tuple(plan.by_id[name] for name in operator.inputs)
        readers = tuple(plan.readers[operator.id])
        neighbours = Neighbours(
            inputs=inputs,
            readers=readers,
            below_watermark=tuple(_below_watermark(plan, below) for below in inputs),
            above_watermark=tuple(_above_watermark(plan, readers)),
            plan=plan,
        )
        yield from operator.check_neighbours(neighbours)


def _below_watermark(plan: Plan, operator: Operator) -> Operator:
    """Return ``operator``, or the operator below it if it is the watermark of a table."""
    if not operator.sends_watermark:
        return operator
    below = plan.by_id[operator.inputs[0]]
    return plan.by_id[below.inputs[0]] if isinstance(below, Calc) else below


def _above_watermark(plan: Plan, readers: Sequence[Operator]) -> Iterator[Operator]:
    """Yield ``readers``; instead of the watermark of a table, yield its readers.

    A calc that drops no row keeps upserts as they are for readers that take them.
    """
    for reader in readers:
        above = plan.readers[reader.id]
        is_calc = isinstance(reader, Calc) and bool(above)
        if reader.sends_watermark or (is_calc and all(each.sends_watermark for each in above)):
            yield from _above_watermark(plan, above)
        elif isinstance(reader, Calc) and is_calc and reader.filter is None and _take_upserts(above):
            yield from above
        else:
            yield reader


def _take_upserts(readers: Sequence[Operator]) -> bool:
    return all(reader.takes_upserts and not reader.normalizes_changes for reader in readers)

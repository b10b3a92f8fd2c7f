"""Checks that each operator of a plan has suitable inputs and readers.

The kind of an operator defines which these are. For example, a scan of upserts is not a changelog until a
``changelog-normalize`` has normalized it. A ``sink-materialize`` keeps rows by the key of the sinks that read it.

>>> list(check_places(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators.contract.operator import Neighbours


def check_places(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for every operator with unsuitable inputs or readers.

    The graph of ``plan`` and its tables must be valid.
    """
    for operator in plan.operators:
        inputs = tuple(plan.by_id[name] for name in operator.inputs)
        readers = tuple(plan.readers[operator.id])
        yield from operator.check_neighbours(Neighbours(inputs=inputs, readers=readers, plan=plan))

"""Whether the operators of a plan stand where they can: above and below operators that they go with.

What an operator may read, and what may read it, its kind says: a scan of upserts is no changelog before a
``changelog-normalize`` has made it one, and a ``sink-materialize`` keeps rows by the key of the sinks that read it.

>>> list(check_places(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, kind_of
from hintplan.plans.operators.spec.kind import Neighbour


def check_places(plan: Plan) -> Iterator[Diagnostic]:
    """Every operator that cannot stand where it does.

    The graph of ``plan`` and its tables must be known to be right.
    """
    for operator in plan.operators:
        check = kind_of(operator).check_place
        if check is not None:
            inputs = [_neighbour(plan.by_id[name]) for name in operator.inputs]
            readers = [_neighbour(reader) for reader in plan.readers[operator.id]]
            yield from check(operator, inputs, readers, plan, f"operators.{operator.id}")


def _neighbour(operator: Operator) -> Neighbour:
    return Neighbour(kind=kind_of(operator), operator=operator)

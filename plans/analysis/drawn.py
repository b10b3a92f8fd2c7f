"""Finds operators whose random values reach more than one reader: a batch job must draw them once.

A stream pins the values that it draws (:mod:`hintplan.plans.analysis.pinned`).

>>> drawing(Plan(name="p"))
frozenset()
"""

from __future__ import annotations

from collections import Counter

from hintplan.plans.declarations.built_in import CLASSES_DRAWN
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Correlate


def drawing(plan: Plan) -> frozenset[str]:
    """Return the calls of RAND, UUID and similar functions from which more than one path leads to sinks."""
    paths: Counter[str] = Counter(sink.id for sink in plan.sinks)
    for operator in reversed(plan.operators):  # readers follow their inputs
        for name in operator.inputs:
            paths[name] += paths[operator.id]
    return frozenset(
        operator.id
        for operator in plan.operators
        if isinstance(operator, Correlate) and _draws(plan, operator.function) and paths[operator.id] > 1
    )


def _draws(plan: Plan, name: str) -> bool:
    return name in plan.functions and plan.functions[name].class_name in CLASSES_DRAWN

"""A rule that finds duplicate state: equal stateful operators whose inputs differ only in columns or conditions.

>>> list(doubled_state(Plan(name="p")))
[]
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from hintplan.plans.format.digest import operator_facts
from hintplan.plans.lint.rule import Finding
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator

_OF_READERS = ("id", "inputs", "op", "filter", "select", "columns", "output", "changelog", "settings")
"""Facts in which readers of one query may differ, and facts that do not affect the stored rows."""


def doubled_state(plan: Plan) -> Iterator[Finding]:
    """Report operators that keep the same state as another, except for the columns and conditions of their readers."""
    shapes: dict[str, str] = {}
    alike: dict[str, list[Operator]] = {}
    for operator in plan.operators:
        below = [shapes.get(name, "?") for name in operator.inputs]
        if _is_calc(operator):
            shapes[operator.id] = below[0] if below else "?"
            continue
        text = json.dumps([operator.op, _facts(operator), below], sort_keys=True)
        shape = shapes[operator.id] = sha256(text.encode()).hexdigest()
        if not operator.state:
            continue
        other = next(
            (candidate for candidate in alike.get(shape, ()) if _computes_the_same(plan, candidate, operator)), None
        )
        alike.setdefault(shape, []).append(operator)
        if other is not None:
            yield Finding(
                path=f"operators.{operator.id}",
                message=f"it stores what {other.id} stores, too, except for columns and conditions of their readers",
            )


def _is_calc(operator: Operator) -> bool:
    return operator.below_shared and not operator.state


def _facts(operator: Operator) -> dict[str, Any]:
    facts = {key: value for key, value in operator_facts(operator).items() if key not in _OF_READERS}
    if "state" in facts:
        facts["state"] = [entry["name"] for entry in facts["state"]]
    return facts


def _computes_the_same(plan: Plan, one: Operator, other: Operator) -> bool:
    """Return True if calcs below two operators of one shape compute columns of the same name in the same way."""
    pairs = [(one, other)]
    while pairs:
        pair = pairs.pop()
        for names in zip(*(operator.inputs for operator in pair), strict=True):
            (first, made), (second, made_too) = (_below_calcs(plan, name) for name in names)
            if any(made.get(name, made_too[name]) != made_too[name] for name in made_too):
                return False
            if first is None or second is None:
                return False
            pairs.append((first, second))
    return True


def _below_calcs(plan: Plan, name: str) -> tuple[Operator | None, dict[str, Any]]:
    """Return the operator below the calcs from ``name`` down, and the calcs' definition of each column."""
    made: dict[str, Any] = {}
    operator = plan.by_id.get(name)
    while operator is not None and _is_calc(operator):
        for item in operator_facts(operator)["select"]:
            column = item if isinstance(item, str) else item["name"]
            made.setdefault(column, item)
        operator = plan.by_id.get(operator.inputs[0]) if operator.inputs else None
    return operator, made

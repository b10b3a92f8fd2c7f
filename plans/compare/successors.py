"""Finds the operator of a recompiled plan that has most likely replaced an operator which the plan no longer has.

Only operators that the old plan did not have can be successors. Similarity is counted in points for the features that a
reader would compare: inputs, keys, tables, columns, the name. Knows no settings.

>>> from hintplan.plans.operators import Scan
>>> old, new = Scan(id="scan_o", table="o", columns=("a",)), Scan(id="scan_o_in_v", table="o", columns=("a",))
>>> likely = successor(old, (new,))
>>> likely.id, likely.why
('scan_o_in_v', 'a scan too, with the same table and columns')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hintplan.plans.format.digest import operator_facts
from hintplan.plans.frozen import frozen
from hintplan.plans.operators import Operator

_ENOUGH = 0.5
_LITTLE = 0.3
_WEIGHTS: Mapping[str, float] = {
    "table": 3,
    "inputs": 2,
    "keys": 3,
    "key": 3,
    "state inputs": 2,
    "function": 3,
    "join-type": 0.5,
    "output": 1.5,
    "select": 1.5,
    "aggregates": 1.5,
    "columns": 1.5,
    "arguments": 1.5,
    "order": 1.5,
    "condition": 1,
    "filter": 1,
}
"""The facts that are compared, with their weights."""


@frozen
class Successor:
    """An operator that may have replaced another; ``why`` lists the facts that agree and the facts that differ."""

    id: str
    why: str


def successor(lost: Operator, candidates: Iterable[Operator]) -> Successor | None:
    """Return the candidate most similar to ``lost`` and of the same kind, or None if none is similar."""
    from difflib import SequenceMatcher  # few plans lose operators

    best, best_match = 0.0, None
    facts = _compared(lost)
    for candidate in candidates:
        if type(candidate) is not type(lost):
            continue
        likeness, why = _likeness(facts, _compared(candidate))
        likeness += SequenceMatcher(None, lost.id, candidate.id).ratio() / 10
        if likeness >= _ENOUGH and likeness > best:
            article = "an" if lost.op[0] in "aeiou" else "a"
            best, best_match = likeness, Successor(id=candidate.id, why=f"{article} {lost.op} too, {why}")
    return best_match


def is_another(old: Operator, new: Operator) -> bool:
    """Return True if two operators with one id are unrelated.

    Unrelated operators differ in kind, table or function, or have little in common.
    """
    if type(old) is not type(new):
        return True
    if any(getattr(old, name, None) != getattr(new, name, None) for name in ("table", "function")):
        return True
    facts, wanted = _compared(old), _compared(new)
    own = (facts.keys() | wanted.keys()) - {"inputs", "state inputs"}
    return bool(own) and facts != wanted and _likeness(facts, wanted)[0] < _LITTLE


def _compared(operator: Operator) -> dict[str, Any]:
    facts = operator_facts(operator)
    if "state" in facts:
        facts["state inputs"] = [entry["input"] for entry in facts["state"]]
    return {name: facts[name] for name in _WEIGHTS if name in facts}


def _likeness(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[float, str]:
    """Return the similarity from 0 to 1, and a description of it."""
    points = total = 0.0
    same: list[str] = []
    alike: list[str] = []
    other: list[str] = []
    for name, weight in _WEIGHTS.items():
        if old.get(name) is None and new.get(name) is None:
            continue
        total += weight
        share = _share(old.get(name), new.get(name))
        points += weight * share
        (same if share == 1 else alike if share >= 0.5 else other).append(name)
    parts = [f"with the same {_listed(same)}"] if same else []
    parts += [f"with most of its {_listed(alike)}"] if alike else []
    parts += [f"but other {_listed(other)}"] if other and parts else []
    return points / total if total else 0.0, ", ".join(parts)


def _share(old: object, new: object) -> float:
    """Return the share of two values that is the same; the order of items does not matter."""
    if not isinstance(old, list) or not isinstance(new, list):
        return 1.0 if old == new else 0.0
    first, second = {repr(item) for item in old}, {repr(item) for item in new}
    return len(first & second) / len(first | second) if first | second else 1.0


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def table_successor(lost: Mapping[str, Any], candidates: Mapping[str, Mapping[str, Any]]) -> Successor | None:
    """Return the most similar table among ``candidates``, or None.

    A successor has the same connector as ``lost``, and at least half of all columns in common.
    """
    best, best_match = 0.5, None
    for name, facts in candidates.items():
        share = _share(lost["columns"], facts["columns"])
        if facts["options"] == lost["options"] and share >= best:
            columns = "the same" if share == 1 else "most of its"
            best, best_match = share, Successor(id=f"tables.{name}", why=f"the same connector and {columns} columns")
    return best_match

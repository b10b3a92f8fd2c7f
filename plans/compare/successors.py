"""Which operator of a recompiled plan has most likely taken the place of one that it no longer has, and why.

Only operators that the old plan did not have can be successors. Likeness is counted in points for what a reader would
look at: inputs, keys, tables, columns, the name. Knows no settings.

>>> from hintplan.plans.operators import Scan
>>> old, new = Scan(id="scan_o", table="o", columns=("a",)), Scan(id="scan_o_in_v", table="o", columns=("a",))
>>> found = successor(old, (new,))
>>> found.id, found.why
('scan_o_in_v', 'a scan too, with the same table and columns')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from hintplan.plans.format.digest import operator_facts
from hintplan.plans.operators import Operator, op_name

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
"""What is compared, and how much it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Successor:
    """An operator that may have taken another's place; ``why`` says what the two have in common, and what not."""

    id: str
    why: str


def successor(lost: Operator, candidates: Iterable[Operator]) -> Successor | None:
    """The candidate most like ``lost``, of the same kind; None if none is like it."""
    best, found = 0.0, None
    facts = _compared(lost)
    for candidate in candidates:
        if type(candidate) is not type(lost):
            continue
        likeness, why = _likeness(facts, _compared(candidate))
        likeness += SequenceMatcher(None, lost.id, candidate.id).ratio() / 10
        if likeness >= _ENOUGH and likeness > best:
            article = "an" if op_name(lost)[0] in "aeiou" else "a"
            best, found = likeness, Successor(id=candidate.id, why=f"{article} {op_name(lost)} too, {why}")
    return found


def is_another(old: Operator, new: Operator) -> bool:
    """Whether two operators, though they may have one id, are of other kinds, tables or functions, or little alike."""
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
    """From 0 to 1, and in words."""
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


def _share(old: Any, new: Any) -> float:
    """How much of two values is the same; the order of items does not matter."""
    if not isinstance(old, list) or not isinstance(new, list):
        return 1.0 if old == new else 0.0
    first, second = {repr(item) for item in old}, {repr(item) for item in new}
    return len(first & second) / len(first | second) if first | second else 1.0


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def table_successor(lost: Mapping[str, Any], candidates: Mapping[str, Mapping[str, Any]]) -> Successor | None:
    """The table, of facts by name, that has most of the columns of ``lost`` and its connector; None if none has."""
    best, found = 0.5, None
    for name, facts in candidates.items():
        share = _share(lost["columns"], facts["columns"])
        if facts["options"] == lost["options"] and share >= best:
            columns = "the same" if share == 1 else "most of its"
            best, found = share, Successor(id=f"tables.{name}", why=f"the same connector and {columns} columns")
    return found

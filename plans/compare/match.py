"""Which operator of one plan is which of another: by id, and where ids differ, by what the operators do.

Ids come from names in the query, so another alias gives an operator another id. Operators that are gone and operators
that are new are matched when their facts, apart from ids, are the same, with all that leads to them or else by
themselves, and nothing else is as like them.

>>> from hintplan.plans.operators import Scan
>>> a, b = (Plan(name="p", operators=(Scan(id=i, table="t", columns=("x",)),)) for i in ("scan_a", "scan_b"))
>>> match(a, b).renamed
{'scan_a': 'scan_b'}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from hintplan.plans.compare.successors import is_another
from hintplan.plans.format.digest import operator_facts
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, tables_used


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """``removed`` and ``added`` in the order of their plans; ``renamed`` from the old id to the new one."""

    removed: tuple[Operator, ...]
    added: tuple[Operator, ...]
    renamed: Mapping[str, str]


def match(before: Plan, after: Plan) -> Match:
    """Tell which operators of ``before`` went, which of ``after`` came, and which have only got another id."""
    others = _others(before, after)
    old, new = {o.id for o in before.operators} - others, {o.id for o in after.operators} - others
    gone = [operator for operator in before.operators if operator.id not in new]
    came = [operator for operator in after.operators if operator.id not in old]
    renamed: dict[str, str] = {}
    if gone and came:
        deep = (_lineages(before.operators), _lineages(after.operators))
        _pair(gone, came, renamed, lambda operator, side: deep[side].get(operator.id, ""))
        _pair(gone, came, renamed, lambda operator, side: _own(operator))
    return Match(
        removed=tuple(operator for operator in gone if operator.id not in renamed),
        added=tuple(operator for operator in came if operator.id not in renamed.values()),
        renamed=renamed,
    )


def _others(before: Plan, after: Plan) -> set[str]:
    """Ids that have passed to operators that have nothing in common with those that had them."""
    old = before.by_id
    return {
        operator.id
        for operator in after.operators
        if (was := old.get(operator.id)) is not None and was != operator and is_another(was, operator)
    }


def only_renamed(before: Plan, after: Plan) -> dict[str, str]:
    """The operators of ``before`` that are in ``after`` under another id beyond doubt, by their old id.

    They do the same, nothing else does, and all tables that their rows came from are among those they come from now.
    """
    renamed = match(before, after).renamed
    if not renamed:
        return {}
    names = {table: place for place, table in enumerate({*_tables(before).values(), *_tables(after).values()})}
    old, new = _origins(before, names), _origins(after, names)
    return {a: b for a, b in renamed.items() if old[a] and not old[a] & ~new[b]}


def _tables(plan: Plan) -> dict[str, str]:
    return {operator.id: table for operator, table in tables_used(plan.operators, "reads")}


def _origins(plan: Plan, places: Mapping[str, int]) -> dict[str, int]:
    """The tables that the rows of each operator come from, as the bits of a number."""
    tables = _tables(plan)
    found: dict[str, int] = {}
    for operator in plan.operators:
        own = 1 << places[tables[operator.id]] if operator.id in tables else 0
        for name in operator.inputs:
            own |= found.get(name, 0)
        found[operator.id] = own
    return found


def _pair(
    gone: list[Operator], came: list[Operator], renamed: dict[str, str], key: Callable[[Operator, int], str]
) -> None:
    """Add to ``renamed`` what has the same ``key`` and is the only one of its side that has it."""
    left = _unique((o for o in gone if o.id not in renamed), lambda operator: key(operator, 0))
    taken = set(renamed.values())
    right = _unique((o for o in came if o.id not in taken), lambda operator: key(operator, 1))
    for fingerprint, operator in left.items():
        if fingerprint in right:
            renamed[operator.id] = right[fingerprint].id


def _unique(operators: Iterable[Operator], key: Callable[[Operator], str]) -> dict[str, Operator]:
    found: dict[str, list[Operator]] = {}
    for operator in operators:
        found.setdefault(key(operator), []).append(operator)
    return {fingerprint: same[0] for fingerprint, same in found.items() if len(same) == 1 and fingerprint}


def _lineages(operators: tuple[Operator, ...]) -> dict[str, str]:
    """A fingerprint of each operator and of everything that leads to it, without any id."""
    found: dict[str, str] = {}
    for operator in operators:
        inputs = [found.get(name, "?") for name in operator.inputs]
        found[operator.id] = sha256(json.dumps([_own(operator), inputs]).encode()).hexdigest()
    return found


def _own(operator: Operator) -> str:
    """What the operator does by itself, as text."""
    facts = {key: value for key, value in operator_facts(operator).items() if key not in ("id", "inputs")}
    # What a state calls its input is an alias too.
    if "state" in facts:
        facts["state"] = [{k: v for k, v in entry.items() if k != "input"} for entry in facts["state"]]
    # An operator that only passes rows on is like all others of its kind: by itself it is no one in particular.
    return "" if facts.keys() == {"op"} else json.dumps(facts, sort_keys=True)

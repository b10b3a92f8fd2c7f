"""Matches the operators of two plans: by id, or by their facts if ids differ.

Ids derive from names in the query, so another alias gives an operator another id. A removed operator matches an added
one if their facts apart from ids are equal. Facts are compared first with everything below the operators, then without.
A match must be unique.

>>> from hintplan.plans.operators import Scan
>>> a, b = (Plan(name="p", operators=(Scan(id=i, table="t", columns=("x",)),)) for i in ("scan_a", "scan_b"))
>>> match(a, b).renamed
{'scan_a': 'scan_b'}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256

from hintplan.plans.compare.successors import is_another
from hintplan.plans.format.digest import operator_facts
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, tables_used


@frozen
class Match:
    """The operators that differ in id.

    ``removed`` and ``added`` are in the order of their plans; ``renamed`` maps old ids to new ones.
    """

    removed: tuple[Operator, ...]
    added: tuple[Operator, ...]
    renamed: Mapping[str, str]


def match(before: Plan, after: Plan) -> Match:
    """Match the operators of both plans: return the removed ones, the added ones, and the renamed ones."""
    reassigned = _others(before, after)
    old, new = {o.id for o in before.operators} - reassigned, {o.id for o in after.operators} - reassigned
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
    """Return the ids that another, unrelated operator has taken over."""
    old = before.by_id
    return {
        operator.id
        for operator in after.operators
        if (was := old.get(operator.id)) is not None and was != operator and is_another(was, operator)
    }


def only_renamed(before: Plan, after: Plan) -> dict[str, str]:
    """Map the old to the new id of each operator that ``after`` has under another id beyond doubt.

    Such an operator has the same facts as before, and no other operator has them. Its rows still derive from all tables
    from which they derived before.
    """
    renamed = match(before, after).renamed
    if not renamed:
        return {}
    bits = {table: place for place, table in enumerate({*_tables(before).values(), *_tables(after).values()})}
    old, new = _origins(before, bits), _origins(after, bits)
    return {a: b for a, b in renamed.items() if old[a] and not old[a] & ~new[b]}


def _tables(plan: Plan) -> dict[str, str]:
    """Return the table that each scan reads, by the scan's id."""
    return {operator.id: table for operator, table in tables_used(plan.operators, "reads")}


def _origins(plan: Plan, places: Mapping[str, int]) -> dict[str, int]:
    """Return the source tables of each operator's rows, as the bits of a number."""
    tables = _tables(plan)
    origins: dict[str, int] = {}
    for operator in plan.operators:
        own = 1 << places[tables[operator.id]] if operator.id in tables else 0
        for name in operator.inputs:
            own |= origins.get(name, 0)
        origins[operator.id] = own
    return origins


def _pair(
    gone: list[Operator], came: list[Operator], renamed: dict[str, str], key: Callable[[Operator, int], str]
) -> None:
    """Add to ``renamed`` each pair of operators with the same ``key``, if the key is unique on both sides."""
    left = _unique((o for o in gone if o.id not in renamed), lambda operator: key(operator, 0))
    taken = set(renamed.values())
    right = _unique((o for o in came if o.id not in taken), lambda operator: key(operator, 1))
    for fingerprint, operator in left.items():
        if fingerprint in right:
            renamed[operator.id] = right[fingerprint].id


def _unique(operators: Iterable[Operator], key: Callable[[Operator], str]) -> dict[str, Operator]:
    by_key: dict[str, list[Operator]] = {}
    for operator in operators:
        by_key.setdefault(key(operator), []).append(operator)
    return {fingerprint: same[0] for fingerprint, same in by_key.items() if len(same) == 1 and fingerprint}


def _lineages(operators: tuple[Operator, ...]) -> dict[str, str]:
    """Return a fingerprint of each operator and everything below it, without any id."""
    fingerprints: dict[str, str] = {}
    for operator in operators:
        inputs = [fingerprints.get(name, "?") for name in operator.inputs]
        fingerprints[operator.id] = sha256(json.dumps([_own(operator), inputs]).encode()).hexdigest()
    return fingerprints


def _own(operator: Operator) -> str:
    """Return the facts of the operator alone, as text."""
    facts = {key: value for key, value in operator_facts(operator).items() if key not in ("id", "inputs")}
    # The name of a state's input is an alias too.
    if "state" in facts:
        facts["state"] = [{k: v for k, v in entry.items() if k != "input"} for entry in facts["state"]]
    # All operators of a kind that only passes rows on are alike, so without their inputs they cannot be matched.
    return "" if facts.keys() == {"op"} else json.dumps(facts, sort_keys=True)

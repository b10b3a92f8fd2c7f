"""Digests over the facts of a plan, so that no manual edit changes a fact unnoticed.

Facts are the meaning of the query: operators, edges, keys, expressions, schemas. These settings can be edited freely:

- ``config``, ``name``, ``source``, ``reasons``
- the ``ttl`` and ``origin`` of state entries
- the ``async``, ``retry``, ``cache``, ``phases``, ``watermark`` and ``cached`` of operators
- table options other than ``connector``

A digest protects against mistakes and unnoticed changes, not against an attacker, who can recompute it.

>>> table_facts(Table(columns=(), options={"connector": "print", "print-identifier": "x"}))
{'columns': [], 'options': {'connector': 'print'}}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hintplan.plans.declarations.tables import Function, Table
from hintplan.plans.format.document import function_document, operator_document, table_document
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator
from hintplan.plans.settings.state import STATE_SETTINGS

_STATE_SETTINGS = (*STATE_SETTINGS, "origin")
# Sorted keys and no blanks make the digest independent of the file's layout. orjson cannot write ASCII only.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def operator_facts(operator: Operator) -> dict[str, Any]:
    """Return the JSON values of ``operator`` without its settings."""
    return _facts(operator, operator_document(operator))


def _facts(operator: Operator, document: Mapping[str, Any]) -> dict[str, Any]:
    settings = {group.name for group in operator.groups}
    facts = {key: value for key, value in document.items() if key not in settings}
    if "state" in facts:
        facts["state"] = [{k: v for k, v in entry.items() if k not in _STATE_SETTINGS} for entry in facts["state"]]
    return facts


def table_facts(table: Table) -> dict[str, Any]:
    """Return the JSON values of ``table`` without its settings; of the options, only ``connector`` is a fact."""
    facts = table_document(table)
    facts["options"] = {key: value for key, value in facts["options"].items() if key == "connector"}
    return facts


def table_digest(name: str, table: Table) -> str:
    """Return the first 16 hex digits of sha256 over the facts of ``table`` and its name."""
    return _digest({"table": name, **table_facts(table)})


def function_digest(name: str, function: Function) -> str:
    """Return the first 16 hex digits of sha256 over ``function`` and its name."""
    return _digest({"function": name, **function_document(function)})


def tables_of_settings(plan: Plan) -> frozenset[str]:
    """Return the tables that no operator of the plan file uses: a setting may send late rows to them."""
    return frozenset(plan.tables.keys() - {operator.table for operator in plan.declared})


def plan_digests(plan: Plan, operators: Sequence[Mapping[str, Any]] | None = None) -> dict[str, dict[str, str]]:
    """Return the digests of the facts of a plan, sorted by name; ``functions`` only if there are any.

    A table that only late rows go to follows from a setting, so it is no fact.

    ``operators`` are the JSON values of its operators if the caller has them.
    """
    documents = map(operator_document, plan.declared) if operators is None else operators
    digests = {
        operator.id: _digest(_facts(operator, document))
        for operator, document in zip(plan.declared, documents, strict=True)
    }
    functions = {name: function_digest(name, plan.functions[name]) for name in sorted(plan.functions)}
    late = {sink.table for sink in plan.sinks} & tables_of_settings(plan)
    return {
        "tables": {name: table_digest(name, plan.tables[name]) for name in sorted(plan.tables) if name not in late},
        **({"functions": functions} if functions else {}),
        "operators": {operator_id: digests[operator_id] for operator_id in sorted(digests)},
    }


def document_digests(plan: Plan, operators: Sequence[Mapping[str, Any]] | None = None) -> dict[str, dict[str, str]]:
    """Return the ``digests`` of a plan file: of its facts, and of its settings as compiled.

    ``operators`` is as in :func:`plan_digests`.
    """
    compiled = {"settings": {path: plan.compiled[path] for path in sorted(plan.compiled)}} if plan.compiled else {}
    return {**compiled, **plan_digests(plan, operators)}


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(_ENCODER.encode(facts).encode()).hexdigest()[:16]


def changed_facts(plan: Plan, document: Mapping[str, Any]) -> list[str]:
    """Return the parts of ``plan`` whose facts differ from the digests in ``document``.

    An entry is for example ``operator 'join_o_c'``.
    """
    recorded = document.get("digests", {})
    unused = {("tables", name) for name in tables_of_settings(plan) - recorded.get("tables", {}).keys()}
    return [
        f"{kind.removesuffix('s')} '{name}'"
        for kind, actual in plan_digests(plan).items()
        for name, digest in actual.items()
        if recorded.get(kind, {}).get(name) != digest and (kind, name) not in unused
    ]

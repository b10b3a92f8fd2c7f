"""Digests of the meaning of a state: of its operator and everything below the operator.

A state carries over to any operator with the same digest, so ids, aliases, TTLs and other settings are not part of it.
Pure.

>>> state_lineages(Plan(name="p"))
{}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from hintplan.plans.analysis.columns import check_columns
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds, merged
from hintplan.plans.declarations.tables import Function
from hintplan.plans.format.digest import operator_facts
from hintplan.plans.format.document import function_document
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Stateful, tables_used


def keeps_state(operator: Operator) -> bool:
    """Return True if ``operator`` keeps anything in a checkpoint."""
    return bool(operator.state) or operator.parks_rows


def state_lineages(plan: Plan) -> dict[str, str]:
    """Return a digest of the meaning of each operator's state, by id; without state, of the operator's output.

    The digest ignores the names of operators, aliases, settings and everything above the operator.
    """
    rows: dict[str, str] = {}
    lineages: dict[str, str] = {}
    kinds: dict[str, RowKinds] = {}
    for operator in plan.operators:
        inputs = [kinds.get(name, INSERT_ONLY) for name in operator.inputs]
        # The layout of a state allows for retractions if its input is a changelog.
        below = [
            [rows.get(name, "?"), row_kinds != INSERT_ONLY]
            for name, row_kinds in zip(operator.inputs, inputs, strict=True)
        ]
        left_out = ("id", "inputs", *operator.implied)
        facts = _facts_without(operator, left_out)
        reads = _reads(plan, operator)
        if not operator.in_lineage:
            rows[operator.id] = lineages[operator.id] = rows.get(operator.inputs[0], "?")
            kinds[operator.id] = operator.row_kinds(merged(inputs), plan)
            continue
        rows[operator.id] = _digest([facts, reads, below])
        kinds[operator.id] = operator.row_kinds(merged(inputs), plan)
        lineages[operator.id] = _digest([_without_output(operator, facts), reads, below, operator.parks_rows])
    return lineages


def state_layouts(plan: Plan) -> dict[str, str]:
    """Return a digest of the layout of each operator's state, by id: of the operator and the columns that it reads.

    States of one layout hold rows of the same form, though not the same rows. An operator is left out if the columns of
    its inputs do not resolve.
    """
    columns = check_columns(plan)[0]
    layouts: dict[str, str] = {}
    kinds: dict[str, RowKinds] = {}
    for operator in plan.operators:
        inputs = [kinds.get(name, INSERT_ONLY) for name in operator.inputs]
        kinds[operator.id] = operator.row_kinds(merged(inputs), plan)
        if not keeps_state(operator) or not all(name in columns for name in operator.inputs):
            continue
        facts = _facts_without(operator, ("id", "inputs"))
        read = [
            [[(column.name, str(column.type)) for column in columns[name]], row_kinds != INSERT_ONLY]
            for name, row_kinds in zip(operator.inputs, inputs, strict=True)
        ]
        layouts[operator.id] = _digest(
            [_without_output(operator, facts), _reads(plan, operator), read, operator.parks_rows]
        )
    return layouts


def _facts_without(operator: Operator, left_out: Collection[str]) -> dict[str, Any]:
    """Return the facts of an operator except those ``left_out``, with only the names of its states."""
    facts = {key: value for key, value in operator_facts(operator).items() if key not in left_out}
    return facts | {"state": [entry["name"] for entry in facts["state"]]} if "state" in facts else facts


def _without_output(operator: Operator, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that determine an operator's state, without facts that only affect its output."""
    own = {key: value for key, value in facts.items() if key != "changelog"}
    return operator.state_facts(own) if isinstance(operator, Stateful) else own


def _reads(plan: Plan, operator: Operator) -> list[object]:
    """Return the columns that an operator reads of a table, with their types, or the functions that make its state."""
    if operator.state and (function_names := operator.functions):
        return [_function_facts(plan.functions[name]) if name in plan.functions else name for name in function_names]
    for reader, name in tables_used((operator,), "reads", "looks up"):
        table = plan.tables.get(name)
        if table is None:
            return [name]
        types = {column.name: column.type for column in table.columns}
        columns = operator_facts(reader)["columns"]
        return [name, table.options.get("connector"), [types.get(column) for column in columns]]
    return []


def _function_facts(function: Function) -> dict[str, Any]:
    """Return the facts of a function that determine its state: all except the names of its other methods."""
    return {key: value for key, value in function_document(function).items() if key != "methods"}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]

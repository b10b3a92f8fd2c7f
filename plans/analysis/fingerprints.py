"""Fingerprints of the meaning of an operator: of everything that determines its rows, down to the tables.

Two operators with the same meaning, in one plan or in several, have the same result, so they can share a cached one.
Ids, names of tables, settings and the rest of the plan do not matter. All options of a table count, because ``path``
and ``url`` determine its rows. The time zone counts, because expressions depend on it.

>>> from hintplan.plans.operators import Scan
>>> scan = Scan(id="scan_o", table="o", columns=("a",))
>>> orders = Table(columns=(TableColumn(name="a", type="INT"),), options={"connector": "filesystem", "path": "/o"})
>>> one = Plan(name="p", mode="batch", tables={"o": orders}, operators=(scan,))
>>> two = Plan(name="q", mode="batch", tables={"b": orders}, operators=(replace(scan, id="scan_b", table="b"),))
>>> meaning(one, "scan_o") == meaning(two, "scan_b")
True
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from hintplan.plans.connectors.table import is_by_program
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.format.digest import operator_facts
from hintplan.plans.format.document import function_document, table_document
from hintplan.plans.model.config import TIME_ZONE
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator

# Facts that depend on the readers of the operator, or that are only names or references within the plan.
_NOT_MEANT = ("id", "inputs", "table", "changelog", "state")


def meaning(plan: Plan, operator_id: str) -> str:
    """Return the meaning of an operator as 64 hex digits; raise KeyError if there is no such operator."""
    return meanings(plan)[operator_id]


def meanings(plan: Plan, handed: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the meaning of every operator by id; each input must precede its readers.

    ``handed`` identifies the data that a Python program supplies for a table, by the table's name.
    """
    zone = plan.config.get(TIME_ZONE, "UTC")
    digests: dict[str, str] = {}
    for operator in plan.operators:
        digests[operator.id] = _digest(
            [zone, _own(operator, plan, handed), [digests[name] for name in operator.inputs]]
        )
    return digests


def _own(operator: Operator, plan: Plan, handed: Mapping[str, str]) -> dict[str, Any]:
    facts = {key: value for key, value in operator_facts(operator).items() if key not in _NOT_MEANT}
    if (table := operator.table) is not None:
        facts["table"] = _table(plan.tables[table])
        if is_by_program(plan.tables[table]):
            facts["handed"] = handed.get(table, table)  # no option identifies the data
    if functions := operator.functions:
        facts["function"] = [function_document(plan.functions[name]) for name in functions]
    return facts


def _table(table: Table) -> dict[str, Any]:
    """Return the facts that determine a table's rows: its key, its options, and its columns except computed ones."""
    columns = tuple(
        TableColumn(name=c.name, type=c.type, metadata=c.metadata) for c in table.columns if c.expression is None
    )
    return table_document(replace(table, columns=columns, watermark=None, comment=None))


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()

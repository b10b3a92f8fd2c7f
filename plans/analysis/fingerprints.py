"""What an operator means: everything that decides which rows it puts out, down to the tables, and nothing else.

Two operators with the same meaning, in one plan or in several, have the same result, so a cached one can stand for
both. Ids, names of tables, settings and whatever else the plan contains do not matter. Tables count with all their
options, as ``path`` and ``url`` say which rows there are; the time zone counts, because expressions depend on it.

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
from hintplan.plans.operators import Operator, functions_of, table_of

# What depends on who reads the operator, or is a name or a place in the plan.
_NOT_MEANT = ("id", "inputs", "table", "changelog", "state")


def meaning(plan: Plan, operator_id: str) -> str:
    """The meaning of an operator as 64 hex digits; KeyError if there is no such operator."""
    return meanings(plan)[operator_id]


def meanings(plan: Plan, handed: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """The meaning of every operator by id; each input must stand above its readers.

    ``handed`` tells apart what a Python program hands over for a table, by the table's name.
    """
    zone = plan.config.get(TIME_ZONE, "UTC")
    found: dict[str, str] = {}
    for operator in plan.operators:
        found[operator.id] = _digest([zone, _own(operator, plan, handed), [found[name] for name in operator.inputs]])
    return found


def _own(operator: Operator, plan: Plan, handed: Mapping[str, str]) -> dict[str, Any]:
    facts = {key: value for key, value in operator_facts(operator).items() if key not in _NOT_MEANT}
    if (table := table_of(operator)) is not None:
        facts["table"] = _table(plan.tables[table])
        if is_by_program(plan.tables[table]):
            facts["handed"] = handed.get(table, table)  # which no option says
    if functions := functions_of(operator):
        facts["function"] = [function_document(plan.functions[name]) for name in functions]
    return facts


def _table(table: Table) -> dict[str, Any]:
    """What decides the rows of a table: the columns that can be read, its key and its options; not computed columns."""
    columns = tuple(
        TableColumn(name=c.name, type=c.type, metadata=c.metadata) for c in table.columns if c.expression is None
    )
    return table_document(replace(table, columns=columns, watermark=None, comment=None))


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()

"""Short digests of compiled settings that have no origin, to distinguish edits from the SQL.

The origin of a state's TTL has the values of config and hint. The name, ``config``, the options of tables, and the
presence of retries at a lookup have no such layers. For each of them, the plan keeps a digest of the compiled value
under ``digests.settings``. A value with another digest is an edit. Compilation writes the digests; edits leave them
unchanged.

>>> record(Plan(name="p", config={"parallelism.default": "4"}))
{'config.parallelism.default': '4b227777', 'name': '148de9c5'}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hintplan.plans.format.digest import operator_facts
from hintplan.plans.format.document import operator_document
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import digest_of


def record(plan: Plan) -> Mapping[str, str]:
    """Return the digests of the current settings of ``plan``, by path, sorted."""
    values: dict[str, Any] = {"name": plan.name}
    values |= {f"config.{key}": value for key, value in plan.config.items()}
    for name, table in plan.tables.items():
        values |= {f"tables.{name}.options.{k}": v for k, v in table.options.items() if k != "connector"}
    for operator in plan.declared:
        facts = operator_facts(operator)
        for group, document in operator_document(operator).items():
            # Without this digest, an edit that removes a group which a hint had set would leave no trace.
            if group in _REMOVABLE and group not in facts and document and asked_for(document):
                values[f"{operator.id}.{group}"] = {k: v for k, v in document.items() if k != "origin"}
    return {path: digest_of(values[path]) for path in sorted(values)}


_REMOVABLE = ("retry", "cached")
"""The groups of settings that an edit can remove as a whole."""


def asked_for(group: Mapping[str, Any]) -> bool:
    """Return True if config, table or hint set values of the group; otherwise an edit has added it."""
    return any(layer != "default" for layer in group["origin"])


def with_record(plan: Plan) -> Plan:
    """Return ``plan``, just compiled, with the digests of its settings."""
    return replace(plan, compiled=record(plan))

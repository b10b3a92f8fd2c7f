"""What the compiler wrote for settings that have no origin: short digests, so that an edit can be told from the SQL.

A state's TTL says in its origin what config and hint asked for. The name, ``config``, the options of tables, and
whether a lookup retries at all have no such layers beside them; the plan keeps a digest of what each was compiled to,
under ``digests.settings``. A value with another digest is an edit. Compilation writes them, edits leave them alone.

>>> record(Plan(name="p", config={"parallelism.default": "4"}))
{'config.parallelism.default': '4b227777', 'name': '148de9c5'}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hintplan.plans.format.digest import operator_facts
from hintplan.plans.format.document import operator_document
from hintplan.plans.model.plan import Plan


def record(plan: Plan) -> Mapping[str, str]:
    """The digests of the settings of ``plan`` as they stand, by path, sorted."""
    values: dict[str, Any] = {"name": plan.name}
    values |= {f"config.{key}": value for key, value in plan.config.items()}
    for name, table in plan.tables.items():
        values |= {f"tables.{name}.options.{k}": v for k, v in table.options.items() if k != "connector"}
    for operator in plan.operators:
        facts = operator_facts(operator)
        for group, document in operator_document(operator).items():
            # A group that a hint asked for leaves no trace of that when an edit takes it away.
            if group in _REMOVABLE and group not in facts and document and asked_for(document):
                values[f"{operator.id}.{group}"] = {k: v for k, v in document.items() if k != "origin"}
    return {path: digest_of(values[path]) for path in sorted(values)}


_REMOVABLE = ("retry", "cached")
"""The groups of settings that an edit can take away as a whole."""


def asked_for(group: Mapping[str, Any]) -> bool:
    """Whether config, table or hint asked for a group of settings; if none did, an edit has added it."""
    return any(layer != "default" for layer in group["origin"])


def with_record(plan: Plan) -> Plan:
    """``plan``, just compiled, with the digests of its settings."""
    return replace(plan, compiled=record(plan))


def digest_of(value: Any) -> str:
    """The first 8 hex digits of sha256: of a text as it is, of anything else as JSON with sorted keys."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]

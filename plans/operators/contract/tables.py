"""The table that an operator uses: its description, and the problem of a table that the plan does not declare."""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import Diagnostic
from hintplan.plans.text.names import did_you_mean


def unknown_table(name: str, tables: Mapping[str, Table], path: str) -> Diagnostic:
    """Return the problem of an operator whose table the plan does not declare."""
    hint = did_you_mean(name, tables, what="tables")
    return Diagnostic(message=f"there is no table '{name}'", path=f"{path}.table", hint=hint)


def shown_connector(table: Table | None) -> str:
    """Return the name of a table's connector for descriptions."""
    return table.options.get("connector", "?") if table else "unknown table"


def described_table(operator_id: str, name: str, table: Table | None) -> str:
    """Return the table and its connector; an id of the usual form already contains the name of the table."""
    connector = shown_connector(table)
    return connector if operator_id.partition("_")[2] == name.lower() else f"{name} · {connector}"

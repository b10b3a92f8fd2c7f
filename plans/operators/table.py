"""Descriptions of the table that an operator reads or writes."""

from __future__ import annotations

from hintplan.plans.declarations.tables import Table


def shown_connector(table: Table | None) -> str:
    """Return the name of a table's connector for descriptions."""
    return table.options.get("connector", "?") if table else "unknown table"


def described_table(operator_id: str, name: str, table: Table | None) -> str:
    """Return the table and its connector; an id of the usual form already contains the name of the table."""
    connector = shown_connector(table)
    return connector if operator_id.partition("_")[2] == name.lower() else f"{name} · {connector}"

"""Descriptions of the table that an operator reads or writes."""

from __future__ import annotations

from hintplan.plans.declarations.tables import Table


def connector_of(table: Table | None) -> str:
    """Return the connector of a table, as descriptions show it."""
    return table.options.get("connector", "?") if table else "unknown table"


def described_table(operator_id: str, name: str, table: Table | None) -> str:
    """Return the table and its connector; an id of the usual form already contains the name of the table."""
    connector = connector_of(table)
    return connector if operator_id.partition("_")[2] == name.lower() else f"{name} · {connector}"

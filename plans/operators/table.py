"""The table that an operator reads or writes, in words."""

from __future__ import annotations

from hintplan.plans.declarations.tables import Table


def connector_of(table: Table | None) -> str:
    """The connector of a table, as a description names it."""
    return table.options.get("connector", "?") if table else "unknown table"


def described_table(operator_id: str, name: str, table: Table | None) -> str:
    """The table and its connector; an id of the usual form already names the table."""
    connector = connector_of(table)
    return connector if operator_id.partition("_")[2] == name.lower() else f"{name} · {connector}"

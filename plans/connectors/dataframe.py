"""The dataframe connector: reads a DataFrame of the program that runs the plan, or passes rows to a function of it."""

from __future__ import annotations

from hintplan.plans.connectors.connector import Connector, Reading, Writing
from hintplan.plans.declarations.row_kinds import ALL_KINDS, UPSERT_KINDS

DATAFRAME = Connector(
    name="dataframe",
    description="A DataFrame of the Python program that runs the plan, or a function of it that is handed the rows.",
    reading=Reading(takes_what_is_there=True),
    writing=Writing(
        kinds=lambda table: UPSERT_KINDS if table.primary_key else ALL_KINDS,
        upserts=lambda table: bool(table.primary_key),
        takes_updates="",
    ),
    by_program=True,
)

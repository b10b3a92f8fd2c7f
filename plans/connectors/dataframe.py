"""The dataframe connector: reads a DataFrame of the program that runs the plan, or passes rows to a function of it."""

from __future__ import annotations

from hintplan.plans.connectors.connector import Readable, Writable
from hintplan.plans.declarations.row_kinds import ALL_KINDS, UPSERT_KINDS, RowKinds
from hintplan.plans.declarations.tables import Table


class DataFrames(Readable, Writable):
    """DataFrames and functions of the program that runs the plan."""

    name = "dataframe"
    description = "A DataFrame of the Python program that runs the plan, or a function of it that is handed the rows."
    takes_what_is_there = True
    updates_condition = ""
    by_program = True

    def sink_kinds(self, table: Table) -> RowKinds:
        return UPSERT_KINDS if table.primary_key else ALL_KINDS

    def upserts(self, table: Table) -> bool:
        return bool(table.primary_key)


DATAFRAME = DataFrames()

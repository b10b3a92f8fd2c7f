"""The abilities and the sink options of tables in data lakes."""

from __future__ import annotations

from hintplan.plans.connectors.connector import Readable, Writable
from hintplan.plans.connectors.options import option
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, UPSERT_KINDS, RowKinds
from hintplan.plans.declarations.tables import Table

SINK_OPTIONS = (
    option(
        "sink.max-retries",
        "int",
        minimum=0,
        maximum=1_000,
        default="3",
        description="The number of retries of a sink after concurrent changes of the table.",
    ),
    option(
        "sink.parallelism",
        "int",
        maximum=10_000,
        description="The most tasks that write a micro-batch; without it as many as make its rows.",
    ),
)


class LakeConnector(Readable, Writable):
    """Tables in a data lake, which batch jobs read, and whose rows have a key or are only added."""

    in_streams = False
    overwrites = True
    updates_condition = "with a PRIMARY KEY"
    partitions = True

    def sink_kinds(self, table: Table) -> RowKinds:
        return UPSERT_KINDS if table.primary_key else INSERT_ONLY

    def upserts(self, table: Table) -> bool:
        return bool(table.primary_key)

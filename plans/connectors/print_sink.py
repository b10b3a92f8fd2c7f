"""The print connector: a sink that prints its rows in Flink's format."""

from __future__ import annotations

from hintplan.plans.connectors.connector import TASKS_WRITE, Connector, Writing
from hintplan.plans.connectors.options import option

PRINT = Connector(
    name="print",
    description="A sink that prints its rows as Flink does.",
    options=(option("print-identifier", description="What stands before each line."),),
    writing=Writing(is_suggested=True, takes_updates=""),
    times="always",
    idle={"sink.parallelism": TASKS_WRITE},
)

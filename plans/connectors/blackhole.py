"""The blackhole connector: a sink that drops its rows."""

from __future__ import annotations

from hintplan.plans.connectors.connector import TASKS_WRITE, Connector, Writing

BLACKHOLE = Connector(
    name="blackhole",
    description="A sink that drops what it gets.",
    writing=Writing(drops_rows=True),
    times="always",
    idle={"sink.parallelism": TASKS_WRITE},
)

"""The sink options of tables in data lakes."""

from __future__ import annotations

from hintplan.plans.connectors.options import option

SINK_OPTIONS = (
    option(
        "sink.max-retries",
        "int",
        minimum=0,
        maximum=1_000,
        default="3",
        description="How often a sink tries again when somebody else has changed the table meanwhile.",
    ),
    option(
        "sink.parallelism",
        "int",
        maximum=10_000,
        description="The most tasks that write a micro-batch; without it as many as make its rows.",
    ),
)

"""The setting for the number of phases of an aggregate: Flink's ``table.optimizer.agg-phase-strategy``, per operator.

With two phases, each task sums up its rows of a micro-batch per key, and only the sums are shuffled to the operator's
state. With one phase, the rows are shuffled. The result and the stored state are the same, so the setting can be edited
freely. Some aggregates must see every row, and always run in one phase. The setting applies to streaming plans only,
because Spark decides for a batch job. A plan contains the group only if config or an edit sets it.

>>> PHASES.resolved({"config": {STRATEGY: "TWO_PHASE"}}).values
{'agg-phase-strategy': 'TWO_PHASE'}
"""

from __future__ import annotations

from typing import Literal

from hintplan.plans.settings.effects import restarts
from hintplan.plans.settings.group import Group, specs
from hintplan.plans.settings.setting import Setting

STRATEGY = "agg-phase-strategy"
ONE_PHASE = "ONE_PHASE"
PhaseStrategy = Literal["AUTO", "ONE_PHASE", "TWO_PHASE"]

PHASES = Group(
    name="phases",
    schema="phases",
    description="The aggregation of a micro-batch per key before the shuffle. Streaming only.",
    layers=("default", "config"),
    absent="left out",
    mode="streaming",
    elsewhere="Spark decides itself in how many phases an aggregate of a batch job runs",
    settings=specs(
        Setting(
            name=STRATEGY,
            kind="choice",
            choices=("AUTO", ONE_PHASE, "TWO_PHASE"),
            default="AUTO",
            description="TWO_PHASE sums up where it can, ONE_PHASE does not, AUTO does where it makes rows fewer.",
            effect=restarts("one phase and two keep the same state, each reads the other's"),
            config="table.optimizer.agg-phase-strategy",
        )
    ),
)

"""In how many phases an aggregate runs: Flink's ``table.optimizer.agg-phase-strategy``, per operator.

In two phases the rows of a micro-batch are summed up per key where they are, and only the sums go over the network to
the operator's state; in one phase the rows go. The result and the stored state are the same, so the setting is free to
edit. An aggregate that must see every row runs in one phase whatever is set. Streaming plans only: Spark decides for a
batch job. A plan has the group only where config or an edit spoke.

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
    description="Whether the rows of a micro-batch are summed up per key before they are shuffled. Streaming only.",
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

"""The settings of early and late results of a group window: their delays, and how long a closed window takes rows.

A group window emits its result when the watermark passes its end. With early fire it also emits results before, with
late fire also after, and updates them. That an operator has early or late fire is a fact of it, because both decide its
row kinds. The settings only decide when. A delay is processing time, the lateness is event time.

>>> EMIT.resolved({"config": {EARLY_DELAY: "1 s"}}).values
{'early-fire.delay': '1 s', 'late-fire.delay': '0 ms', 'allow-lateness': '0 ms'}
"""

from __future__ import annotations

from hintplan.plans.settings.effects import restarts
from hintplan.plans.settings.group import Group, specs
from hintplan.plans.settings.setting import Setting

EARLY_DELAY, LATE_DELAY, LATENESS = "early-fire.delay", "late-fire.delay", "allow-lateness"
EARLY_ENABLED = "table.exec.emit.early-fire.enabled"
LATE_ENABLED = "table.exec.emit.late-fire.enabled"
"""The keys that give group windows early and late fire."""

EMIT = Group(
    name="emit",
    schema="emit",
    description="The early and late results of a group window. Streaming only.",
    layers=("default", "config"),
    absent="left out",
    mode="streaming",
    elsewhere="a window of a batch job is complete when it is emitted",
    settings=specs(
        Setting(
            name=EARLY_DELAY,
            kind="duration",
            default="0 ms",
            description="The time from a row to the early result that has it; 0 ms emits in the same micro-batch.",
            effect=restarts("rows that wait for their result wait for the new time"),
            config="table.exec.emit.early-fire.delay",
        ),
        Setting(
            name=LATE_DELAY,
            kind="duration",
            default="0 ms",
            description="The same for rows of closed windows.",
            effect=restarts("rows that wait for their result wait for the new time"),
            config="table.exec.emit.late-fire.delay",
        ),
        Setting(
            name=LATENESS,
            kind="duration",
            default="0 ms",
            description="The time for which a closed window still takes late rows; only with late fire.",
            effect=restarts(
                "windows are kept longer after they have closed; a window that is gone stays gone",
                text="windows take rows until {value} after they have closed",
                for_any="with a longer time, windows are kept longer, and a window that is gone stays gone. With a "
                "shorter one, the next batch removes more windows.",
            ),
            shortened=restarts(
                "the next batch removes windows that are kept longer than this",
                text="rows more than {value} behind the end of their window are dropped",
            ),
            config="table.exec.emit.allow-lateness",
        ),
    ),
)

"""Settings of cached results: whether and where the output of an operator is kept for later readers (FLIP-205).

Any operator except a sink can be cached, in batch plans only. A plan contains the group only if a layer or an edit sets
it. The first job that computes a cached result creates it. The result is dropped at the latest with the session.

>>> CACHED.resolved({"hint": {"enabled": True}}).values["storage-level"]
'MEMORY_AND_DISK'
"""

from __future__ import annotations

from hintplan.plans.settings.effects import KEPT
from hintplan.plans.settings.group import Group, specs
from hintplan.plans.settings.setting import Setting

ENABLED = "enabled"
STORAGE_LEVEL = "storage-level"

STORAGE_LEVELS = (
    "DISK_ONLY",
    "DISK_ONLY_2",
    "DISK_ONLY_3",
    "MEMORY_ONLY",
    "MEMORY_ONLY_2",
    "MEMORY_ONLY_SER",
    "MEMORY_ONLY_SER_2",
    "MEMORY_AND_DISK",
    "MEMORY_AND_DISK_2",
    "MEMORY_AND_DISK_SER",
    "MEMORY_AND_DISK_SER_2",
    "OFF_HEAP",
)
"""Spark's storage levels by name, except NONE, which stores nothing."""

CACHED = Group(
    name="cached",
    schema="cached",
    description="The cache for the output of the operator, for later readers. Batch only.",
    layers=("default", "config", "hint", "statement"),
    absent="left out",
    asking=(ENABLED,),
    mode="batch",
    elsewhere="results are cached in batch mode only: a stream's are never complete",
    shared=True,
    settings=specs(
        Setting(
            name=ENABLED,
            kind="bool",
            default=False,
            description="true: the output is kept for later readers.",
            effect=KEPT,
            config="table.exec.cached-results.enabled",
        ),
        Setting(
            name=STORAGE_LEVEL,
            kind="choice",
            choices=STORAGE_LEVELS,
            default="MEMORY_AND_DISK",
            description="The storage of the output.",
            effect=KEPT,
            config="table.exec.cached-results.storage-level",
        ),
    ),
)

"""The plan document: model, reading and writing, checks, edits, differences, explanations, and the command line's root.

It imports neither the planner nor the runtime, and starts without pyspark, pyarrow, pandas and sqlglot. What it exports
is loaded when it is first used: a shell that completes a command line must not wait for it.

>>> import hintplan
>>> plan = hintplan.load("plan.json")                                 # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hintplan.plans.errors import Diagnostic, HintplanError, PlanError, RunError, SqlError
    from hintplan.plans.files.codec import dump, dumps, load, loads
    from hintplan.plans.model.plan import Plan

__all__ = [
    "Diagnostic",
    "HintplanError",
    "Plan",
    "PlanError",
    "RunError",
    "SqlError",
    "dump",
    "dumps",
    "load",
    "loads",
]

_HOMES = {
    "Plan": "hintplan.plans.model.plan",
    "dump": "hintplan.plans.files.codec",
    "dumps": "hintplan.plans.files.codec",
}
_HOMES |= {"load": "hintplan.plans.files.codec", "loads": "hintplan.plans.files.codec"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'plans' has no attribute '{name}'")
    return getattr(import_module(_HOMES.get(name, "hintplan.plans.errors")), name)

"""The plan document: model, reading and writing, checks, edits, differences, explanations, and the command line's root.

It imports neither the planner nor the runtime, and starts without pyspark, pyarrow, pandas and sqlglot. What it exports
is loaded when it is first used: a shell that completes a command line must not wait for it.

>>> import plans
>>> plan = plans.load("plan.json")                                 # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plans.errors import Diagnostic, HintplanError, PlanError, RunError, SqlError
    from plans.files.codec import dump, dumps, load, loads
    from plans.model.plan import Plan

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

_HOMES = {"Plan": "plans.model.plan", "dump": "plans.files.codec", "dumps": "plans.files.codec"}
_HOMES |= {"load": "plans.files.codec", "loads": "plans.files.codec"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'plans' has no attribute '{name}'")
    return getattr(import_module(_HOMES.get(name, "plans.errors")), name)

"""The plan document: model, reading and writing, checks, edits, differences, explanations, and the command line's root.

It imports neither the planner nor the runtime, and starts without pyspark, pyarrow, pandas and sqlglot.

>>> import plans
>>> plan = plans.load("plan.json")                                 # doctest: +SKIP
"""

from __future__ import annotations

from plans.codec import dump, dumps, load, loads
from plans.errors import Diagnostic, HintplanError, PlanError, RunError, SqlError
from plans.model import Plan

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

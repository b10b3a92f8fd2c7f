"""Convert the argument of a function to a plan: either a plan itself, or the path of a plan file.

>>> plan_of(Plan(name="p")).name
'p'
"""

from __future__ import annotations

import os

from hintplan.plans.errors import PlanError
from hintplan.plans.files.codec import load
from hintplan.plans.model.plan import Plan

PlanLike = Plan | str | os.PathLike[str]


def plan_of(given: PlanLike) -> Plan:
    """Return ``given``, or the plan in the file at that path; raise PlanError for any other value."""
    if isinstance(given, Plan):
        return given
    refuse_no_plan(given)
    return load(given)


def refuse_no_plan(given: object) -> None:
    """Raise PlanError unless ``given`` may be the path of a plan's file."""
    if isinstance(given, str) and ("\n" in given or ";" in given):
        raise PlanError(
            "expected a plan or the path of its file, found a text such as a script",
            hint="hintplan.compile_sql(text) makes a plan of a script, hintplan.loads(text) of a plan's text",
        )
    if not isinstance(given, str | os.PathLike):
        raise PlanError(
            f"expected a plan or the path of its file, found {type(given).__name__}",
            hint="hintplan.compile_sql(text) and hintplan.load(path) make plans",
        )
    path = os.fspath(given)
    if str(path).endswith(".sql"):
        raise PlanError(
            f"{path} is a SQL script, expected a plan or the path of its file",
            hint=f"compile it: hintplan.compile_sql(pathlib.Path({path!r}).read_text())",
        )

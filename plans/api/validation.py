"""``hintplan.validate``: the problems of a plan, found without running it.

>>> [str(found) for found in validate(Plan(name="p", config={"parallelism.default": "many"}))]
["config.parallelism.default: expected a whole number from 1 to 32768, found 'many'"]
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import islice

from hintplan.plans.analysis.columns import ENOUGH
from hintplan.plans.analysis.run_limits import check_sizes
from hintplan.plans.analysis.validate import plan_problems as problems_of
from hintplan.plans.api.plans import refuse_no_plan
from hintplan.plans.errors import Diagnostic, PlanError, for_python
from hintplan.plans.files.codec import load
from hintplan.plans.model.plan import Plan


def validate(plan: Plan | str | os.PathLike[str], *, allow_fact_edits: bool = False) -> tuple[Diagnostic, ...]:
    """Return the problems of a plan, or of the plan file at a path; nothing if it is valid.

    For a file, this also checks text, schema and changed facts, and each finding has file, line and column. With
    ``allow_fact_edits``, facts may differ from their digests. Each kind of problem is limited to the first hundred
    findings.
    """
    if isinstance(plan, Plan):
        return tuple(map(for_python, problems_of(plan) or islice(check_sizes(plan), ENOUGH)))
    try:
        refuse_no_plan(plan)
        loaded = load(plan, allow_fact_edits=allow_fact_edits)
    except PlanError as error:
        return error.diagnostics
    return tuple(replace(for_python(problem), file=os.fspath(plan)) for problem in islice(check_sizes(loaded), ENOUGH))

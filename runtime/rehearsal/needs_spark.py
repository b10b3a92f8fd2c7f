"""Decides early if the tests of a plan need Spark: its JVM then starts while Python imports what runs the tests."""

from __future__ import annotations

from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.errors import HintplanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc
from hintplan.runtime.builders.calc_in_arrow import calc_in_arrow


def needs_spark(plan: Plan) -> bool:
    """Return True if a calc of ``plan`` has an expression that Arrow cannot compute.

    Other operators may also need Spark, which then starts at their first row.
    """
    columns = output_columns(plan)
    calcs = (operator for operator in plan.operators if isinstance(operator, Calc))
    try:
        return any(calc_in_arrow(calc, columns[calc.inputs[0]], ()) is None for calc in calcs)
    except HintplanError:  # the run of the tests reports it
        return False

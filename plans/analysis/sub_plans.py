"""Finds the common parts of a plan's sinks: operators that lead to several of them.

A batch plan has a job per sink, and each job computes the operators that it shares with others. So does each streaming
query, to which :mod:`hintplan.plans.analysis.streaming_queries` assigns its sinks. Pure: takes a plan, returns names.

>>> from hintplan.plans.operators import Calc, Scan, Sink
>>> scan = Scan(id="scan_t", table="t", columns=("a",))
>>> calc = Calc(id="calc_t", inputs=("scan_t",), select=())
>>> sinks = tuple(Sink(id=f"sink_{table}", inputs=("calc_t",), table=table) for table in "rs")
>>> shared_operators(Plan(name="p", operators=(scan, calc, *sinks)))
{'calc_t': ('sink_r', 'sink_s')}
"""

from __future__ import annotations

from hintplan.plans.model.plan import Plan


def shared_operators(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the sinks of each operator that several sinks share, in the order of the plan.

    Scans are left out, and operators that only feed another such operator with the same sinks.
    """
    reached: dict[str, set[str]] = {operator.id: set() for operator in plan.operators}
    ends = {sink.id for sink in plan.sinks}
    for operator in reversed(plan.operators):
        for name in operator.inputs:
            reached[name] |= {operator.id} if operator.id in ends else reached[operator.id]
    return {
        operator.id: tuple(o.id for o in plan.operators if o.id in reached[operator.id])
        for operator in plan.operators
        if operator.inputs  # each sink repeats a shared scan
        and len(reached[operator.id]) > 1
        and all(reached[reader.id] != reached[operator.id] for reader in plan.readers[operator.id])
    }

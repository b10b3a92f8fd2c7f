"""Parts of a plan: what its sinks have in common, operators that lead to several of them.

A batch plan has a job per sink, and a stream a query for all sinks that
:mod:`hintplan.plans.analysis.streaming_queries` puts together; each of them computes what it shares with others. Pure:
a plan in, names out.

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
    """The sinks of each operator that several of them share, without scans and what only feeds another such operator.

    In the order of the plan.
    """
    reached: dict[str, set[str]] = {operator.id: set() for operator in plan.operators}
    ends = {sink.id for sink in plan.sinks}
    for operator in reversed(plan.operators):
        for name in operator.inputs:
            reached[name] |= {operator.id} if operator.id in ends else reached[operator.id]
    return {
        operator.id: tuple(o.id for o in plan.operators if o.id in reached[operator.id])
        for operator in plan.operators
        if operator.inputs  # a scan reads anew what it shares
        and len(reached[operator.id]) > 1
        and all(reached[reader.id] != reached[operator.id] for reader in plan.readers[operator.id])
    }

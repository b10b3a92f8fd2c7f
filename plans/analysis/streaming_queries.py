"""Which sinks of a streaming plan Spark runs as one query: those that hang below one operator by calcs only.

Such a query computes the operator once for each micro-batch, keeps its state once, and writes one sink after the other.
The sinks must be of connectors that take a micro-batch as it is; files need a query of their own, for Spark's file sink
commits by query. So do calcs that ask for the current time, which only a query knows. Pure: a plan in, names out.

>>> from plans.operators import Scan
>>> from plans.declarations.tables import Table
>>> scan = Scan(id="scan_t", table="t", columns=("a",))
>>> sinks = tuple(Sink(id=f"sink_{name}", inputs=("scan_t",), table=name) for name in "rs")
>>> tables = {name: Table(columns=(), options={"connector": "print"}) for name in "rs"}
>>> queries(Plan(name="p", tables=tables, operators=(scan, *sinks)))
(Query(id='scan_t', sinks=('sink_r', 'sink_s')),)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plans.connectors.table import takes_batches
from plans.model.plan import Plan
from plans.operators import Operator, Sink, kind_of

_NOW = re.compile(r"\b(?:current_timestamp|current_date|now)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query of Spark: its sinks, and the operator above them if they are several, else the sink itself."""

    id: str
    sinks: tuple[str, ...]

    @property
    def is_shared(self) -> bool:
        return self.sinks != (self.id,)


def queries(plan: Plan) -> tuple[Query, ...]:
    """The queries of a streaming plan, in the order of their first sinks; its edges may be wrong."""
    by_head: dict[str, list[str]] = {}
    for sink in plan.sinks:
        path = path_to(plan.by_id, sink)
        head = path[0].id if path and can_share(plan, sink, path[1:]) else sink.id
        by_head.setdefault(head, []).append(sink.id)
    return tuple(Query(id=head if len(sinks) > 1 else sinks[0], sinks=tuple(sinks)) for head, sinks in by_head.items())


def single_queries(plan: Plan) -> tuple[Query, ...]:
    """A query for each sink, where none can have several."""
    return tuple(Query(id=sink.id, sinks=(sink.id,)) for sink in plan.sinks)


def path_to(operators: Mapping[str, Operator], sink: Operator) -> tuple[Operator, ...]:
    """The nearest operator above ``sink`` that sinks can share, and those between them in the order of the rows.

    Nothing if there is no such operator, since an edge leads nowhere or in a circle.
    """
    found: dict[str, Operator] = {}
    above = operators.get(sink.inputs[0]) if sink.inputs else None
    while above is not None and kind_of(above).below_shared and above.id not in found:
        found[above.id] = above
        above = operators.get(above.inputs[0]) if above.inputs else None
    if above is None or kind_of(above).below_shared or kind_of(above).is_sink:
        return ()
    return (above, *reversed(found.values()))


def can_share(plan: Plan, sink: Sink, between: Sequence[Operator]) -> bool:
    """Whether ``sink``, below what stands ``between``, can be written in one query with others."""
    table = plan.tables.get(sink.table)
    if table is None or not takes_batches(table):
        return False
    texts = (text for operator in between for _, text in kind_of(operator).expressions(operator))
    return not any(_NOW.search(text) for text in texts if text)

"""The rows of numbers that the boxes of a running plan have, by the kind of operator; a run fills in the values.

Their number depends on the plan only, so the graph keeps its layout while numbers change.

>>> from hintplan.plans.operators import Scan
>>> live_rows(Plan(name="p", operators=(Scan(id="scan_o", table="o", columns=()),)))
{'scan_o': ('rows', 'lag')}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hintplan.plans.analysis.watermarks import time_operators, watermark_sources
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import LookupJoin, Operator, Requesting, Scan, Sink
from hintplan.plans.show.picture import Picture

ROWS, LAG, STATE, WATERMARK, LATE = "rows", "lag", "state", "watermark", "late"
LOOKUPS, CALLS, BATCH, JOB = "lookups", "calls", "batch", "job"


@frozen
class LiveRun:
    """The run that a page shows: the ``digest`` of its plan, and the address of its numbers, read every ``seconds``.

    ``evidence`` describes when the evidence of its states was read, if at all; empty if it has none.
    """

    digest: str
    url: str
    seconds: float
    evidence: str = ""


def live_rows(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the names of the rows of each operator that has any."""
    timed, senders = set(time_operators(plan)), {each for names in watermark_sources(plan).values() for each in names}
    stream = plan.mode == "streaming"
    rows: dict[str, tuple[str, ...]] = {}
    for operator in plan.operators:
        names = [*_by_kind(operator, stream=stream)]
        if stream and operator.id in timed | senders:
            names += [WATERMARK]
        if stream and operator.id in timed:
            names += [LATE]
        if names:
            rows[operator.id] = tuple(names)
    return rows


def with_live_rows(whole: Picture, rows: Mapping[str, tuple[str, ...]]) -> Picture:
    """Return the picture whose boxes have room for the rows."""
    return replace(whole, boxes=tuple(replace(box, live=rows.get(box.id, ())) for box in whole.boxes))


def _by_kind(operator: Operator, *, stream: bool) -> tuple[str, ...]:
    if isinstance(operator, Scan):
        return (ROWS, LAG) if stream else ()
    if isinstance(operator, Sink):
        return (ROWS, BATCH if stream else JOB)
    if isinstance(operator, Requesting):
        return (LOOKUPS if isinstance(operator, LookupJoin) else CALLS,)
    return (ROWS, STATE) if stream and operator.state else ()

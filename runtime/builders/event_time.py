"""The event time of a plan's operators, as the engine needs it: sources with their numbers and settings, and splits.

    event_times(plan)["window_bid"].sources

Marks name a source by its place in the plan. Only the tasks of one batch use these numbers. In state, a source has its
place in the list of its operator's sources.
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.analysis.watermarks import edges_with_marks, time_operators, watermark_sources
from hintplan.plans.connectors.table import has_splits
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Operator, Scan, WatermarkAssigner
from hintplan.plans.settings.watermark import DELAY, IDLE_TIMEOUT, WATERMARK
from hintplan.runtime.engine.watermarks import EventTime, MarkSource


def event_times(plan: Plan) -> dict[str, EventTime]:
    """Return the event time of each operator that goes by the watermark, by id."""
    numbers = {operator.id: number for number, operator in enumerate(plan.operators)}
    below = watermark_sources(plan)
    found: dict[str, EventTime] = {}
    for name in time_operators(plan):  # inputs precede their readers
        sources = tuple(_mark_source(plan.by_id[source], numbers[source], found.get(source)) for source in below[name])
        found[name] = EventTime(number=numbers[name], sources=sources)
    return found


def edges_with_splits(plan: Plan) -> frozenset[str]:
    """Return the scans of sources with splits below watermark assigners, and the calcs between the two."""
    marked = edges_with_marks(plan)
    return frozenset(
        name
        for operator in plan.operators
        if isinstance(operator, WatermarkAssigner) and operator.id in marked
        for name in _with_splits(plan, plan.by_id[operator.inputs[0]])
    )


def _with_splits(plan: Plan, operator: Operator) -> Iterator[str]:
    below = [operator]
    while isinstance(below[-1], Calc):
        below.append(plan.by_id[below[-1].inputs[0]])
    if isinstance(below[-1], Scan) and has_splits(plan.tables[below[-1].table]):
        yield from (each.id for each in below)


def _mark_source(operator: Operator, number: int, event_time: EventTime | None) -> MarkSource:
    """Return ``operator`` as a source; ``event_time`` is its own, unless it is an assigner.

    An operator that is not called for the longest idle timeout of its sources is idle, as all of them are.
    """
    if not isinstance(operator, WatermarkAssigner):
        timeouts = [] if event_time is None else [source.idle_timeout for source in event_time.sources]
        return MarkSource(
            number=number, idle_timeout=max(timeouts) if timeouts and all(timeouts) else 0, is_operator=True
        )
    values = operator.settings[WATERMARK.name].values
    delay, idle_timeout = (parse_duration(str(values[name])) for name in (DELAY, IDLE_TIMEOUT))
    return MarkSource(number=number, delay=delay, idle_timeout=idle_timeout)

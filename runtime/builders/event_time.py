"""The time of a plan's operators, as the engine needs it: sources with their numbers and settings, and splits.

    event_times(plan)["window_bid"].sources

Marks name a source by its place in the plan. Only the tasks of one batch use these numbers. In state, a source has its
place in the list of its operator's sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hintplan.plans.analysis.watermarks import edges_with_marks, time_operators, watermark_sources
from hintplan.plans.connectors.table import has_last_row, has_splits, reads_once
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.tables import Table
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
        sources = tuple(_mark_source(plan, source, numbers[source], found.get(source)) for source in below[name])
        operator = plan.by_id[name]
        found[name] = EventTime(
            number=numbers[name], sources=sources, hold=operator.holds_back, by_clock=operator.goes_by_clock
        )
    return found


def edges_with_splits(plan: Plan) -> frozenset[str]:
    """Return the scans of sources with splits below watermark assigners, and the calcs between the two."""
    return frozenset(_below_assigners(plan, has_splits))


def edges_with_last_rows(plan: Plan) -> frozenset[str]:
    """Return the scans of sources that know their last row below watermark assigners, and the calcs between the two."""
    return frozenset(_below_assigners(plan, has_last_row))


def _below_assigners(plan: Plan, wanted: Callable[[Table], bool]) -> Iterator[str]:
    """Yield the scans of ``wanted`` tables below assigners whose watermark is used, and the calcs between."""
    marked = edges_with_marks(plan)
    for operator in plan.operators:
        if isinstance(operator, WatermarkAssigner) and operator.id in marked:
            table, operators = _scan_below(plan, operator)
            if table is not None and wanted(table):
                yield from operators


def _scan_below(plan: Plan, assigner: Operator) -> tuple[Table | None, list[str]]:
    """Return the table whose scan is below ``assigner``, with at most calcs between, and these operators."""
    below = [plan.by_id[assigner.inputs[0]]]
    while isinstance(below[-1], Calc):
        below.append(plan.by_id[below[-1].inputs[0]])
    table = plan.tables[below[-1].table] if isinstance(below[-1], Scan) else None
    return table, [operator.id for operator in below]


def _mark_source(plan: Plan, name: str, number: int, event_time: EventTime | None) -> MarkSource:
    """Return the operator ``name`` as a source; ``event_time`` is its own, unless it is an assigner.

    An operator that is not called for the longest idle timeout of its sources is idle, as all of them are.
    """
    operator = plan.by_id[name]
    if not isinstance(operator, WatermarkAssigner):
        sources = () if event_time is None else event_time.sources
        timeouts = [source.idle_timeout for source in sources if not source.read_once]
        return MarkSource(
            number=number, idle_timeout=max(timeouts) if timeouts and all(timeouts) else 0, is_operator=True
        )
    values = operator.settings[WATERMARK.name].values
    delay, idle_timeout = (parse_duration(str(values[name])) for name in (DELAY, IDLE_TIMEOUT))
    table, _ = _scan_below(plan, operator)
    once = table is not None and reads_once(table)
    return MarkSource(number=number, delay=delay, idle_timeout=idle_timeout, read_once=once)

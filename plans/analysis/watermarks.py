"""Finds the way of watermarks through a plan: from the operators that send them to the operators that go by them.

A watermark begins at a ``watermark-assigner``. Calcs, unions and lookups pass it on, and so do operators that go by
time. Regular joins, aggregates and other operators with state do not. An operator that goes by processing time needs
none: the time of the micro-batch is its watermark.

    watermark_sources(plan)  # {'window_bid': ('watermark_bid',), 'rank_window': ('window_bid',)}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hintplan.plans.connectors.table import reads_once
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.late_rows import nearest_senders
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import LookupJoin, Operator
from hintplan.plans.operators.requests.lookup_settings import parks_rows
from hintplan.plans.settings.watermark import IDLE_TIMEOUT, WATERMARK


def time_operators(plan: Plan) -> tuple[str, ...]:
    """Return the operators that go by the watermark, in the order of the plan."""
    return tuple(operator.id for operator in plan.operators if operator.goes_by_time)


def watermark_sources(plan: Plan) -> Mapping[str, tuple[str, ...]]:
    """Return, for each operator that goes by time, the nearest operators below it that send watermarks.

    They are in the order of a walk over the inputs, each once. An operator that goes by time sends its watermark to the
    operators above it. An operator that goes by processing time has none below.
    """
    operators = plan.by_id
    return {
        name: () if operators[name].goes_by_clock else tuple(dict.fromkeys(nearest_senders(operators, operators[name])))
        for name in time_operators(plan)
    }


def sending_tables(plan: Plan, name: str) -> tuple[str, ...]:
    """Return the operators at the tables whose watermarks the operator ``name`` goes by, also through others."""
    sources = watermark_sources(plan)
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if plan.by_id[source].sends_watermark:
                found[source] = None
            else:
                waiting.append(source)
    return tuple(found)


def first_of_time(plan: Plan) -> tuple[str, ...]:
    """Return the operators that go by the watermark of a table, or by the clock, and not only by other operators."""
    sent = {operator.id for operator in plan.operators if operator.sends_watermark}
    return tuple(
        name
        for name, sources in watermark_sources(plan).items()
        if plan.by_id[name].goes_by_clock or not sent.isdisjoint(sources)
    )


def waking_operators(plan: Plan) -> frozenset[str]:
    """Return the operators that have something to do at times at which no row need come.

    The windows of processing time end then, a result that waits for its delay is emitted, or a source becomes idle.
    """
    sources = watermark_sources(plan)
    idle = (name for name in first_of_time(plan) if any(_becomes_idle(plan.by_id[source]) for source in sources[name]))
    return frozenset((*idle, *(operator.id for operator in plan.operators if operator.wakes)))


def _becomes_idle(sender: Operator) -> bool:
    settings = sender.settings.get(WATERMARK.name) if sender.sends_watermark else None
    return settings is not None and parse_duration(str(settings.values[IDLE_TIMEOUT])) > 0


def edges_with_marks(plan: Plan) -> frozenset[str]:
    """Return the operators whose output carries watermarks to an operator above that goes by time."""
    have: set[str] = set()
    for operator in plan.operators:  # inputs precede their readers
        if _sends(operator) or (operator.passes_watermark and not have.isdisjoint(operator.inputs)):
            have.add(operator.id)
    wanted: set[str] = set()
    for operator in reversed(plan.operators):
        passes = operator.id in wanted and operator.passes_watermark and not _sends(operator)
        if (operator.goes_by_time and not operator.goes_by_clock) or passes:
            wanted |= {*operator.inputs}
    return frozenset(have & wanted)


def _sends(operator: Operator) -> bool:
    return operator.sends_watermark or operator.goes_by_time


def slowest_of(plan: Plan) -> Mapping[str, tuple[str, ...]]:
    """Return the scans whose slowest watermark holds for the output of an operator that brings several together.

    Only operators whose output carries watermarks, or that go by time, are included. Nothing waits for a table that is
    read once.
    """
    if plan.mode == "batch" or not any(operator.goes_by_time for operator in plan.operators):
        return {}
    carrying = edges_with_marks(plan)
    sources: dict[str, tuple[str, ...]] = {}
    slowest: dict[str, tuple[str, ...]] = {}
    for operator in plan.operators:
        below = [sources.get(name, ()) for name in operator.inputs]
        together = tuple(dict.fromkeys(source for each in below for source in each))
        if operator.sends_watermark:
            together = tuple(name for name in plan.upstream(operator.id) if _is_waited_for(plan, name))[:1]
        sources[operator.id] = together if operator.passes_watermark else ()
        waits = (operator.goes_by_time and not operator.goes_by_clock) or operator.id in carrying
        if waits and len(together) > max(map(len, below), default=0):
            slowest[operator.id] = together
    return {name: scans for name, scans in slowest.items() if len(scans) > 1}


def _is_waited_for(plan: Plan, name: str) -> bool:
    operator = plan.by_id[name]
    table = plan.tables.get(operator.table or "")
    return operator.is_source and (table is None or not reads_once(table))


def described(operator: Operator, plan: Plan, slowest: Mapping[str, tuple[str, ...]]) -> str:
    """Return the description of an operator, and the scans for the slowest of which it waits."""
    text = operator.describe(plan)
    scans = slowest.get(operator.id, ())
    return f"{text} · waits for the slowest of {', '.join(scans)}" if scans else text


def check_watermarks(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for each source whose rows reach an operator that goes by time without a watermark.

    Rows in the plan itself, and batch jobs, need none.
    """
    if plan.mode == "batch":
        return
    for name in time_operators(plan):
        operator = plan.by_id[name]
        if operator.goes_by_clock:
            continue
        for number, below in enumerate(operator.inputs):
            for source in dict.fromkeys(_without_watermark(plan, below)):
                message = f"'{name}' goes by time, but no watermark reaches it from '{source}'"
                hint = "put a watermark-assigner above the scan, and no join or aggregate with a TTL in between"
                yield Diagnostic(message=message, path=f"{operator.path}.inputs[{number}]", hint=hint)


def check_waiting_lookups(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for each lookup below an operator that goes by time, if its rows wait in state for a retry."""
    if plan.mode == "batch":
        return
    for name in sorted(edges_with_marks(plan)):
        operator = plan.by_id[name]
        if isinstance(operator, LookupJoin) and parks_rows(operator):
            message = f"operator {name} cannot retry lookups later: the watermark would pass the rows that wait"
            hint = "leave out 'output-mode'='allow_unordered', so that retries wait inline; or look up above the window"
            yield Diagnostic(message=message, path=f"{operator.path}.retry.mode", hint=hint)


def _without_watermark(plan: Plan, name: str) -> Iterator[str]:
    """Yield the scans below, and the operators that stop watermarks, from which there is no watermark."""
    waiting = [name]
    walked: set[str] = set()
    while waiting:
        operator = plan.by_id.get(waiting.pop())
        if operator is None or operator.id in walked or _sends(operator):
            continue
        walked.add(operator.id)
        if operator.is_source or not operator.passes_watermark:
            yield operator.id
        else:
            waiting += reversed(operator.inputs)

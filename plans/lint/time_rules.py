"""Rules on event time: windows, and the watermarks that close them.

>>> list(many_windows(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.analysis.watermarks import slowest_of, watermark_sources
from hintplan.plans.analysis.windows import Windows, windows_of
from hintplan.plans.connectors.table import has_splits
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.lint.rule import Finding
from hintplan.plans.model.config import TIME_ZONE
from hintplan.plans.model.layered_groups import table_below
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Aggregate, Join, Operator, WatermarkAssigner
from hintplan.plans.operators.contract.stateful import is_stateful
from hintplan.plans.settings.watermark import DELAY, IDLE_TIMEOUT, WATERMARK

_MOST_WINDOWS = 60


def many_windows(plan: Plan) -> Iterator[Finding]:
    """Report windows of which each row is in more than sixty."""
    for operator in plan.operators:
        if operator.windowing is not None:
            _, window = operator.windowing
            number = 1 if window.type == "session" else window.size_ms // window.step_ms
            if number > _MOST_WINDOWS:
                up_to = "up to " if window.type == "cumulate" else ""
                message = f"each row is in {up_to}{number:,} windows, which it changes and which are all put out"
                yield Finding(path=f"operators.{operator.id}.window", message=message)


def half_a_window(plan: Plan) -> Iterator[Finding]:
    """Report regular aggregates and joins by the start of a window, but not by its end."""
    windows = windows_of(plan)
    for operator in plan.operators:
        below = [windows.get(name, {}) for name in operator.inputs]
        if isinstance(operator, Aggregate):
            starts = _starts_alone(operator.keys, below[0])
            what = "it groups by"
        elif isinstance(operator, Join):
            left = _starts_alone([key.left for key in operator.keys], below[0])
            right = _starts_alone([key.right for key in operator.keys], below[1])
            starts = left if left and right else []
            what = "it joins by"
        else:
            continue
        for start in starts[:1]:
            message = f"{what} '{start}', the start of a window, without its end: this keeps state of all windows"
            yield Finding(path=f"operators.{operator.id}.keys", message=message)


def _starts_alone(keys: tuple[str, ...] | list[str], windows: Windows) -> list[str]:
    """Return the starts of windows among ``keys`` whose end is not among them."""
    ends: dict[str, set[str]] = {}
    for columns in windows:
        ends.setdefault(columns.start, set()).add(columns.end)
    return [key for key in keys if key in ends and ends[key].isdisjoint(keys)]


def outside_of_windows(plan: Plan) -> Iterator[Finding]:
    """Report regular joins without a TTL of the results of windows with rows of a table that has a WATERMARK."""
    for operator in plan.operators:
        if not isinstance(operator, Join):
            continue
        below = [_nearest(plan, name) for name in operator.inputs]
        of_windows = [any(each.goes_by_time for each in side) for side in below]
        timed = [all(each.is_source and _has_watermark(plan, each) for each in side) for side in below]
        unbounded = [entry for entry in operator.state if entry.ttl is not None and not parse_duration(entry.ttl)]
        if any(of_windows) and any(timed) and unbounded:
            results, rows = operator.inputs if of_windows[0] else reversed(operator.inputs)
            message = f"no window ends it: '{results}' has results of windows, and the rows of '{rows}' are in none"
            yield Finding(path=f"operators.{operator.id}.state.{unbounded[0].name}.ttl", message=message)


def _nearest(plan: Plan, name: str) -> list[Operator]:
    """Return the nearest operators with state, and sources, at or below the operator ``name``."""
    found: dict[str, Operator] = {}
    waiting, walked = [name], set[str]()
    while waiting:
        operator = plan.by_id[waiting.pop()]
        if operator.id in walked:
            continue
        walked.add(operator.id)
        if is_stateful(operator) or not operator.inputs:
            found[operator.id] = operator
        else:
            waiting += operator.inputs
    return [*found.values()]


def _has_watermark(plan: Plan, scan: Operator) -> bool:
    return scan.table is not None and plan.tables[scan.table].watermark is not None


def delay_above_window(plan: Plan) -> Iterator[Finding]:
    """Report delays of watermarks that are longer than the windows above them."""
    for name, senders in watermark_sources(plan).items():
        operator = plan.by_id[name]
        if operator.windowing is not None:
            _, window = operator.windowing
            length = window.gap_ms if window.type == "session" else window.size_ms
            for sender in map(plan.by_id.__getitem__, senders):
                if isinstance(sender, WatermarkAssigner) and parse_duration(sender.delay) > length:
                    message = f"the delay, {sender.delay}, is longer than the windows of '{name}', {window.words}"
                    yield Finding(path=f"operators.{sender.id}.{WATERMARK.name}.{DELAY}", message=message)


def never_idle(plan: Plan) -> Iterator[Finding]:
    """Report sources that are never left out, although they can hold back others: of a union or a join, and topics."""
    if plan.mode == "batch":
        return
    waiting = {scan: name for name, scans in slowest_of(plan).items() for scan in scans}
    used = {name for senders in watermark_sources(plan).values() for name in senders}
    for operator in plan.operators:
        if not isinstance(operator, WatermarkAssigner) or operator.id not in used:
            continue
        if parse_duration(str(operator.settings[WATERMARK.name].values[IDLE_TIMEOUT])):
            continue
        table = table_below(plan, operator)
        scan = next((name for name in plan.upstream(operator.id) if plan.by_id[name].is_source), "")
        if scan in waiting:
            held = f"'{scan}' holds back all rows that '{waiting[scan]}' brings together"
        elif table is not None and has_splits(plan.tables[table]):
            held = f"a partition of '{table}' holds back the others"
        else:
            continue
        yield Finding(
            path=f"operators.{operator.id}.{WATERMARK.name}.{IDLE_TIMEOUT}",
            message=f"without new rows, {held}: windows stay open until it has rows again",
        )


def windows_without_zone(plan: Plan) -> Iterator[Finding]:
    """Report windows over TIMESTAMP columns in a job whose time zone is set, and has no effect on them."""
    zone = plan.config.get(TIME_ZONE)
    if zone is None:
        return
    for operator in plan.operators:
        if operator.windowing is not None:
            time, window = operator.windowing
            if window.zone is None:
                message = f"'{time}' is a TIMESTAMP, so its windows do not follow the zone {zone}"
                yield Finding(path=f"operators.{operator.id}.window", message=message)

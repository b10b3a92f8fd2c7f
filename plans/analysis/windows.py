"""Follows windows and rowtimes through a plan: which columns of an operator's output hold them.

windows_of(plan)["rank_bid"]  # {WindowColumns(start='window_start', end='window_end'): Window(type='tumble', ...)}
rowtimes_of(plan)["watermark_bid"]  # ('ts',)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.errors import Diagnostic
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator

Windows = Mapping[WindowColumns, Window]
_DECLARED = "a table's rowtime is the column of its WATERMARK"


def windows_of(plan: Plan) -> Mapping[str, Windows]:
    """Return the windows in the output of each operator, by the columns that hold them."""
    windows: dict[str, Windows] = {}
    for operator in plan.operators:
        below = [
            {
                WindowColumns(start=start, end=end): window
                for columns, window in windows.get(name, {}).items()
                for start in operator.names_above(place, columns.start)
                for end in operator.names_above(place, columns.end)
            }
            for place, name in enumerate(operator.inputs)
        ]
        if operator.passes_columns:  # the rows of all inputs are in the same columns
            below = [
                {
                    columns: window
                    for columns, window in below[0].items()
                    if all(other.get(columns) == window for other in below)
                }
            ]
        passed = {columns: window for each in below for columns, window in each.items()}
        windows[operator.id] = {**passed, **operator.own_windows()}
    return windows


def rowtimes_of(plan: Plan) -> Mapping[str, tuple[str, ...]]:
    """Return the rowtimes in the output of each operator: columns for which the watermark holds."""
    rowtimes: dict[str, tuple[str, ...]] = {}
    for operator in plan.operators:
        below = [
            {above for name in rowtimes.get(source, ()) for above in operator.names_above(place, name)}
            for place, source in enumerate(operator.inputs)
        ]
        passed = set.intersection(*below) if operator.passes_columns else set[str]().union(*below)
        if not operator.passes_watermark:
            passed = set()
        own = operator.own_rowtimes()
        rowtimes[operator.id] = tuple(sorted(passed)) if own is None else own
    return rowtimes


def check_windows(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for each operator whose input does not have the windows that it needs."""
    windows = windows_of(plan)
    for operator in plan.operators:
        needed = [*operator.attached_windows()]
        found = [windows.get(operator.inputs[place], {}).get(columns) for place, _, columns, _ in needed]
        if len(found) == 2 and None not in found and found[0] != found[1]:
            first, second = (window.words for window in found if window is not None)
            message = f"the windows of the two inputs differ: {first} and {second}"
            yield Diagnostic(message=message, path=f"{operator.path}.window", hint="compile the SQL again")
            continue
        for (place, path, columns, window), actual in zip(needed, found, strict=True):
            if actual != window:
                yield _wrong_window(operator, operator.inputs[place], path, columns, window, actual)


def _wrong_window(
    operator: Operator, source: str, path: str, columns: WindowColumns, window: Window, actual: Window | None
) -> Diagnostic:
    pair = f"'{columns.start}' and '{columns.end}' of '{source}'"
    if actual is None:
        message = f"{pair} are not the start and the end of a window"
        hint = "name the columns that a window-table-function or a window-aggregate below adds"
        return Diagnostic(message=message, path=f"{operator.path}.{path}", hint=hint)
    message = f"the window is {window.words}, but {pair} hold {actual.words}"
    return Diagnostic(message=message, path=f"{operator.path}.window", hint="compile the SQL again")


def check_rowtimes(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for each time of an operator that is no rowtime, in a streaming plan."""
    if plan.mode == "batch":
        return
    rowtimes = rowtimes_of(plan)
    for operator in plan.operators:
        for place, path, column in operator.rowtimes_read():
            source = operator.inputs[place]
            known = rowtimes.get(source, ())
            if column in known:
                continue
            message = f"'{column}' is no rowtime: no watermark holds for this column of '{source}'"
            hint = f"its rowtimes are {', '.join(known)}" if known else _DECLARED
            yield Diagnostic(message=message, path=f"{operator.path}.{path}", hint=hint)

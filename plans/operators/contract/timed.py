"""The abstract class of operators that go by the watermark, and the checks of their windows.

Such an operator emits rows once, when the watermark has passed them, and never changes them. Its states have no TTL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hintplan.plans.declarations.durations import DurationError, format_duration, parse_duration
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.declarations.windows import WINDOW_DURATIONS, Window, WindowColumns, signed_duration
from hintplan.plans.errors import Diagnostic
from hintplan.plans.operators.contract.columns import check_known, parse
from hintplan.plans.operators.contract.stateful import KeysUpserted, Stateful

MOST_PRECISION = 3
"""The most digits of a second that a rowtime has: watermarks are in milliseconds."""
_ALL_DURATIONS = ("size", "slide", "step", "gap")


class Timed(Stateful):
    """An operator that emits rows when the watermark passes them, and keeps its states until then."""

    __slots__ = ()

    goes_by_time = True
    passes_watermark = True

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        return INSERT_ONLY

    def changes_for(self, ttls: Sequence[float], inputs: Sequence[RowKinds]) -> float:
        return 0.0  # a row is never changed after the watermark has passed it


def check_rowtime(
    column: str, types: Mapping[str, str], path: str, window: Window | None = None
) -> Iterator[Diagnostic]:
    """Yield the problems of a rowtime column; ``window`` is the window over it, whose zone depends on its type."""
    unknown = list(check_known([column], types, path, "column of the input"))
    yield from unknown
    if unknown:
        return
    kind = parse(types[column])
    if window is not None and window.processing_time:
        if kind.root != "TIMESTAMP_LTZ":
            message = f"a processing time is TIMESTAMP_LTZ(3), but '{column}' is {types[column]}"
            yield Diagnostic(message=message, path=path, hint="name a column that is PROCTIME()")
        return
    if kind.root not in ("TIMESTAMP", "TIMESTAMP_LTZ") or (kind.precision or 0) > MOST_PRECISION:
        message = f"a rowtime is TIMESTAMP or TIMESTAMP_LTZ of precision 0 to 3, but '{column}' is {types[column]}"
        hint = "name a column with the time of a row"
        if kind.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            hint = f"declare it as {kind.root}({MOST_PRECISION})"
        yield Diagnostic(message=message, path=path, hint=hint)
    elif window is not None and kind.root == "TIMESTAMP_LTZ" and window.zone is None:
        message = f"windows over '{column}', which is {types[column]}, need a zone"
        yield Diagnostic(message=message, path=f"{_owner(path)}.window", hint="add the zone, such as 'UTC'")
    elif window is not None and kind.root == "TIMESTAMP" and window.zone is not None:
        message = f"windows have a zone only over TIMESTAMP_LTZ, but '{column}' is {types[column]}"
        yield Diagnostic(message=message, path=f"{_owner(path)}.window.zone", hint="remove the zone")


def _owner(path: str) -> str:
    """Return the path of the operator in front of the name of a field."""
    return path.rpartition(".")[0]


def check_window(window: Window, path: str, *, any_slide: bool = False) -> Iterator[Diagnostic]:
    """Yield the problems of a window by itself; ``path`` is the path of the operator.

    With ``any_slide``, the size of a hop window need not be a multiple of its slide, as of a window in GROUP BY.
    """
    here = f"{path}.window"
    wanted = WINDOW_DURATIONS[window.type]
    sound = True
    for name in _ALL_DURATIONS:
        text: str | None = getattr(window, name)
        if (text is None) == (name in wanted):
            sound = False
            what = f"has no '{name}'" if text is not None else f"needs '{name}'"
            hint = f"remove '{name}'" if text is not None else f"add '{name}', such as '10 s'"
            yield Diagnostic(message=f"a window of type '{window.type}' {what}", path=f"{here}.{name}", hint=hint)
        elif text is not None:
            problem = _duration_problem(text, f"{here}.{name}")
            sound = sound and problem is None
            yield from [problem] if problem is not None else []
    if window.offset is not None:
        problem = _offset_problem(window, f"{here}.offset", sized=sound)
        yield from [problem] if problem is not None else []
    if window.processing_time and window.zone is None:
        message = "windows of processing time need a zone"
        yield Diagnostic(message=message, path=f"{here}.zone", hint="add the zone, such as 'UTC'")
    if window.zone is not None and not is_zone(window.zone):
        message, hint = f"there is no time zone '{window.zone}'", "write a name such as 'UTC' or 'Europe/Berlin'"
        yield Diagnostic(message=message, path=f"{here}.zone", hint=hint)
    if not sound:
        return
    if window.type == "hop" and not any_slide and window.size_ms % window.step_ms:
        message = f"the size of a hop window is a multiple of its slide, but {window.size} is none of {window.slide}"
        yield Diagnostic(message=message, path=f"{here}.size", hint="write a size that the slide divides")
    if window.type == "cumulate" and window.size_ms % window.step_ms:
        message = f"the size of a cumulate window is a multiple of its step, but {window.size} is none of {window.step}"
        yield Diagnostic(message=message, path=f"{here}.size", hint="write a size that the step divides")


def _duration_problem(text: str, path: str) -> Diagnostic | None:
    try:
        milliseconds = parse_duration(text, require_unit=True)
    except DurationError as error:
        return Diagnostic(message=f"bad duration '{text}': {error.reason}", path=path, hint=error.hint)
    if not milliseconds:
        return Diagnostic(message=f"expected more than zero, found '{text}'", path=path, hint="write it like '10 s'")
    if text != format_duration(milliseconds):
        hint = f"write '{format_duration(milliseconds)}'"
        return Diagnostic(
            message=f"a window has its durations in the shortest form, found '{text}'", path=path, hint=hint
        )
    return None


def _offset_problem(window: Window, path: str, *, sized: bool) -> Diagnostic | None:
    text = window.offset or ""
    if window.type == "session":
        return Diagnostic(message="sessions have no offset", path=path, hint="remove it")
    try:
        milliseconds = signed_duration(text)
    except DurationError as error:
        return Diagnostic(message=f"bad duration '{text}': {error.reason}", path=path, hint=error.hint)
    if sized and abs(milliseconds) >= window.step_ms:
        what = {"tumble": "size", "hop": "slide", "cumulate": "step"}[window.type]
        message = f"an offset is less than the {what} of the window, {format_duration(window.step_ms)}, found '{text}'"
        return Diagnostic(message=message, path=path, hint=f"write the rest of its division by the {what}")
    return None


def is_zone(name: str) -> bool:
    """Return True if ``name`` is the IANA name of a time zone."""
    import zoneinfo  # few commands need it

    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return False
    return True


def check_of_rowtime(window: Window, path: str) -> Iterator[Diagnostic]:
    """Yield a problem if windows that the input has in columns are of processing time; ``path`` is of the operator."""
    if window.processing_time:
        message = "only an aggregate right at the rows has windows of processing time"
        hint = "go by event time: a table's WATERMARK; or compile the SQL again"
        yield Diagnostic(message=message, path=f"{path}.window.processing-time", hint=hint)


def check_window_columns(columns: WindowColumns, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    """Yield the problems of the columns of an input that hold a window; ``path`` is the path of the two."""
    for where, name in (("start", columns.start), ("end", columns.end)):
        unknown = list(check_known([name], types, f"{path}.{where}", "column of the input"))
        yield from unknown
        if not unknown and parse(types[name]).root != "TIMESTAMP":
            message = f"the {where} of a window is a TIMESTAMP, but '{name}' is {types[name]}"
            yield Diagnostic(
                message=message, path=f"{path}.{where}", hint=f"name the column with the {where} of the window"
            )

"""``over-aggregate``: functions of the rows around each row (OVER)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Literal

from hintplan.plans.declarations.computations import VARIANCES, SortKey
from hintplan.plans.declarations.durations import format_duration
from hintplan.plans.declarations.fields import Changelog, Name, Names, OneInput, OperatorId, TypeText
from hintplan.plans.declarations.row_kinds import ALL_KINDS, INSERT_ONLY, RowKind, RowKinds
from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, check_names, parse, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.stateful import KeysUpserted, MixedStates, Stateful
from hintplan.plans.operators.contract.timed import check_rowtime
from hintplan.plans.operators.sort import check_order, describe_order
from hintplan.plans.settings.layers import Settings

NUMBERS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
"""Functions that return the rank of a row, as a BIGINT."""
SHARES = ("PERCENT_RANK", "CUME_DIST")
"""Functions that return the relative rank of a row among all rows, as a DOUBLE."""
SHIFTS = ("LAG", "LEAD")
"""Functions that read a row before or after the current one."""
AGGREGATED = ("COUNT", "SUM", "AVG", "MIN", "MAX", *VARIANCES, "FIRST_VALUE", "LAST_VALUE")
"""Aggregate functions, over the rows of a frame."""
IN_STREAMS = (*NUMBERS, "LAG", *AGGREGATED)
"""Functions that need no row after the current one, so that a stream can compute them."""
OVER_FUNCTIONS = (*NUMBERS, *SHARES, "NTILE", *SHIFTS, *AGGREGATED)
MOST = 2**31 - 1
"""The maximum distance between rows: Spark counts distances in 32 bits."""


@frozen
class Frame:
    """The rows around a row over which an aggregate is computed.

    With ``rows``, the bounds count rows; with ``range``, they are differences between values of the order, which are
    milliseconds for a time. ``start`` and ``end`` are distances from the row: negative before it, 0 for the row itself,
    positive after it, None for no bound. A ``range`` contains either all or none of the rows that are equal in the
    order.
    """

    unit: Annotated[Literal["rows", "range"], "rows counts rows, range compares values of the order."]
    start: Annotated[int | None, "The start: negative before the row, positive after it; null for the first row."]
    end: Annotated[int | None, "The end: negative before the row, positive after it; null for the last row."]


@frozen
class OverCall:
    """One function of the rows around a row.

    ``count`` is the number of rows by which LAG and LEAD look back or ahead, or the number of parts into which NTILE
    divides the rows. ``default`` is the column whose value LAG and LEAD return if there is no such row; the default is
    NULL.
    """

    name: Name
    function: Annotated[str, "The function.", {"enum": list(OVER_FUNCTIONS)}]
    argument: Annotated[Name | None, "The column that the function is of; absent in COUNT(*) and of numbers."] = None
    distinct: Annotated[bool, "true: equal values count once; only in a stream, in a frame with a start."] = False
    count: Annotated[
        int | None, "The offset of LAG and LEAD, or the number of parts of NTILE.", {"minimum": 0, "maximum": MOST}
    ] = None
    default: Annotated[Name | None, "The column that LAG and LEAD take where there is no row."] = None
    type: TypeText


@frozen
class OverAggregate(Stateful):
    """Adds to each row the results of functions over the rows of its ``key`` around it, in an ``order``.

    Without ``frame``, aggregates cover the rows up to the last row that equals this one in the order, or all rows if
    there is no order. Rows that are equal in the order come in any order. Flink's OverAggregate.

    In a stream, a frame ends with its row, and the operator has one of three orders:

    - with ``time``, the order of a rowtime: rows wait until the watermark passes them, and are emitted once
    - without ``time`` and ``order``, the order of arrival: rows are emitted at once, and their time is their batch's
    - with an ``order`` by one column: rows are emitted at once, and later rows change the results of earlier ones
    """

    op = "over-aggregate"
    title = "over aggregate"
    description = "Adds to each row the results of functions over the rows around it."
    passes_columns = True
    state_holds = "groups"
    state_grows_by = "row"

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The columns of PARTITION BY; empty for all rows together.", {"uniqueItems": True}]
    order: Annotated[tuple[SortKey, ...], "The sort keys, most significant first; empty for no order, or for a time."]
    time: Annotated[Name | None, "The rowtime that orders the rows of a stream."] = None
    frame: Annotated[Frame | None, "The rows that aggregates are of; absent for those up to the row."] = None
    calls: Annotated[tuple[OverCall, ...], "The functions.", {"minItems": 1}]
    changelog: Changelog = ()
    state: Annotated[MixedStates, "In a stream: waitingState if there is a time, then overState."] = ()
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def state_names(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("waitingState", "overState") if self.goes_by_time else ("overState",)

    @property
    def goes_by_time(self) -> bool:  # type: ignore[override]
        return self.time is not None

    @property
    def passes_watermark(self) -> bool:  # type: ignore[override]
        return not self.order

    @property
    def reads_order(self) -> bool:
        return True

    @property
    def is_bounded_by_time(self) -> bool:
        """True in a stream if its frame begins at a time before the row."""
        frame = self.frame
        return not self.order and frame is not None and frame.unit == "range" and frame.start is not None

    def rowtimes_read(self) -> Iterator[tuple[int, str, str]]:
        if self.time is not None:
            yield 0, "time", self.time

    def has_ttl(self, state: str) -> bool:
        return state == "overState" and not self.is_bounded_by_time

    def kept_until(self, state: str) -> str:
        if state != "overState" or self.frame is None:
            return "until the watermark passes its time"
        lasts = format_duration(abs(self.frame.start or 0))
        return f"{lasts} of {'event' if self.goes_by_time else 'processing'} time"

    def output_columns(self, inputs: Inputs) -> Columns:
        return (*inputs.only, *(Column(name=call.name, type=call.type) for call in self.calls))

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_known(self.key, types, f"{self.path}.key", "key column")
        yield from check_order(self.order, types, self.path)
        if self.time is not None:
            yield from check_rowtime(self.time, types, f"{self.path}.time")
        yield from _check_frame(self, types, f"{self.path}.frame")
        for call in self.calls:
            here = f"{self.path}.calls.{call.name}"
            columns = [name for name in (call.argument, call.default) if name is not None]
            unknown = list(check_known(columns, types, here, "column of the input"))
            yield from unknown
            if not unknown:
                yield from _check_call(call, self, types, here)
        yield from check_names([*types, *(call.name for call in self.calls)], self.path, "calls")

    def check_mode(self, plan: Declared) -> Iterator[Diagnostic]:
        yield from _check_in_batch(self) if plan.mode == "batch" else _check_in_stream(self)

    def takes(self, plan: Declared) -> Collection[RowKind] | None:
        return None if self.order or plan.mode == "batch" else INSERT_ONLY

    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        if not self.order:
            return INSERT_ONLY
        return ("+I", "-U", "+U") if inputs == INSERT_ONLY else ALL_KINDS

    def with_changelog(self, kinds: RowKinds) -> OverAggregate:
        # A batch plan has no changelog, because all of its rows are final.
        return self._replaced(changelog=kinds if self.state else ())

    def row_kinds(self, inputs: RowKinds, plan: Declared) -> RowKinds:
        return self.changelog or INSERT_ONLY

    def changes_for(self, ttls: Sequence[float], inputs: Sequence[RowKinds]) -> float:
        return ttls[-1] if self.order else 0.0

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        # State does not depend on the names of results.
        calls = [{key: value for key, value in call.items() if key != "name"} for call in facts["calls"]]
        return {**facts, "calls": calls}

    def describe(self, plan: Declared) -> str:
        calls = ", ".join(f"{call.name} = {_call(call)}" for call in self.calls)
        parts = [f"PARTITION BY {', '.join(self.key)}"] if self.key else []
        order = describe_order(self.order) or self.time or ("ARRIVAL" if plan.mode != "batch" else "")
        parts += [f"ORDER BY {order}"] if order else []
        if self.frame is not None:
            frame, shown = self.frame, format_duration if self.is_bounded_by_time else str
            ends = f"{_bound(frame.start, 'PRECEDING', shown)} AND {_bound(frame.end, 'FOLLOWING', shown)}"
            parts.append(f"{frame.unit.upper()} BETWEEN {ends}")
        return f"{calls} OVER ({' '.join(parts)})"


def _check_in_batch(operator: OverAggregate) -> Iterator[Diagnostic]:
    if operator.time is not None:
        message, hint = "a batch job has no watermarks", "name the column in 'order' instead"
        yield Diagnostic(message=message, path=f"{operator.path}.time", hint=hint)
    if any(call.distinct for call in operator.calls):
        message, hint = "DISTINCT over the rows around a row is only in streams", "compile the SQL again"
        yield Diagnostic(message=message, path=f"{operator.path}.calls", hint=hint)
    if operator.changelog:
        message = "an over-aggregate of a batch plan has no changelog"
        yield Diagnostic(message=message, path=f"{operator.path}.changelog", hint="remove it")


def _check_in_stream(operator: OverAggregate) -> Iterator[Diagnostic]:
    frame, hint = operator.frame, "compile the SQL again"
    if operator.time is not None and operator.order:
        message = "a stream is ordered by a rowtime or by another column, not by both"
        yield Diagnostic(message=message, path=f"{operator.path}.order", hint="write [], or remove 'time'")
    if len(operator.order) > 1 or any(key.direction == "desc" for key in operator.order):
        message = "functions of the rows around a row take one column in ascending order in a stream"
        yield Diagnostic(message=message, path=f"{operator.path}.order", hint=hint)
    if frame is not None and frame.end != 0:
        message = "a frame ends with its row in a stream, which never has all rows"
        yield Diagnostic(message=message, path=f"{operator.path}.frame.end", hint="write 0")
    if frame is not None and frame.start is not None and operator.order:
        message = "a frame has a start only in the order of a time"
        yield Diagnostic(message=message, path=f"{operator.path}.frame.start", hint="write null")
    for call in operator.calls:
        here = f"{operator.path}.calls.{call.name}"
        if call.function not in IN_STREAMS:
            message = f"{call.function} needs all rows, which a stream never has"
            yield Diagnostic(message=message, path=here, hint="compile the SQL with -c execution.runtime-mode=batch")
        if call.distinct and (frame is None or frame.start is None):
            message = "DISTINCT over the rows around a row needs a frame with a start"
            yield Diagnostic(message=message, path=f"{here}.distinct", hint=hint)


def _check_frame(operator: OverAggregate, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    frame = operator.frame
    if frame is None:
        return
    if frame.start is not None and frame.end is not None and frame.start > frame.end:
        yield Diagnostic(message=f"a frame from {frame.start} to {frame.end} has no row", path=path)
    is_time = operator.is_bounded_by_time
    if any(abs(bound or 0) > MOST for bound in (frame.start, frame.end)) and not is_time:
        yield Diagnostic(message=f"a frame ends at most {MOST} from its row", path=path, hint="null is no bound")
    if not operator.order and not _is_ordered(operator):
        yield Diagnostic(message="a frame needs an order", path=path, hint="remove it, or order by a column")
    elif operator.order and frame.unit == "range" and (frame.start or frame.end):
        column = operator.order[0].column
        if len(operator.order) > 1 or (column in types and not parse(types[column]).is_integer):
            message = "a range with distances takes the order of one integer column"
            yield Diagnostic(message=message, path=path, hint="count rows instead: rows")


def _check_call(call: OverCall, operator: OverAggregate, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    function, result = call.function, parse(call.type)
    if function not in AGGREGATED and not _is_ordered(operator):
        yield Diagnostic(message=f"{function} needs an order", path=path, hint="order by a column")
    if function not in AGGREGATED and operator.frame is not None:
        yield Diagnostic(message=f"{function} has no frame", path=path, hint="put it into an operator without one")
    takes = function in SHIFTS or function in AGGREGATED
    if (call.argument is None) == takes and not (function == "COUNT" and call.argument is None):
        yield Diagnostic(message=f"{function} {'needs an' if takes else 'has no'} argument", path=path)
        return
    if (call.count is not None) != (function in (*SHIFTS, "NTILE")) or (function == "NTILE" and not call.count):
        yield Diagnostic(message=f"LAG, LEAD and NTILE have a count, and no others, found {call.count}", path=path)
    if call.default is not None and function not in SHIFTS:
        yield Diagnostic(message=f"{function} has no default", path=f"{path}.default")
    argument = None if call.argument is None else parse(types[call.argument])
    is_sum = function in ("SUM", "AVG") and argument is not None and argument.is_integer
    if call.distinct and (argument is None or not (function == "COUNT" or is_sum)):
        message = f"DISTINCT is for COUNT, and for SUM and AVG of whole numbers, found {_call(call)}"
        yield Diagnostic(message=message, path=f"{path}.distinct", hint="remove it")
    roots = {"NTILE": ("INT", "BIGINT"), "COUNT": ("BIGINT",)}
    roots |= dict.fromkeys(NUMBERS, ("BIGINT",)) | dict.fromkeys((*SHARES, *VARIANCES), ("DOUBLE",))
    if function in roots and result.root not in roots[function]:
        yield Diagnostic(message=f"{function} is {roots[function][-1]}, found {call.type}", path=f"{path}.type")
    if function in ("SUM", "AVG", *VARIANCES) and not (argument and argument.is_numeric and result.is_numeric):
        message = f"{function} needs numbers, but '{call.argument}' is {argument} and the result {result}"
        yield Diagnostic(message=message, path=path)
    of_argument = (*SHIFTS, "MIN", "MAX", "FIRST_VALUE", "LAST_VALUE")
    same = [argument, *([] if call.default is None else [parse(types[call.default])])]
    if function in of_argument and any(
        candidate and candidate.as_nullable() != result.as_nullable() for candidate in same
    ):
        message = f"{function} has the type of its argument, {argument}, found {call.type}"
        yield Diagnostic(message=message, path=f"{path}.type")


def _is_ordered(operator: OverAggregate) -> bool:
    """Return True if its rows have an order; in a stream they always have."""
    return bool(operator.order or operator.state)


def _call(call: OverCall) -> str:
    parts = [call.argument or ("*" if call.function == "COUNT" else None), call.count, call.default]
    distinct = "DISTINCT " if call.distinct else ""
    return f"{call.function}({distinct}{', '.join(str(part) for part in parts if part is not None)})"


def _bound(distance: int | None, side: str, shown: Callable[[int], str]) -> str:
    if distance is None:
        return f"UNBOUNDED {side}"
    if not distance:
        return "CURRENT ROW"
    return f"{shown(abs(distance))} {'PRECEDING' if distance < 0 else 'FOLLOWING'}"

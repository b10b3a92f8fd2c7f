"""``over-aggregate``: functions of the rows around each row (OVER), in a batch job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Literal

from hintplan.plans.declarations.computations import VARIANCES, SortKey
from hintplan.plans.declarations.fields import Name, Names, OneInput, OperatorId, TypeText
from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, check_names, parse, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Operator
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
OVER_FUNCTIONS = (*NUMBERS, *SHARES, "NTILE", *SHIFTS, *AGGREGATED)
MOST = 2**31 - 1
"""The maximum distance between rows: Spark counts distances in 32 bits."""


@frozen
class Frame:
    """The rows around a row over which an aggregate is computed.

    With ``rows``, the bounds count rows; with ``range``, they are differences between values of the order. ``start``
    and ``end`` are distances from the row: negative before it, 0 for the row itself, positive after it, None for no
    bound. A ``range`` contains either all or none of the rows that are equal in the order.
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
    count: Annotated[
        int | None, "The offset of LAG and LEAD, or the number of parts of NTILE.", {"minimum": 0, "maximum": MOST}
    ] = None
    default: Annotated[Name | None, "The column that LAG and LEAD take where there is no row."] = None
    type: TypeText


@frozen
class OverAggregate(Operator):
    """Adds to each row the results of functions over the rows of its ``key`` around it, in an ``order``. Batch only.

    Without ``frame``, aggregates cover the rows up to the last row that equals this one in the order, or all rows if
    there is no order. Rows that are equal in the order come in any order. Flink's OverAggregate.
    """

    op = "over-aggregate"
    title = "over aggregate"
    description = "Adds to each row the results of functions over the rows around it. Batch only."

    id: OperatorId
    inputs: OneInput
    key: Annotated[Names, "The columns of PARTITION BY; empty for all rows together.", {"uniqueItems": True}]
    order: Annotated[tuple[SortKey, ...], "The sort keys, most significant first; empty for no order."]
    frame: Annotated[Frame | None, "The rows that aggregates are of; absent for those up to the row."] = None
    calls: Annotated[tuple[OverCall, ...], "The functions.", {"minItems": 1}]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return True

    def output_columns(self, inputs: Inputs) -> Columns:
        return (*inputs.only, *(Column(name=call.name, type=call.type) for call in self.calls))

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        types = types_of(inputs.only)
        yield from check_known(self.key, types, f"{self.path}.key", "key column")
        yield from check_order(self.order, types, self.path)
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
        if plan.mode != "batch":
            message = "functions of the rows around a row need all rows, which a stream never has"
            yield Diagnostic(
                message=message, path=self.path, hint="compile the SQL with -c execution.runtime-mode=batch"
            )

    def describe(self, plan: Declared) -> str:
        calls = ", ".join(f"{call.name} = {_call(call)}" for call in self.calls)
        parts = [f"PARTITION BY {', '.join(self.key)}"] if self.key else []
        parts += [f"ORDER BY {describe_order(self.order)}"] if self.order else []
        if self.frame is not None:
            frame = self.frame
            ends = f"{_bound(frame.start, 'PRECEDING')} AND {_bound(frame.end, 'FOLLOWING')}"
            parts.append(f"{frame.unit.upper()} BETWEEN {ends}")
        return f"{calls} OVER ({' '.join(parts)})"


def _check_frame(operator: OverAggregate, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    frame = operator.frame
    if frame is None:
        return
    if frame.start is not None and frame.end is not None and frame.start > frame.end:
        yield Diagnostic(message=f"a frame from {frame.start} to {frame.end} has no row", path=path)
    if any(abs(bound or 0) > MOST for bound in (frame.start, frame.end)):
        yield Diagnostic(message=f"a frame ends at most {MOST} from its row", path=path, hint="null is no bound")
    if not operator.order:
        yield Diagnostic(message="a frame needs an order", path=path, hint="remove it, or order by a column")
    elif frame.unit == "range" and (frame.start or frame.end):
        column = operator.order[0].column
        if len(operator.order) > 1 or (column in types and not parse(types[column]).is_integer):
            message = "a range with distances takes the order of one integer column"
            yield Diagnostic(message=message, path=path, hint="count rows instead: rows")


def _check_call(call: OverCall, operator: OverAggregate, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    function, result = call.function, parse(call.type)
    if function not in AGGREGATED and not operator.order:
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


def _call(call: OverCall) -> str:
    parts = [call.argument or ("*" if call.function == "COUNT" else None), call.count, call.default]
    return f"{call.function}({', '.join(str(part) for part in parts if part is not None)})"


def _bound(distance: int | None, side: str) -> str:
    if distance is None:
        return f"UNBOUNDED {side}"
    if not distance:
        return "CURRENT ROW"
    return f"{abs(distance)} {'PRECEDING' if distance < 0 else 'FOLLOWING'}"

"""Decides how a stream orders the rows of window functions (OVER), and refuses functions that it cannot compute.

A message states whether Flink runs the function there, and if not, why. This module knows what Flink's planner accepts
in a stream; it compiles nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Expr, FieldRef
from hintplan.planner.properties.rowtimes import why_no_rowtime
from hintplan.planner.properties.time_attributes import is_processing_time
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.properties.windows import windows_of
from hintplan.planner.query.row_numbers import add_columns, partitioned
from hintplan.planner.relations import LogicalOver, OverItem, Relation
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.translator import Translator
from hintplan.plans.errors import SqlError

_NUMBERED = ("RANK", "DENSE_RANK")
_OF_ALL_ROWS = ("LEAD", "NTILE", "CUME_DIST", "PERCENT_RANK")
"""Functions that need rows that have not arrived yet."""
_FIRST_ROWS = "write ROW_NUMBER() and WHERE n <= 3, which numbers equal rows as they come, or run it in batch mode"
_IN_BATCH = "or run it in batch mode"


def check_in_stream(
    context: Context, window: exp.Window, name: str, relation: Relation, translator: Translator
) -> None:
    """Raise SqlError if a stream cannot compute ``window``, a call of ``name`` that is not ROW_NUMBER."""
    order, partition = partitioned(context, window, translator)
    if name in _NUMBERED and _is_of_window(relation, partition):
        message = f"{name}() is not supported in windows; Flink takes the first rows of a window by ROW_NUMBER() only"
        raise context.source.error(message, offset_of(window), _FIRST_ROWS)
    refusal = _refusal(context, window, name, relation, order)
    if refusal is not None:
        reason, advice = refusal
        message = f"{name}() OVER is not supported in a stream, by Flink neither: {reason}"
        raise context.source.error(message, offset_of(window), _FIRST_ROWS if name in _NUMBERED else advice)


def orders_a_stream_by_time(context: Context, relation: Relation, order: Sequence[Expr]) -> bool:
    """Return True if a stream has the order of a rowtime or of the processing time."""
    return len(order) == 1 and _is_time(context, relation, order[0])


def other_window(context: Context, window: exp.Window, first: exp.Window) -> SqlError:
    """Return the error for ``window``, which differs from the ``first`` window of its block."""
    line = context.source.place(offset_of(first))[0]
    message = (
        "all window functions of a query must have the same window in a stream, in Flink too, but this one differs "
        f"from the one in line {line}"
    )
    return context.source.error(message, offset_of(window), "compute one of them in a query below: FROM (SELECT ...)")


def check_operator(context: Context, over: LogicalOver, windows: Sequence[exp.Window]) -> None:
    """Raise SqlError for a call of the ``windows`` of an operator that a stream cannot compute."""
    for window, call in zip(windows, over.calls, strict=True):
        is_bounded = over.frame is not None and over.frame.start is not None
        if call.distinct and not is_bounded:
            message = f"{call.function} DISTINCT before OVER needs a frame with a start in a stream"
            advice = "write ROWS BETWEEN 9 PRECEDING AND CURRENT ROW, or use GROUP BY"
            raise context.source.error(message, offset_of(window), advice)
        if call.distinct and not _takes_distinct(call):
            kind = "" if call.argument is None else f" of {call.argument.type.as_nullable()}"
            message = f"{call.function} DISTINCT{kind} before OVER is not supported in a stream"
            raise context.source.error(message, offset_of(window), "leave out DISTINCT, or use GROUP BY")


def _takes_distinct(call: OverItem) -> bool:
    """Return True if equal values can count once: for numbers of values, and for sums of whole numbers."""
    is_whole = call.argument is not None and call.argument.type.is_integer
    return call.function == "COUNT" or (call.function in ("SUM", "AVG") and is_whole)


def _refusal(
    context: Context, window: exp.Window, name: str, relation: Relation, order: list[Expr]
) -> tuple[str, str] | None:
    """Return why Flink's planner refuses such a window in a stream, and what to write; None if it accepts it."""
    if name in _OF_ALL_ROWS:
        return f"{name} needs all rows", f"use LAG or GROUP BY, {_IN_BATCH}"
    if len(order) != 1:
        return "the rows must be ordered by one column", f"write ORDER BY and one column, {_IN_BATCH}"
    if window.args["order"].expressions[0].args.get("desc"):
        return "the order must be ascending", f"leave out DESC, {_IN_BATCH}"
    spec = window.args.get("spec")
    is_time = _is_time(context, relation, order[0])
    if is_time and not is_insert_only(relation):
        reason = "the rows can change, and are ordered by a time attribute"
        return reason, "compute it before the rows are aggregated or joined, or order by another column"
    if spec is None:
        return None
    if "FOLLOWING" in (spec.args.get("start_side"), spec.args.get("end_side")) or spec.args.get("end_side"):
        return "the frame must end with the current row", f"write AND CURRENT ROW, {_IN_BATCH}"
    if spec.args.get("start") != "UNBOUNDED" and not is_time:
        reason = "a frame that begins with a row must be ordered by a time attribute"
        return reason, f"write BETWEEN UNBOUNDED PRECEDING, or order by a rowtime, {_IN_BATCH}"
    return None


def _is_of_window(relation: Relation, partition: list[Expr]) -> bool:
    """Return True if ``partition`` has the start and the end of a window."""
    fields = {key.field.id for key in partition if isinstance(key, FieldRef)}
    return any(fields & window.starts and fields & window.ends for window in windows_of(relation))


def _is_time(context: Context, relation: Relation, key: Expr) -> bool:
    relation, (field,) = add_columns(context, relation, [key])
    return is_processing_time(context, relation, field.id) or why_no_rowtime(context, relation, field) is None

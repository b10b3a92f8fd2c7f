"""Refuses window functions (OVER) in a stream. The message states whether Flink runs them there, and if not, why.

This module knows what Flink's planner accepts in a stream; it compiles nothing.
"""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Expr, FieldRef
from hintplan.planner.properties.time_attributes import is_processing_time, is_row_time
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.properties.windows import windows_of
from hintplan.planner.query.row_numbers import partitioned
from hintplan.planner.relations import Relation
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.translator import Translator
from hintplan.plans.errors import SqlError

_NUMBERED = ("RANK", "DENSE_RANK")
_OF_ALL_ROWS = ("LEAD", "NTILE", "CUME_DIST", "PERCENT_RANK")
"""Functions that need rows that have not arrived yet."""
_FIRST_ROWS = "write ROW_NUMBER() and WHERE n <= 3, which numbers equal rows as they come, or run it in batch mode"
_INSTEAD = "use GROUP BY; batch mode allows them in SELECT, QUALIFY and ORDER BY"


def refused_in_stream(
    context: Context, window: exp.Window, name: str, relation: Relation, translator: Translator
) -> SqlError:
    """Return the error for ``window``, a call of ``name`` that is not ROW_NUMBER."""
    order, partition = partitioned(context, window, translator)
    reason = _reason(context, window, name, relation, order)
    subject, advice = "window functions (OVER) are", _INSTEAD
    if name in _NUMBERED:
        subject, advice = f"{name}() is", _FIRST_ROWS
    if name in _NUMBERED and _is_of_window(relation, partition):
        message = f"{subject} not supported in windows; Flink takes the first rows of a window by ROW_NUMBER() only"
    elif reason is not None:
        message = f"{subject} not supported in a stream, by Flink neither: {reason}"
    elif name in _NUMBERED:
        message = f"{subject} not supported in a stream; Flink has the numbers there, but takes no first rows by them"
    else:
        message = f"{subject} not supported in a stream, though Flink runs this one"
    return context.source.error(message, offset_of(window), advice)


def _reason(context: Context, window: exp.Window, name: str, relation: Relation, order: list[Expr]) -> str | None:
    """Return why Flink's planner refuses such a window in a stream, or None if it accepts it."""
    if name in _OF_ALL_ROWS:
        return f"{name} needs all rows"
    if len(order) != 1:
        return "the rows must be ordered by one column"
    if window.args["order"].expressions[0].args.get("desc"):
        return "the order must be ascending"
    spec = window.args.get("spec")
    is_time = _is_time(context, relation, order[0])
    if is_time and not is_insert_only(relation):
        return "the rows can change, and are ordered by a time attribute"
    if spec is None:
        return None
    if "FOLLOWING" in (spec.args.get("start_side"), spec.args.get("end_side")):
        return "the frame must end with the current row"
    if spec.args.get("start") != "UNBOUNDED" and not is_time:
        return "a frame that begins with a row must be ordered by a time attribute"
    return None


def _is_of_window(relation: Relation, partition: list[Expr]) -> bool:
    """Return True if ``partition`` has the start and the end of a window."""
    fields = {key.field.id for key in partition if isinstance(key, FieldRef)}
    return any(fields & window.starts and fields & window.ends for window in windows_of(relation))


def _is_time(context: Context, relation: Relation, key: Expr) -> bool:
    if not isinstance(key, FieldRef):
        return False
    return is_processing_time(relation, key.field.id) or is_row_time(context, relation, key.field)

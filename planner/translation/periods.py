"""``(start, end) OVERLAPS (start, end)``: compares two periods; the second part may be the length of the period.

As in Flink, the ends of a period may come in either order, and belong to the period.
"""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.expressions.operands import comparison_operands, shift_time
from hintplan.planner.expressions.typed import BOOLEAN, Expr, call
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.translator import Translator

_ADVICE = "write (a_start, a_end) OVERLAPS (b_start, b_end)"


def overlaps(t: Translator, node: exp.Expr) -> Expr:
    """Translate OVERLAPS to the condition that two periods of the same type have a moment in common."""
    offset = offset_of(node)
    (a, b), (c, d) = (_ends(t, side, offset) for side in (node.this, node.expression))
    if a.type.root != c.type.root:
        message = f"OVERLAPS does not take {a.type.as_nullable()} and {c.type.as_nullable()}"
        raise t.source.error(message, offset, "convert one period with CAST")
    a, b, c, d = comparison_operands(t.source, "OVERLAPS", (a, b, c, d), offset)
    (first, last), (start, end) = (_in_order(*ends, offset) for ends in ((a, b), (c, d)))
    parts = (call(">=", (last, start), BOOLEAN, offset), call(">=", (end, first), BOOLEAN, offset))
    return call("AND", parts, BOOLEAN, offset)


def _ends(t: Translator, node: exp.Expr, offset: int) -> tuple[Expr, Expr]:
    if not isinstance(node, exp.Tuple) or len(node.expressions) != 2:
        raise t.source.error("OVERLAPS takes two periods of two parts", offset_of(node) or offset, _ADVICE)
    start, end = (t.expression(part) for part in node.expressions)
    if end.type.root == "INTERVAL":
        end = shift_time(t.source, "+", start, end, offset)
    if start.type.root not in ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ") or start.type.root != end.type.root:
        types = f"{start.type.as_nullable()} and {end.type.as_nullable()}"
        message = f"a period is of two DATEs, TIMEs or TIMESTAMPs, found {types}"
        raise t.source.error(message, start.offset or offset, _ADVICE)
    return start, end


def _in_order(start: Expr, end: Expr, offset: int) -> tuple[Expr, Expr]:
    forwards = call("<=", (start, end), BOOLEAN, offset)
    first = call("CASE", (forwards, start, end), start.type, offset)
    return first, call("CASE", (forwards, end, start), start.type, offset)

"""What conditions say of a number: from where to where it may be.

>>> from hintplan.planner.expressions.typed import BOOLEAN, INT
>>> n = Field(id=1, name="n", type=INT)
>>> at_most = Call(function="<=", args=(Ref(field=n), Literal(text="3", type=INT)), type=BOOLEAN)
>>> bounds_of(n, (at_most,)) == (1, 3, ())
True
"""

from __future__ import annotations

from collections.abc import Sequence

from hintplan.planner.expressions.typed import Call, Expr, Field, Literal, Ref

_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


def bounds_of(number: Field, conditions: tuple[Expr, ...]) -> tuple[int, int | None, tuple[Expr, ...]]:
    """The least value from 1 and the greatest that ``conditions`` leave to ``number``, None for any; and the others."""
    least, greatest = 1, None
    others = []
    for condition in conditions:
        found = _bound(number, condition)
        if found is None:
            others.append(condition)
            continue
        low, high = found
        least = max(least, low)
        if high is not None:
            greatest = high if greatest is None else min(greatest, high)
    return least, greatest, tuple(others)


def _bound(number: Field, condition: Expr) -> tuple[int, int | None] | None:
    """What one condition leaves; None if it does not compare ``number`` with a whole number."""
    if not isinstance(condition, Call) or not condition.args:
        return None
    if condition.function == "BETWEEN":
        between, *ends = condition.args
        low, high = map(_whole, ends)
        return None if not _is(number, between) or low is None or high is None else (low, high)
    function, right = _compared(number, condition)
    value = _whole(right)
    if value is None:
        return None
    found: dict[str, tuple[int, int | None]] = {
        "=": (value, value),
        "<=": (1, value),
        "<": (1, value - 1),
        ">=": (value, None),
        ">": (value + 1, None),
    }
    return found.get(function)


def last_column(
    number: Field, columns: Sequence[Field], conditions: tuple[Expr, ...]
) -> tuple[Field | None, tuple[Expr, ...]]:
    """The first of ``columns`` of whole numbers that ``number`` is at most, and what is left of ``conditions``."""
    whole = {column.id for column in columns if column.type.is_integer}
    for condition in conditions:
        function, high = _compared(number, condition)
        if function in ("<=", "<", "=") and isinstance(high, Ref) and high.field.id in whole:
            # What says less than this is asked of the rows that it leaves.
            return high.field, tuple(c for c in conditions if c is not condition or function != "<=")
    return None, conditions


def _compared(number: Field, condition: Expr) -> tuple[str, Expr | None]:
    """How a condition compares ``number``, and with what; None if it does not."""
    if isinstance(condition, Call) and len(condition.args) == 2:
        left, right = condition.args
        if _is(number, left):
            return condition.function, right
        if _is(number, right):
            return _MIRRORED.get(condition.function, condition.function), left
    return "", None


def _is(number: Field, expression: Expr) -> bool:
    return isinstance(expression, Ref) and expression.field.id == number.id


def _whole(expression: Expr | None) -> int | None:
    """The whole number that an expression is."""
    text = expression.text if isinstance(expression, Literal) else None
    return int(text) if text is not None and text.lstrip("-").isdigit() else None

"""The range to which conditions restrict a number.

>>> from hintplan.planner.expressions.typed import BOOLEAN, INT
>>> n = Field(id=1, name="n", type=INT)
>>> at_most = Call(function="<=", args=(FieldRef(field=n), Literal(text="3", type=INT)), type=BOOLEAN)
>>> bounds_of(n, (at_most,)) == (1, 3, ())
True
"""

from __future__ import annotations

from collections.abc import Sequence

from hintplan.planner.expressions.typed import Call, Expr, Field, FieldRef, Literal

_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


def bounds_of(number: Field, conditions: tuple[Expr, ...]) -> tuple[int, int | None, tuple[Expr, ...]]:
    """Return the range that ``conditions`` allow for ``number``, from 1 upwards, and the remaining conditions.

    The upper bound is None if there is none. The remaining conditions do not compare ``number`` with a constant.
    """
    least, greatest = 1, None
    remaining = []
    for condition in conditions:
        bound = _bound(number, condition)
        if bound is None:
            remaining.append(condition)
            continue
        low, high = bound
        least = max(least, low)
        if high is not None:
            greatest = high if greatest is None else min(greatest, high)
    return least, greatest, tuple(remaining)


def _bound(number: Field, condition: Expr) -> tuple[int, int | None] | None:
    """Return the range that one condition allows, or None if it does not compare ``number`` with a whole number."""
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
    ranges: dict[str, tuple[int, int | None]] = {
        "=": (value, value),
        "<=": (1, value),
        "<": (1, value - 1),
        ">=": (value, None),
        ">": (value + 1, None),
    }
    return ranges.get(function)


def limiting_column(
    number: Field, columns: Sequence[Field], conditions: tuple[Expr, ...]
) -> tuple[Field | None, tuple[Expr, ...]]:
    """Return the column of whole numbers in ``columns`` that limits ``number`` from above, and the other conditions."""
    whole = {column.id for column in columns if column.type.is_integer}
    for condition in conditions:
        function, high = _compared(number, condition)
        if function in ("<=", "<", "=") and isinstance(high, FieldRef) and high.field.id in whole:
            # "<" and "=" keep fewer rows than the limit does, so they also remain as conditions.
            return high.field, tuple(c for c in conditions if c is not condition or function != "<=")
    return None, conditions


def _compared(number: Field, condition: Expr) -> tuple[str, Expr | None]:
    """Return the operator and the right side of a comparison whose left side is ``number``, after turning it if needed.

    The right side is None for every other condition.
    """
    if isinstance(condition, Call) and len(condition.args) == 2:
        left, right = condition.args
        if _is(number, left):
            return condition.function, right
        if _is(number, right):
            return _MIRRORED.get(condition.function, condition.function), left
    return "", None


def _is(number: Field, expression: Expr) -> bool:
    return isinstance(expression, FieldRef) and expression.field.id == number.id


def _whole(expression: Expr | None) -> int | None:
    """Return the value of a literal whole number, or None for any other expression."""
    text = expression.text if isinstance(expression, Literal) else None
    return int(text) if text is not None and text.lstrip("-").isdigit() else None

"""Finds the bounds of a join on the times of its sides: ``a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts``.

As in Flink, a join has an interval if exactly two of its conditions compare the two times, one from below and one from
above, or if one equality does. Times may be shifted by constant intervals. Other conditions remain.

A month has 28 to 31 days, and a cast between TIMESTAMP and TIMESTAMP_LTZ goes by a time zone. The interval is then long
enough for all cases, and the condition remains, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from hintplan.planner.expressions.typed import Call, Expr, Field, FieldRef, Literal
from hintplan.planner.relations import Interval, LogicalJoin

BOUNDED_JOINS = ("inner", "left", "right", "full")
"""The types of joins that can be interval joins, as in Flink."""
_DAY = 86_400_000
_UNITS = {
    "SECOND": (1000, 1000),
    "MINUTE": (60_000, 60_000),
    "HOUR": (3_600_000, 3_600_000),
    "DAY": (_DAY, _DAY),
    "MONTH": (28 * _DAY, 31 * _DAY),
    "YEAR": (365 * _DAY, 366 * _DAY),
}
"""The shortest and the longest duration of a unit in ms."""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``left`` compared with ``right`` plus ``least`` to ``most`` ms; both are columns with times of different sides.

    ``part`` is the condition that has it.
    """

    part: Expr
    operator: str
    left: Field
    right: Field
    least: int
    most: int

    @property
    def is_exact(self) -> bool:
        return self.least == self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedTimes:
    """The interval of a join, and the conditions that remain."""

    interval: Interval
    remaining: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """The time in a column, plus ``least`` to ``most`` ms."""

    field: Field
    least: int = 0
    most: int = 0


def bounded_times(join: LogicalJoin, conditions: tuple[Expr, ...]) -> Iterator[BoundedTimes]:
    """Yield the interval of each pair of a left and a right column that ``conditions`` compare as an interval does."""
    comparisons = tuple(compared_times(join, conditions))
    for pair in dict.fromkeys((each.left, each.right) for each in comparisons):
        own = tuple(each for each in comparisons if (each.left, each.right) == pair)
        bounds = _bounds(own)
        if bounds is not None:
            interval = Interval(left=pair[0], right=pair[1], lower=bounds[0], upper=bounds[1])
            remaining = tuple(part for part in conditions if not _is_expressed(part, own))
            yield BoundedTimes(interval=interval, remaining=remaining)


def _bounds(comparisons: tuple[Comparison, ...]) -> tuple[int, int] | None:
    if [each.operator for each in comparisons] == ["="]:
        return comparisons[0].least, comparisons[0].most
    lower = [each.least + (each.operator == ">") for each in comparisons if each.operator in (">", ">=")]
    upper = [each.most - (each.operator == "<") for each in comparisons if each.operator in ("<", "<=")]
    return (lower[0], upper[0]) if (len(comparisons), len(lower), len(upper)) == (2, 1, 1) else None


def _is_expressed(part: Expr, comparisons: tuple[Comparison, ...]) -> bool:
    """Return True if bounds by these comparisons are equivalent to ``part``."""
    own = [each for each in comparisons if each.part is part]
    return bool(own) and len(own) == len(_compared(part)) and all(each.is_exact for each in own)


def compared_times(join: LogicalJoin, conditions: tuple[Expr, ...]) -> Iterator[Comparison]:
    """Yield the comparisons in ``conditions`` of a time of the left side with a time of the right side."""
    left, right = ({f.id for f in side.fields} for side in (join.left, join.right))
    for part in conditions:
        for operator, a, b in _compared(part):
            one, other = _point(a), _point(b)
            if one is None or other is None:
                continue
            if one.field.id in right and other.field.id in left:
                operator, one, other = _MIRRORED[operator], other, one
            if one.field.id in left and other.field.id in right:
                least, most = other.least - one.most, other.most - one.least
                yield Comparison(
                    part=part, operator=operator, left=one.field, right=other.field, least=least, most=most
                )


def _compared(condition: Expr) -> list[tuple[str, Expr, Expr]]:
    if not isinstance(condition, Call):
        return []
    if condition.function == "BETWEEN":
        value, low, high = condition.args
        return [(">=", value, low), ("<=", value, high)]
    return [(condition.function, condition.args[0], condition.args[1])] if condition.function in _MIRRORED else []


def _point(expression: Expr) -> _Point | None:
    """Return the column with a time to which ``expression`` adds a constant; None if it is something else."""
    if isinstance(expression, FieldRef):
        return _Point(field=expression.field) if expression.type.root in _TIMES else None
    if not isinstance(expression, Call):
        return None
    if expression.function == "CAST":
        below = _point(expression.args[0]) if expression.type.root in _TIMES else None
        if below is None or expression.type.root == expression.args[0].type.root:
            return below
        return _shifted(below, -_DAY, _DAY)
    if expression.function not in "+-" or len(expression.args) != 2:
        return None
    below, shift = _point(expression.args[0]), expression.args[1]
    if below is None or not isinstance(shift, Literal) or shift.type.root != "INTERVAL" or shift.text is None:
        return None
    _, text, unit = shift.text.split()
    number = Decimal(text.strip("'")) * (1 if expression.function == "+" else -1)
    ends = [number * unit_ms for unit_ms in _UNITS[unit]]
    if any(end != int(end) for end in ends):
        return None
    return _shifted(below, int(min(ends)), int(max(ends)))


def _shifted(point: _Point, least: int, most: int) -> _Point:
    return _Point(field=point.field, least=point.least + least, most=point.most + most)

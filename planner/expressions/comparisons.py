"""Comparisons that are exact even for two DECIMALs that no common DECIMAL can hold.

Spark converts such a pair to a DECIMAL of 38 digits, which rounds the number with the larger scale. For example, 0.57
becomes 1 next to a ``DECIMAL(38, 0)``. (Flink does the same for ``=``, but not for ``<``.) So the planner compares with
the nearest lower and upper numbers that have the other side's scale. The two sides are equal if the other side equals
both numbers.

>>> from hintplan.planner.expressions.typed import literal
>>> one, other = parse_type("DECIMAL(38, 0)"), parse_type("DECIMAL(2, 2)")
>>> compared("<", (literal("3", one), literal("0.57", other)), 0).args[1].text
'1'
"""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from hintplan.planner.expressions.nested_parts import fields, is_constructor
from hintplan.planner.expressions.typed import BOOLEAN, INT, Call, Expr, Literal, call, conjunction, literal
from hintplan.plans.declarations.types import DataType, parse_type

_MOST_DIGITS = 38
_WHOLE_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
"""The digits of the DECIMAL to which Spark converts an integer that it compares with a DECIMAL."""
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BOUNDS = {"<": ("ceil",), ">=": ("ceil",), "<=": ("floor",), ">": ("floor",)}
"""The nearest number that decides a comparison; ``=`` and ``<>`` need both."""


def compared(operator: str, pair: tuple[Expr, ...], offset: int) -> Expr:
    """Compare a pair of comparable values by ``operator``, one of ``= <> < <= > >=``."""
    left, right = pair
    if is_constructor(left) and is_constructor(right) and left.type.root == "ROW":
        return _equal_fields(operator, left, right, offset)
    if left.type.has_entries:
        left, right = (sorted_entries(each) for each in pair)
    if not _loses_digits(left.type, right.type):
        return call(operator, (left, right), BOOLEAN, offset)
    if _digits(left.type)[1] > _digits(right.type)[1]:
        left, right, operator = right, left, _TURNED[operator]
    scale = _digits(left.type)[1]
    near = dict.fromkeys(_nearest(right, name, scale) for name in _BOUNDS.get(operator, ("floor", "ceil")))
    parts = tuple(call(operator, (left, each), BOOLEAN, offset) for each in near)
    if len(parts) == 1:
        return parts[0]
    return call("AND" if operator == "=" else "OR", parts, BOOLEAN, offset)


def _equal_fields(operator: str, left: Expr, right: Expr, offset: int) -> Expr:
    """Compare two constructed ROWs by ``=`` or ``<>``; the result is NULL if a field is NULL and no other differs.

    In every other ROW, and in an ARRAY, NULL equals NULL.
    """
    pairs = zip(fields(left, offset), fields(right, offset), strict=True)
    same = conjunction(tuple(compared("=", pair, offset) for pair in pairs))
    assert same is not None
    return same if operator == "=" else call("NOT", (same,), BOOLEAN, offset)


def sorted_entries(value: Expr) -> Expr:
    """Return the entries of a MAP or MULTISET in the order of their keys, in a form that Spark can compare."""
    key, kept = value.type.parts
    entry = DataType(root="ROW", names=("key", "value"), children=(key, kept))
    entries = DataType(root="ARRAY", children=(entry,))
    listed = call("map_entries", (value,), entries, value.offset)
    return call("array_sort", (listed,), entries, value.offset)


def whose_entries(value: Expr) -> Expr | None:
    """Return the MAP or MULTISET from which :func:`sorted_entries` made ``value``, or None for any other value."""
    if not (isinstance(value, Call) and value.function == "array_sort"):
        return None
    (listed,) = value.args
    return listed.args[0] if isinstance(listed, Call) and listed.function == "map_entries" else None


def is_in(values: tuple[Expr, ...], offset: int) -> Expr:
    """Compile ``values[0] IN (values[1], ...)`` of comparable values."""
    value, *items = values
    plain = value.type.root not in ("ROW", "MAP", "MULTISET")
    types = dict.fromkeys(each.type for each in values)
    if plain and not any(_loses_digits(one, other) for one in types for other in types):
        return call("IN", values, BOOLEAN, offset)
    condition, *alternatives = (compared("=", (value, item), offset) for item in items)
    for other in alternatives:
        condition = call("OR", (condition, other), BOOLEAN, offset)
    return condition


def between(values: tuple[Expr, ...], offset: int) -> Expr:
    """Compile ``value BETWEEN low AND high`` of three comparable values."""
    value, low, high = values
    if not any(_loses_digits(value.type, bound.type) for bound in (low, high)):
        return call("BETWEEN", values, BOOLEAN, offset)
    both = conjunction((compared(">=", (value, low), offset), compared("<=", (value, high), offset)))
    assert both is not None
    return both


def _digits(kind: DataType) -> tuple[int, int]:
    """Return precision and scale of an exact number, and zeros for any other type."""
    if kind.root == "DECIMAL":
        return kind.precision or 0, kind.scale or 0
    return _WHOLE_DIGITS.get(kind.root, 0), 0


def _loses_digits(one: DataType, other: DataType) -> bool:
    """Return True if no DECIMAL holds all values of both types."""
    (p1, s1), (p2, s2) = _digits(one), _digits(other)
    return bool(p1 and p2) and max(p1 - s1, p2 - s2) + max(s1, s2) > _MOST_DIGITS


def _nearest(value: Expr, function: str, scale: int) -> Expr:
    """Return the nearest number with ``scale`` fraction digits, not above (``floor``) or not below (``ceil``)."""
    whole = (value.type.precision or 0) - (value.type.scale or 0)
    if isinstance(value, Literal) and value.text is not None:
        rounding = ROUND_FLOOR if function == "floor" else ROUND_CEILING
        exact = Context(prec=2 * _MOST_DIGITS)
        number = Decimal(value.text).quantize(Decimal(1).scaleb(-scale), rounding, exact)
        number = number or abs(number)  # not -0
        digits = max(len(number.as_tuple().digits), scale, 1)
        return Literal(text=f"{number:f}", type=_decimal(digits, scale), offset=value.offset)
    result = replace(_decimal(whole + 1 + scale, scale), nullable=value.type.nullable)
    places = (literal(scale, INT),) if scale else ()
    return Call(function=function, args=(value, *places), type=result, offset=value.offset)


def _decimal(precision: int, scale: int) -> DataType:
    return parse_type(f"DECIMAL({precision}, {scale})")

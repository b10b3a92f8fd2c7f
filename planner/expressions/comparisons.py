"""Comparisons: exact for DECIMALs, too, whose digits together are more than a DECIMAL has.

Spark compares those in one of 38 digits, which rounds the number with more digits behind the point: 1 = 0.57 beside a
``DECIMAL(38, 0)``. (So does Flink for ``=``, but not for ``<``.) Such a number is compared by the two nearest ones that
have no more digits behind the point than the other side: both are the other side, if they are equal.

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
"""Digits of the DECIMAL that an integer is to Spark beside one."""
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BOUNDS = {"<": ("ceil",), ">=": ("ceil",), "<=": ("floor",), ">": ("floor",)}
"""Which of the two nearest numbers decides; both for ``=`` and ``<>``."""


def compared(operator: str, pair: tuple[Expr, ...], offset: int) -> Expr:
    """``left operator right`` of a pair of comparable values, ``operator`` one of ``= <> < <= > >=``."""
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
    """``=`` or ``<>`` of two ROWs that stand there: NULL if no field differs, and one is NULL.

    In any other ROW, and in an ARRAY, NULL equals NULL.
    """
    pairs = zip(fields(left, offset), fields(right, offset), strict=True)
    same = conjunction(tuple(compared("=", pair, offset) for pair in pairs))
    assert same is not None
    return same if operator == "=" else call("NOT", (same,), BOOLEAN, offset)


def sorted_entries(value: Expr) -> Expr:
    """The entries of a MAP or MULTISET in the order of their keys, which Spark can compare."""
    key, kept = value.type.parts
    entry = DataType(root="ROW", names=("key", "value"), children=(key, kept))
    entries = DataType(root="ARRAY", children=(entry,))
    listed = call("map_entries", (value,), entries, value.offset)
    return call("array_sort", (listed,), entries, value.offset)


def whose_entries(value: Expr) -> Expr | None:
    """The MAP or MULTISET of which ``value`` is what :func:`sorted_entries` gives; None if it is anything else."""
    if not (isinstance(value, Call) and value.function == "array_sort"):
        return None
    (listed,) = value.args
    return listed.args[0] if isinstance(listed, Call) and listed.function == "map_entries" else None


def is_in(values: tuple[Expr, ...], offset: int) -> Expr:
    """``values[0] IN (values[1], ...)`` of comparable values."""
    value, *items = values
    plain = value.type.root not in ("ROW", "MAP", "MULTISET")
    types = dict.fromkeys(each.type for each in values)
    if plain and not any(_loses_digits(one, other) for one in types for other in types):
        return call("IN", values, BOOLEAN, offset)
    found, *others = (compared("=", (value, item), offset) for item in items)
    for other in others:
        found = call("OR", (found, other), BOOLEAN, offset)
    return found


def between(values: tuple[Expr, ...], offset: int) -> Expr:
    """``value BETWEEN low AND high`` of three comparable values."""
    value, low, high = values
    if not any(_loses_digits(value.type, bound.type) for bound in (low, high)):
        return call("BETWEEN", values, BOOLEAN, offset)
    both = conjunction((compared(">=", (value, low), offset), compared("<=", (value, high), offset)))
    assert both is not None
    return both


def _digits(kind: DataType) -> tuple[int, int]:
    """Precision and scale of an exact number; none of another type."""
    if kind.root == "DECIMAL":
        return kind.precision or 0, kind.scale or 0
    return _WHOLE_DIGITS.get(kind.root, 0), 0


def _loses_digits(one: DataType, other: DataType) -> bool:
    """Whether no DECIMAL holds all values of both."""
    (p1, s1), (p2, s2) = _digits(one), _digits(other)
    return bool(p1 and p2) and max(p1 - s1, p2 - s2) + max(s1, s2) > _MOST_DIGITS


def _nearest(value: Expr, function: str, scale: int) -> Expr:
    """The nearest number not above (``floor``) or not below (``ceil``) that has ``scale`` digits behind the point."""
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

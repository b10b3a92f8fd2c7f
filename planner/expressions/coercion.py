"""Flink's type rules: common types, result types of arithmetic, implicit assignments and casts.

The types of DECIMAL results are the same in Flink and in Spark, since both follow Hive. This module knows no SQL text.

>>> str(arithmetic_type("*", parse_type("DECIMAL(10, 2)"), parse_type("INT")))
'DECIMAL(21, 2)'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hintplan.planner.expressions.nested_parts import cast_nested
from hintplan.planner.expressions.typed import DOUBLE, INT, NULL, STRING, Call, Expr, Literal, call, literal
from hintplan.plans.declarations.types import DataType, parse_type

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_LTZ")
_OCTETS = ("BINARY", "VARBINARY", "BYTES")
_MIN_SCALE = 6
_MICROSECONDS = 6
_WITHOUT_ZEROS = "^(.{8}([.][0-9]*[1-9])?)[.0]*$"
"""Matches the text of a TIME; its first group is the text without trailing zeros of the fraction."""
_CLOCK = "[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}([.][0-9]{0,9})?"
_SHORT_CLOCKS = (("^([0-9]{1,2})$", "$1:0:0"), ("^([0-9]{1,2}:[0-9]{1,2})$", "$1:0"))
"""Patterns of shortened times that Flink casts to a TIME, with their full forms, which ``_CLOCK`` matches."""
_UNITS = {0: "SECOND", 3: "MILLISECOND"}
"""The units to which Spark can truncate a TIMESTAMP_LTZ, by the digits of a second that remain."""


def decimal_type(data_type: DataType) -> DataType:
    """Return the DECIMAL that holds every value of an integer type; a DECIMAL stays as it is."""
    if data_type.root == "DECIMAL":
        return data_type.as_nullable()
    return DataType(root="DECIMAL", precision=_DIGITS[data_type.root], scale=0)


def common_data_type(types: Sequence[DataType]) -> DataType | None:
    """Return the type to which all values of ``types`` can be converted implicitly, or None if there is none."""
    typed = [t.as_nullable() for t in types if t != NULL]
    if not typed:
        return NULL
    if all(t == typed[0] for t in typed):
        return typed[0]
    if any(t.is_nested for t in typed):
        return _common_nested(typed)
    roots = {t.root for t in typed}
    if all(t.is_text for t in typed):
        return STRING
    if roots <= set(_OCTETS):
        return DataType(root="BYTES")
    if all(t.is_numeric for t in typed):
        return _common_number(typed, roots)
    if roots == {"TIME"}:
        return DataType(root="TIME", precision=max(t.precision or 0 for t in typed))
    if roots <= {"DATE", "TIMESTAMP"} or roots == {"TIMESTAMP_LTZ"}:
        root = "TIMESTAMP_LTZ" if "TIMESTAMP_LTZ" in roots else "TIMESTAMP"
        return DataType(root=root, precision=max(t.precision or 0 for t in typed))
    return None


def common_moment(types: Sequence[DataType]) -> DataType | None:
    """Return the TIMESTAMP_LTZ to which TIMESTAMP and TIMESTAMP_LTZ are converted, or None if there are other types."""
    typed = [t for t in types if t != NULL]
    if {t.root for t in typed} != set(_TIMESTAMPS):
        return None
    return DataType(root="TIMESTAMP_LTZ", precision=max(t.precision or 0 for t in typed))


def _common_nested(types: list[DataType]) -> DataType | None:
    """Return the type of the first value, with the common types of the parts of all values."""
    if len({(t.root, len(t.children)) for t in types}) > 1:
        return None
    parts = [common_data_type(each) for each in zip(*(t.children for t in types), strict=True)]
    if any(part is None for part in parts):
        return None
    return replace(types[0], children=tuple(part for part in parts if part is not None))


def _common_number(types: list[DataType], roots: set[str]) -> DataType:
    if "DOUBLE" in roots or roots >= {"FLOAT", "DECIMAL"}:
        return DOUBLE
    if "FLOAT" in roots:
        return DataType(root="FLOAT")
    if "DECIMAL" in roots:
        decimals = [decimal_type(t) for t in types]
        scale = max(t.scale or 0 for t in decimals)
        whole = max((t.precision or 0) - (t.scale or 0) for t in decimals)
        return _decimal(min(whole + scale, 38), max(min(scale, 38 - whole), 0))
    return DataType(root=max(roots, key=_INTEGERS.index))


def _decimal(precision: int, scale: int) -> DataType:
    return DataType(root="DECIMAL", precision=precision, scale=scale)


def _adjusted(precision: int, scale: int) -> DataType:
    """Return a DECIMAL of at most 38 digits; excess digits are taken from the fraction, down to six."""
    if precision <= 38:
        return _decimal(precision, scale)
    return _decimal(38, max(38 - (precision - scale), min(scale, _MIN_SCALE)))


def arithmetic_type(operator: str, left: DataType, right: DataType) -> DataType:
    """Return the result type of a numeric ``+ - * / %``; two integers give an integer.

    ``%`` of two DECIMALs without a fraction has the type of the second operand.
    """
    common = common_data_type((left, right))
    if common is None or "DECIMAL" not in (left.root, right.root) or common.root == "DOUBLE":
        return common or NULL
    a, b = decimal_type(left), decimal_type(right)
    p1, s1, p2, s2 = a.precision or 0, a.scale or 0, b.precision or 0, b.scale or 0
    if operator in "+-":
        scale = max(s1, s2)
        return _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operator == "*":
        return _adjusted(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(_MIN_SCALE, s1 + p2 + 1)
        return _adjusted(p1 - s1 + s2 + scale, scale)
    return remainder_type(left, right) if s1 or s2 else right.as_nullable()


def remainder_type(left: DataType, right: DataType) -> DataType:
    """Return Spark's DECIMAL for ``left % right``, which holds every result; at least one operand is a DECIMAL."""
    a, b = decimal_type(left), decimal_type(right)
    p1, s1, p2, s2 = a.precision or 0, a.scale or 0, b.precision or 0, b.scale or 0
    return _adjusted(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def may_overflow(operator: str, left: DataType, right: DataType) -> bool:
    """Return True if ``left operator right``, one of ``+ - *`` with DECIMALs, can exceed the digits of a DECIMAL."""
    a, b = decimal_type(left), decimal_type(right)
    p1, s1, p2, s2 = a.precision or 0, a.scale or 0, b.precision or 0, b.scale or 0
    if operator == "*":
        return p1 + p2 + 1 > 38
    return operator in "+-" and max(p1 - s1, p2 - s2) + max(s1, s2) + 1 > 38


def implicitly_assignable(source: DataType, target: DataType) -> bool:
    """Return True if INSERT converts ``source`` to ``target`` without a CAST, because every value stays the same."""
    source, target = source.as_nullable(), target.as_nullable()
    if NULL in (source, target) or source == target:
        return True
    if source.is_nested or target.is_nested:
        alike = source.root == target.root and len(source.children) == len(target.children)
        return alike and all(map(implicitly_assignable, source.children, target.children))
    if source.is_integer and target.is_integer:
        return _INTEGERS.index(source.root) <= _INTEGERS.index(target.root)
    if source.is_integer and target.root in ("FLOAT", "DOUBLE"):
        return True
    if (source.is_integer or source.root == "DECIMAL") and target.root == "DECIMAL":
        exact = decimal_type(source)
        whole = (exact.precision or 0) - (exact.scale or 0)
        return (target.scale or 0) >= (exact.scale or 0) and (target.precision or 0) - (target.scale or 0) >= whole
    if source.root in ("DECIMAL", "FLOAT") and target.root == "DOUBLE":
        return True
    if source.is_text and target.is_text:
        if target.root == "STRING":
            return True
        return (
            source.root != "STRING" and target.root == "VARCHAR" and (source.precision or 0) <= (target.precision or 0)
        )
    if source.root in ("BINARY", "VARBINARY") and target.root in ("BYTES", "VARBINARY"):
        return target.root == "BYTES" or (source.precision or 0) <= (target.precision or 0)
    if source.root == target.root and source.root in ("TIME", *_TIMESTAMPS):
        return (source.precision or 0) <= (target.precision or 0)
    return source.root == "DATE" and target.root == "TIMESTAMP"


def castable_type(source: DataType, target: DataType) -> bool:
    """Return True if ``CAST(source AS target)``, as compiled by :func:`cast`, means the same in Flink and Spark."""
    source, target = source.as_nullable(), target.as_nullable()
    if source in (NULL, target):
        return True
    plain = source.is_numeric or source.is_text or source.root == "BOOLEAN"
    if target.is_numeric:
        return plain
    if target.is_text:
        return plain or source.root in ("DATE", "TIME", *_TIMESTAMPS, *_OCTETS)
    if target.root == "BOOLEAN":
        return source.is_text or source.is_numeric
    if target.root == "DATE":
        return source.is_text or source.root in _TIMESTAMPS
    if target.root in _TIMESTAMPS:
        written = target.root == "TIMESTAMP" or target.precision in _UNITS or not _shortens(source, target)
        return written and (source.is_text or source.root in ("DATE", "TIME", *_TIMESTAMPS))
    if target.root == "TIME":
        return source.is_text or source.root in ("TIME", *_TIMESTAMPS)
    if target.root == "BYTES":
        return source.root in _OCTETS or source.is_text
    return False


def cast(value: Expr, target: DataType, offset: int, *, function: str = "CAST") -> Expr:
    """Convert ``value`` to ``target``, which must be :func:`castable`; ``TRY_CAST`` returns NULL where CAST fails."""
    target = target.as_nullable()
    source = value.type.as_nullable()
    if source == target:
        return value
    if isinstance(value, Literal) and value.text is None:
        return Literal(text=None, type=target, offset=offset)
    if target.is_nested:
        return cast_nested(value, target, offset, cast)
    if target.root == "TIME":
        return _time_of_day(value, target, offset, function)
    if source.root == "TIME" and target.root in _TIMESTAMPS:
        moment = call("concat", (literal("1970-01-01 ", STRING), value), STRING, offset)
        if (source.precision or 0) <= (target.precision or 0):
            return call(function, (moment,), target, offset)
        return cast(moment, target, offset, function=function)
    converted: Expr = call(function, (value,), target, offset)
    if target.root in _TIMESTAMPS and _shortens(source, target):
        return _shortened(value if source.root == target.root else converted, target, offset, function)
    if target.is_text:
        converted = value if source.is_text else call(function, (value,), STRING, offset)
        if source.root in _TIMESTAMPS:
            converted = _all_digits(converted, source.precision or 0, offset)
        if source.root == "TIME":  # a type with a fraction shows at least one digit of it
            converted = _replaced(value, "^(.{8})$", "$1.0", offset) if source.precision else converted
        if source.root == "BOOLEAN":
            converted = call("upper", (converted,), STRING, offset)  # Flink writes TRUE and FALSE
        fits = source.is_text and implicitly_assignable(source, target)
        if target.root == "CHAR" or (target.root == "VARCHAR" and not fits):
            return of_length(converted, target, offset)
        if source.is_text:
            return call("CAST", (value,), target, offset)
    return converted


def _time_of_day(value: Expr, target: DataType, offset: int, function: str) -> Expr:
    """Convert text, a timestamp or another TIME to a TIME.

    Its text is cut to the digits of ``target``, and loses trailing zeros.
    """
    source = value.type.as_nullable()
    digits = target.precision or 0
    if source.root == "TIME" and (source.precision or 0) <= digits:
        return call("CAST", (value,), target, offset)
    if source.root != "TIME":
        if source.is_text:
            value = call("trim", (value,), STRING, offset)
            for short, long in _SHORT_CLOCKS:
                value = _replaced(value, short, long, offset)
            marked = _replaced(value, f"(?s)^(?!{_CLOCK}(?!.))", "?", offset)  # any other text fails
            value = call("concat", (literal("1970-01-01 ", STRING), marked), STRING, offset)
        moment = call(function, (value,), DataType(root="TIMESTAMP", precision=_MICROSECONDS), offset)
        shown = call("CAST", (moment,), STRING, offset)
        value = call("regexp_extract", (shown, literal("[^ ]+$", STRING), literal(0, INT)), STRING, offset)
    length = len("13:14:15") + digits + bool(digits)
    cut = call("substring", (value, literal(1, INT), literal(length, INT)), STRING, offset)
    return replace(_replaced(cut, _WITHOUT_ZEROS, "$1", offset) if digits else cut, type=target)


def _replaced(text: Expr, pattern: str, by: str, offset: int) -> Call:
    return call("regexp_replace", (text, literal(pattern, STRING), literal(by, STRING)), STRING, offset)


def _shortens(source: DataType, target: DataType) -> bool:
    """Return True if a timestamp from ``source`` may have more digits of a second than ``target``."""
    digits = _MICROSECONDS if source.is_text else source.precision or 0
    return source.root != "DATE" and digits > (target.precision or 0)


def _shortened(moment: Expr, target: DataType, offset: int, function: str) -> Expr:
    """Cut ``moment`` to the digits of a second that ``target`` has; a TIMESTAMP is cut as text.

    Spark's ``date_trunc`` converts a TIMESTAMP to the session time zone, where some hours do not exist.
    """
    if target.root == "TIMESTAMP_LTZ":
        return call("date_trunc", (literal(_UNITS[target.precision or 0], STRING), moment), target, offset)
    length = len("2024-02-29 13:14:15") + (target.precision or 0) + bool(target.precision)
    shown = call("CAST", (moment,), STRING, offset)
    cut = call("substring", (shown, literal(1, INT), literal(length, INT)), STRING, offset)
    return call(function, (cut,), target, offset)


def _all_digits(shown: Expr, digits: int, offset: int) -> Expr:
    """Add the trailing zeros of the second that Spark omits to ``shown``, so that it has all ``digits`` of its type."""
    length = len("2024-02-29 13:14:15")
    second = call("substring", (shown, literal(1, INT), literal(length, INT)), STRING, offset)
    if not digits:
        return second
    fraction = call("substring", (shown, literal(length + 2, INT)), STRING, offset)
    filled = call("rpad", (fraction, literal(digits, INT), literal("0", STRING)), STRING, offset)
    return call("concat", (second, literal(".", STRING), filled), STRING, offset)


def of_length(text: Expr, target: DataType, offset: int) -> Expr:
    """Return text or octets with the length of a CHAR or BINARY, or at most the length of a VARCHAR or VARBINARY.

    A CHAR is padded with spaces, a BINARY with zeros.
    """
    length = Literal(text=str(target.precision), type=parse_type("INT"))
    if target.root == "BINARY":
        return call("rpad", (text, length), target, offset)
    if target.root == "CHAR":
        return call("rpad", (text, length, Literal(text=" ", type=STRING)), target, offset)
    return call("substring", (text, Literal(text="1", type=parse_type("INT")), length), target, offset)


def coerce(value: Expr, target: DataType) -> Expr:
    """Convert ``value`` to the common type of an operator, without a cast where Spark widens by itself."""
    source = value.type.as_nullable()
    if source == target or (source.is_integer and target.is_integer) or (source.is_text and target.root == "STRING"):
        return value
    if isinstance(value, Literal) and value.text is None:
        return value
    if isinstance(value, Literal) and value.type.is_text and target.root in ("DATE", *_TIMESTAMPS):
        return Literal(text=value.text, type=target, offset=value.offset)
    if target.root == "DOUBLE" and (source.is_integer or source.root in ("DECIMAL", "FLOAT")):
        return value
    return cast(value, target, value.offset)

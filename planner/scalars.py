"""Scalar functions: what each of Flink's takes and gives, and the Spark expression that means the same.

A function is listed only if Flink and Spark agree on it, or if a Spark expression exists that does what Flink does.
Add one by adding a row to ``_SIGNATURES`` or, if it needs care, a builder to ``_BUILDERS``.

>>> from planner.expressions import STRING, literal
>>> translate(Source(text=""), "UPPER", (literal("a", STRING),), 0).function
'upper'
"""

from __future__ import annotations

import re
from collections.abc import Callable

from planner.coercion import cast, common_type, convert
from planner.expressions import BIGINT, BOOLEAN, DOUBLE, INT, NULL, STRING, Expr, Literal, call, literal
from planner.source import Source
from plans.names import nearest
from plans.types import DataType

__all__ = ["case", "known_functions", "translate"]

_TIME = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
_LTZ3 = DataType(root="TIMESTAMP_LTZ", precision=3)

# Flink name: (Spark name, kinds of the arguments, result); "text*" means one or more
_SIGNATURES: dict[str, tuple[str, tuple[str, ...], DataType]] = {
    "UPPER": ("upper", ("text",), STRING),
    "LOWER": ("lower", ("text",), STRING),
    "TRIM": ("trim", ("text",), STRING),
    "LTRIM": ("ltrim", ("text",), STRING),
    "RTRIM": ("rtrim", ("text",), STRING),
    "CHAR_LENGTH": ("length", ("text",), INT),
    "CHARACTER_LENGTH": ("length", ("text",), INT),
    "REPLACE": ("replace", ("text", "text", "text"), STRING),
    "REVERSE": ("reverse", ("text",), STRING),
    "POSITION": ("locate", ("text", "text"), INT),
    "CONCAT": ("concat", ("text*",), STRING),
    "CONCAT_WS": ("concat_ws", ("text", "text*"), STRING),
    "MD5": ("md5", ("text",), STRING),
    "SQRT": ("sqrt", ("number",), DOUBLE),
    "EXP": ("exp", ("number",), DOUBLE),
    "POWER": ("power", ("number", "number"), DOUBLE),
}
_PARTS = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "DAY": "day",
    "DAYOFMONTH": "day",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
}
_PATTERN = re.compile(r"(?:yyyy|MM|dd|HH|mm|ss|SSS|[-/:. ])*")


def known_functions() -> tuple[str, ...]:
    """All scalar functions that a query may call, sorted."""
    return tuple(sorted({*_SIGNATURES, *_BUILDERS, *_PARTS, "CAST", "TRY_CAST", "EXTRACT", "MOD"}))


def translate(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """The call ``name(args)``; SqlError if the function is unknown or does not take these arguments."""
    if name in _SIGNATURES:
        spark, kinds, result = _SIGNATURES[name]
        expected = kinds
        if kinds[-1].endswith("*"):
            expected = (*kinds[:-1], *[kinds[-1][:-1]] * max(len(args) - len(kinds) + 1, 1))
        _check(source, name, args, expected, offset)
        return call(spark, args, result, offset)
    if name in _PARTS:
        _check(source, name, args, ("time",), offset)
        if args[0].type.root == "DATE" and name in ("HOUR", "MINUTE", "SECOND"):
            raise source.error(f"a DATE has no {name}", offset, "use a TIMESTAMP")
        return call("CAST", (call(_PARTS[name], args, INT, offset),), BIGINT, offset)
    if name in _BUILDERS:
        return _BUILDERS[name](source, name, args, offset)
    close = nearest(name, known_functions())
    advice = f"did you mean '{close}'?" if close else f"supported are {', '.join(known_functions())}"
    raise source.error(f"function {name} is not supported", offset, advice)


def case(source: Source, parts: tuple[Expr, ...], offset: int) -> Expr:
    """CASE out of condition, value, condition, value, ..., default."""
    values = (*parts[1::2], parts[-1])
    result = _common(source, "CASE", values, offset)
    converted = tuple(p if i % 2 == 0 and i != len(parts) - 1 else _branch(p, result) for i, p in enumerate(parts))
    return call("CASE", converted, result, offset)


def _check(source: Source, name: str, args: tuple[Expr, ...], kinds: tuple[str, ...], offset: int) -> None:
    if len(args) != len(kinds):
        count = f"{len(kinds)} argument{'s' * (len(kinds) != 1)}" if kinds else "no arguments"
        raise source.error(f"{name} takes {count}, found {len(args)}", offset, "check the call")
    for i, (arg, kind) in enumerate(zip(args, kinds, strict=True), 1):
        t = arg.type
        fits = (
            t == NULL
            or {
                "text": t.is_text,
                "number": t.is_numeric,
                "time": t.root in _TIME,
                "boolean": t.root == "BOOLEAN",
                "integer": t.is_integer,
                "any": True,
            }[kind]
        )
        if not fits:
            wanted = {
                "text": "STRING",
                "number": "a number",
                "time": "a DATE or TIMESTAMP",
                "boolean": "a condition",
                "integer": "an integer",
            }[kind]
            raise source.error(
                f"argument {i} of {name} must be {wanted}, found {t.as_nullable()}",
                arg.offset or offset,
                "convert it with CAST",
            )


def _common(source: Source, name: str, values: tuple[Expr, ...], offset: int) -> DataType:
    found = common_type([v.type for v in values])
    if found is None:
        types = ", ".join(dict.fromkeys(str(v.type.as_nullable()) for v in values))
        raise source.error(f"the values of {name} have no common type: {types}", offset, "convert them with CAST")
    return found


def _branch(value: Expr, result: DataType) -> Expr:
    if value.type != result and value.type.is_integer and result.is_integer and not isinstance(value, Literal):
        return cast(value, result, value.offset)
    if isinstance(value, Literal) and value.type.is_integer and result == BIGINT:
        return cast(value, result, value.offset)
    if value.type.root == "DECIMAL" and result.root == "DOUBLE":
        return cast(value, result, value.offset)
    return convert(value, result)


def _coalesce(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    if not args or (name == "IFNULL" and len(args) != 2):
        raise source.error(
            f"{name} takes {'two' if name == 'IFNULL' else 'at least one'} arguments", offset, "add them"
        )
    result = _common(source, name, args, offset)
    return call("coalesce", tuple(_branch(a, result) for a in args), result, offset)


def _nullif(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    _check(source, name, args, ("any", "any"), offset)
    _common(source, name, args, offset)
    same = call("=", args, BOOLEAN, offset)
    return call("CASE", (same, literal(None, args[0].type), args[0]), args[0].type, offset)


def _if(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    _check(source, name, args, ("boolean", "any", "any"), offset)
    return case(source, args, offset)


def _abs(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    _check(source, name, args, ("number",), offset)
    return call("abs", args, args[0].type, offset)


def _round_to_whole(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """FLOOR and CEIL: the type stays, where Spark goes to BIGINT."""
    _check(source, name, args, ("number",), offset)
    value, function = args[0], "floor" if name == "FLOOR" else "ceil"
    if value.type.is_integer:
        return value
    if value.type.root == "DECIMAL":
        result = DataType(root="DECIMAL", precision=value.type.precision, scale=0)
        return call("CAST", (call(function, args, result, offset),), result, offset)
    # from 2^53 on every double is whole, and Spark's BIGINT would overflow
    small = call("<", (call("abs", args, value.type, offset), literal("9E15", DOUBLE)), BOOLEAN, offset)
    whole = call("CAST", (call(function, args, BIGINT, offset),), value.type, offset)
    return call("CASE", (small, whole, value), value.type, offset)


def _round(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    digits = args[1] if len(args) == 2 else literal(0, INT)
    _check(source, name, args[:1], ("number",), offset)
    if len(args) > 2 or not isinstance(digits, Literal) or digits.type != INT or int(digits.text or 0) < 0:
        raise source.error("ROUND takes a number and a literal count of digits, 0 or more", offset, "write ROUND(x, 2)")
    value, places = args[0], int(digits.text or 0)
    result = value.type
    if result.root == "DECIMAL" and places < (result.scale or 0):
        whole = (result.precision or 0) - (result.scale or 0)
        result = DataType(root="DECIMAL", precision=min(whole + places + 1, 38), scale=places)
    rounded = call("round", (value, digits), result, offset)
    return call("CAST", (rounded,), result, offset) if result.root == "DECIMAL" else rounded


def _substring(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    _check(source, name, args, ("text", "integer", "integer")[: max(len(args), 2)], offset)
    for what, arg in zip(("start", "length"), args[1:], strict=False):
        least = 1 if what == "start" else 0
        if not isinstance(arg, Literal) or int(arg.text or -1) < least:
            raise source.error(
                f"the {what} of {name} must be a literal of at least {least}",
                arg.offset or offset,
                "Flink and Spark disagree on others",
            )
    return call("substring", args, STRING, offset)


def _now(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    _check(source, name, args, (), offset)
    now = call("current_timestamp", (), DataType(root="TIMESTAMP_LTZ", precision=6), offset)
    return cast(now, _LTZ3, offset)


def _today(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    _check(source, name, args, (), offset)
    now = call("current_timestamp", (), DataType(root="TIMESTAMP_LTZ", precision=6), offset)
    return call("CAST", (now,), DataType(root="DATE"), offset)


def _from_epoch(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    _check(source, name, args, ("integer", "integer"), offset)
    precision = args[1].text if isinstance(args[1], Literal) else None
    if precision not in ("0", "3"):
        raise source.error(
            f"the precision of {name} must be 0 (seconds) or 3 (milliseconds)", offset, f"write {name}(x, 3)"
        )
    function = "timestamp_seconds" if precision == "0" else "timestamp_millis"
    return call(function, args[:1], _LTZ3, offset)


def _date_format(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    _check(source, name, args, ("time", "text"), offset)
    pattern = args[1]
    if not isinstance(pattern, Literal) or not _PATTERN.fullmatch(pattern.text or "?"):
        raise source.error(
            f"the pattern of {name} must be a literal of yyyy, MM, dd, HH, mm, ss, SSS and - / : . blank",
            pattern.offset or offset,
            "such as 'yyyy-MM-dd HH:mm'",
        )
    return call("date_format", args, STRING, offset)


Builder = Callable[[Source, str, tuple[Expr, ...], int], Expr]
_BUILDERS: dict[str, Builder] = {
    "COALESCE": _coalesce,
    "IFNULL": _coalesce,
    "NULLIF": _nullif,
    "IF": _if,
    "ABS": _abs,
    "FLOOR": _round_to_whole,
    "CEIL": _round_to_whole,
    "CEILING": _round_to_whole,
    "ROUND": _round,
    "SUBSTRING": _substring,
    "SUBSTR": _substring,
    "PROCTIME": _now,
    "NOW": _now,
    "CURRENT_TIMESTAMP": _now,
    "CURRENT_DATE": _today,
    "TO_TIMESTAMP_LTZ": _from_epoch,
    "DATE_FORMAT": _date_format,
}

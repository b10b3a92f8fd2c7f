"""Numeric functions."""

from __future__ import annotations

from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.functions.arguments import Builder, Signature, check_arguments, choose, integer_of
from hintplan.planner.expressions.operands import arithmetic
from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Expr, Literal, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType

_OF_ONE_NUMBER = "acos asin atan cos cosh cot degrees exp radians sin sinh sqrt tan tanh"
SIGNATURES: dict[str, Signature] = {
    **{name.upper(): (name, ("number",), DOUBLE) for name in _OF_ONE_NUMBER.split()},
    "ATAN2": ("atan2", ("number", "number"), DOUBLE),
    "BIN": ("bin", ("integer",), STRING),
    "E": ("e", (), DOUBLE),
    "PI": ("pi", (), DOUBLE),
    "POWER": ("power", ("number", "number"), DOUBLE),
}


def _abs(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("number",), offset)
    return call("abs", args, args[0].type, offset)


def _sign(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile SIGN with the argument's type, not Spark's DOUBLE; the result is NULL if a DECIMAL type cannot hold 1."""
    check_arguments(source, name, args, ("number",), offset)
    result = args[0].type.as_nullable()
    function = "TRY_CAST" if result.root == "DECIMAL" and result.precision == result.scale else "CAST"
    return cast(call("sign", args, DOUBLE, offset), result, offset, function=function)


def _logarithm(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile logarithms: 0 gives -Infinity, and negative numbers give NaN, where Spark returns NULL.

    ``LOG(base, x)`` divides two logarithms.
    """
    check_arguments(source, name, args, ("number", "number?") if name == "LOG" else ("number",), offset)
    function = "ln" if name == "LOG" else name.lower()
    logarithms = [_defined_logarithm(function, arg, offset) for arg in reversed(args)]
    return logarithms[0] if len(logarithms) == 1 else arithmetic(source, "/", logarithms[0], logarithms[1], offset)


def _defined_logarithm(function: str, value: Expr, offset: int) -> Expr:
    zero = literal(0, INT)
    logarithm = call(function, (value,), DOUBLE, offset)
    if isinstance(value, Literal) and value.text is not None and float(value.text) > 0:
        return logarithm
    infinity, no_number = (cast(literal(text, STRING), DOUBLE, offset) for text in ("-Infinity", "NaN"))
    below = choose(call("<", (value, zero), BOOLEAN, offset), no_number, logarithm)
    return choose(call("=", (value, zero), BOOLEAN, offset), infinity, below)


def _hex(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("any",), offset)
    kind = args[0].type
    if not (kind.is_integer or kind.is_text):
        raise source.error(f"HEX takes an integer or STRING, found {kind.as_nullable()}", offset, "convert it")
    return call("hex", args, STRING, offset)


def _round_to_whole(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile FLOOR and CEIL with the type of the argument, where Spark returns BIGINT."""
    check_arguments(source, name, args, ("number",), offset)
    value, function = args[0], "floor" if name == "FLOOR" else "ceil"
    if value.type.is_integer:
        return value
    if value.type.root == "DECIMAL":
        result = DataType(root="DECIMAL", precision=value.type.precision, scale=0)
        return call("CAST", (call(function, args, result, offset),), result, offset)
    # from 2^53 every DOUBLE is a whole number, and Spark's BIGINT would overflow
    small = call("<", (call("abs", args, value.type, offset), literal("9E15", DOUBLE)), BOOLEAN, offset)
    whole = call("CAST", (call(function, args, BIGINT, offset),), value.type, offset)
    return choose(small, whole, value)


def _round(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("number", "integer?"), offset)
    digits = args[1] if len(args) == 2 else literal(0, INT)
    places = integer_of(source, "the number of digits of ROUND", digits, 0, offset)
    value, result = args[0], args[0].type
    if result.root == "DECIMAL" and places < (result.scale or 0):
        whole = (result.precision or 0) - (result.scale or 0)
        result = DataType(root="DECIMAL", precision=min(whole + places + 1, 38), scale=places)
    rounded = call("round", (value, digits), result, offset)
    return call("CAST", (rounded,), result, offset) if result.root == "DECIMAL" else rounded


BUILDERS: dict[str, Builder] = {
    "ABS": _abs,
    "CEIL": _round_to_whole,
    "CEILING": _round_to_whole,
    "FLOOR": _round_to_whole,
    "HEX": _hex,
    "LN": _logarithm,
    "LOG": _logarithm,
    "LOG10": _logarithm,
    "LOG2": _logarithm,
    "ROUND": _round,
    "SIGN": _sign,
}

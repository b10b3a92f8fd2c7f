"""Flink's scalar functions: their arguments and results, and Spark expressions with the same meaning.

A function is listed only if Flink and Spark agree on it, or if a Spark expression has Flink's results. The functions of
numbers, text and times are in :mod:`hintplan.planner.expressions.functions`; this module has the functions that choose
between values.

>>> from hintplan.planner.expressions.typed import STRING, literal
>>> compile_function_call(Source(text=""), "UPPER", (literal("a", STRING),), 0).function
'upper'
"""

from __future__ import annotations

from collections.abc import Sequence

from hintplan.planner.expressions.coercion import cast, coerce, common_data_type, common_moment
from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.functions import (
    encodings,
    json_values,
    nested,
    numbers,
    patterns,
    random,
    rounded_times,
    text,
    times,
    wall_clocks,
)
from hintplan.planner.expressions.functions.arguments import Builder, Signature, check_arguments, first_null
from hintplan.planner.expressions.functions.refused import flink_equivalent, unsupported_function
from hintplan.planner.expressions.typed import BIGINT, STRING, Expr, Literal, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType
from hintplan.plans.errors import SqlError
from hintplan.plans.text.names import nearest


def known_functions() -> tuple[str, ...]:
    """Return the sorted names of all scalar functions that a query may call, without internal names of two words."""
    called = {name for name in (*_SIGNATURES, *_BUILDERS) if " " not in name}
    return tuple(sorted({*called, *json_values.FORMS, "CAST", "TRY_CAST", "EXTRACT", "MOD"}))


def compile_function_call(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile the call ``name(args)``; raise SqlError if the function is unknown or does not accept these arguments."""
    if name in _SIGNATURES:
        spark, kinds, result = _SIGNATURES[name]
        check_arguments(source, name, args, kinds, offset)
        return call(spark, args, result, offset)
    if name in _BUILDERS:
        return _BUILDERS[name](source, name, args, offset)
    raise unknown(source, name, offset)


def unknown(source: Source, name: str, offset: int, others: Sequence[str] = ()) -> SqlError:
    """Return the error for an unknown function; ``others`` are the functions that the user declared."""
    refused = unsupported_function(name)
    if refused is not None:
        return source.error(refused[0], offset, refused[1])
    close = nearest(name, (*others, *known_functions()))
    advice = f"did you mean '{close}'?" if close else "docs/functions/index.md lists the supported ones"
    advice = flink_equivalent(name) or advice
    return source.error(f"function {name.upper()} is not supported", offset, advice)


def case_expression(source: Source, parts: tuple[Expr, ...], offset: int) -> Expr:
    """Compile CASE from ``parts``: condition, value, condition, value, ..., default."""
    values = (*parts[1::2], parts[-1])
    result = _common(source, "CASE", values, offset)
    converted = tuple(p if i % 2 == 0 and i != len(parts) - 1 else _branch(p, result) for i, p in enumerate(parts))
    return call("CASE", converted, result, offset)


def _common(source: Source, name: str, values: tuple[Expr, ...], offset: int) -> DataType:
    common = common_data_type([v.type for v in values])
    if common is None and name in _MOMENTS_MEET:
        common = common_moment([v.type for v in values])
    if common is None:
        types = ", ".join(dict.fromkeys(str(v.type.as_nullable()) for v in values))
        raise source.error(f"the values of {name} have no common type: {types}", offset, "convert them with CAST")
    return common


def _branch(value: Expr, result: DataType) -> Expr:
    if value.type != result and value.type.is_integer and result.is_integer and not isinstance(value, Literal):
        return cast(value, result, value.offset)
    if isinstance(value, Literal) and value.type.is_integer and result == BIGINT:
        return cast(value, result, value.offset)
    if value.type.root == "DECIMAL" and result.root == "DOUBLE":
        return cast(value, result, value.offset)
    return coerce(value, result)


def _coalesce(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    if not args or (name == "IFNULL" and len(args) != 2):
        raise source.error(
            f"{name} takes {'two' if name == 'IFNULL' else 'at least one'} arguments", offset, "add them"
        )
    result = _common(source, name, args, offset)
    return call("coalesce", tuple(_branch(a, result) for a in args), result, offset)


def _nullif(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("any", "any"), offset)
    _common(source, name, args, offset)
    same = compared("=", args, offset)
    return call("CASE", (same, literal(None, args[0].type), args[0]), args[0].type, offset)


def _if(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("boolean", "any", "any"), offset)
    return case_expression(source, args, offset)


def _extreme(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile GREATEST and LEAST: NULL if any argument is NULL, whereas Spark ignores NULLs."""
    check_arguments(source, name, args, ("any*",), offset)
    result = _common(source, name, args, offset)
    if result.root not in _ORDERED:
        raise source.error(f"{name} does not take {result}", offset, "convert the arguments with CAST")
    values = tuple(_branch(a, result) for a in args)
    if len(values) == 1:
        return values[0]
    return first_null(values, call(name.lower(), values, result, offset))


def _current_database(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, (), offset)
    return literal("default_database", STRING)


_MOMENTS_MEET = ("COALESCE", "IFNULL", "GREATEST", "LEAST")
"""Functions that convert TIMESTAMP and TIMESTAMP_LTZ to TIMESTAMP_LTZ. In CASE, Flink's type depends on order and
precision.
"""
_ORDERED = (
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "CHAR", "VARCHAR", "STRING"),
    *("BOOLEAN", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"),
)
_SIGNATURES: dict[str, Signature] = {
    **numbers.SIGNATURES,
    **text.SIGNATURES,
    **times.SIGNATURES,
}
_BUILDERS: dict[str, Builder] = {
    **nested.BUILDERS,
    **numbers.BUILDERS,
    **patterns.BUILDERS,
    **random.BUILDERS,
    **text.BUILDERS,
    **times.BUILDERS,
    **encodings.BUILDERS,
    **json_values.BUILDERS,
    **rounded_times.BUILDERS,
    **wall_clocks.BUILDERS,
    "COALESCE": _coalesce,
    "CURRENT_DATABASE": _current_database,
    "GREATEST": _extreme,
    "IF": _if,
    "IFNULL": _coalesce,
    "LEAST": _extreme,
    "NULLIF": _nullif,
}

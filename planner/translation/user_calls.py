"""Calls of user-defined functions: resolves the function and checks the arguments.

Arguments are converted where Flink converts them implicitly; any other conversion needs a CAST.
:mod:`hintplan.planner.passes.split_calls` turns calls into operators.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hintplan.planner.context import FunctionEntry
from hintplan.planner.expressions.coercion import cast, implicitly_assignable
from hintplan.planner.expressions.scalars import known_functions
from hintplan.planner.expressions.typed import USER, Call, Expr, Literal, call
from hintplan.planner.syntax.problems import FollowUp
from hintplan.planner.syntax.source import Source
from hintplan.plans.text.counts import count
from hintplan.plans.text.names import did_you_mean


def find_function(
    source: Source, functions: Mapping[str, FunctionEntry], name: str, offset: int, failed: Collection[str]
) -> FunctionEntry:
    """Return the table function ``name``; raise SqlError for another function, FollowUp for one in ``failed``."""
    entry = functions.get(name.lower())
    if entry is None and name.lower() in failed:
        raise FollowUp
    if entry is None and name.upper() in known_functions():
        message = f"{name.upper()} returns one value, and TABLE takes a function that returns rows"
        raise source.error(message, offset, "call it in SELECT or WHERE")
    if entry is None:
        tables = [other for other, function in functions.items() if not (function.is_scalar or function.is_aggregate)]
        advice = did_you_mean(name, tables, what="declared table functions")
        if not tables:
            advice = f"declare it: CREATE FUNCTION {name} AS 'module.Class' LANGUAGE PYTHON"
        raise source.error(f"unknown table function '{name}'", offset, advice)
    if entry.is_aggregate:
        message = f"'{name}' is an aggregate function, and TABLE takes a function that returns rows"
        raise source.error(message, offset, f"call it in SELECT or HAVING: {name}(...)")
    if entry.is_scalar:
        message = f"'{name}' returns one value, and TABLE takes a function that returns rows"
        raise source.error(message, offset, f"call it in SELECT or WHERE: {name}(...)")
    return entry


def scalar_call(source: Source, entry: FunctionEntry, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Return the call of a scalar function; raise SqlError if it returns rows, or does not accept these arguments."""
    if not entry.is_scalar:
        advice = f"call it in FROM: ..., LATERAL TABLE({name}(...)) AS T({', '.join(_columns(entry))})"
        raise source.error(f"'{name}' returns rows, and is allowed in FROM only", offset, advice)
    return call(USER + name.lower(), fitted_arguments(source, entry, name, args, offset), entry.columns[0], offset)


def _columns(entry: FunctionEntry) -> list[str]:
    return [column.name for column in entry.function.output]


def fitted_arguments(
    source: Source, entry: FunctionEntry, name: str, args: tuple[Expr, ...], offset: int
) -> tuple[Expr, ...]:
    """Return ``args`` in the declared types; raise SqlError for a wrong type or a wrong number of arguments.

    The error for a type points at the argument.
    """
    wanted = entry.arguments
    if len(args) != len(wanted):
        arguments = count(len(wanted), "argument") if wanted else "no arguments"
        listed = f" ({', '.join(map(str, wanted))})" if wanted else ""
        raise source.error(f"'{name}' takes {arguments}{listed}, found {len(args)}", offset, "check the call")
    fitted: list[Expr] = []
    for i, (arg, must) in enumerate(zip(args, wanted, strict=True), 1):
        if not implicitly_assignable(arg.type, must):
            raise source.error(
                f"argument {i} of '{name}' must be {must}, found {arg.type.as_nullable()}",
                _place(arg) or offset,
                f"convert it: CAST(... AS {must})",
            )
        # A literal stays as written; the runtime converts it to the declared type.
        fitted.append(arg if isinstance(arg, Literal) else cast(arg, must, arg.offset))
    return tuple(fitted)


def _place(arg: Expr) -> int:
    """Return the first offset in the argument; the offset of an operator itself is after its left side."""
    if isinstance(arg, Call):
        places = [place for a in arg.args if (place := _place(a))]
        return min([arg.offset, *places]) if arg.offset else min(places, default=0)
    return arg.offset

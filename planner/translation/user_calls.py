"""Calls of user-defined functions: which function is meant, and whether it takes these arguments.

Arguments are converted where Flink does so without asking; anything else needs a CAST. How a call becomes an operator
is the affair of :mod:`hintplan.planner.passes.split_calls`.
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
    """The function that ``name`` means in FROM; SqlError if it returns none, FollowUp if its declaration ``failed``."""
    entry = functions.get(name.lower())
    if entry is None and name.lower() in failed:
        raise FollowUp
    if entry is None and name.upper() in known_functions():
        message = f"{name.upper()} returns one value, and TABLE takes a function that returns rows"
        raise source.error(message, offset, "call it in SELECT or WHERE")
    if entry is None:
        tables = [other for other, found in functions.items() if not (found.is_scalar or found.is_aggregate)]
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
    """The call of a scalar function; SqlError if it returns rows, or does not take these arguments."""
    if not entry.is_scalar:
        advice = f"call it in FROM: ..., LATERAL TABLE({name}(...)) AS T({', '.join(_columns(entry))})"
        raise source.error(f"'{name}' returns rows, and stands in FROM only", offset, advice)
    return call(USER + name.lower(), fitted_arguments(source, entry, name, args, offset), entry.columns[0], offset)


def _columns(entry: FunctionEntry) -> list[str]:
    return [column.name for column in entry.function.output]


def fitted_arguments(
    source: Source, entry: FunctionEntry, name: str, args: tuple[Expr, ...], offset: int
) -> tuple[Expr, ...]:
    """``args`` in the declared types; SqlError, at the argument, for too many, too few, or one of another type."""
    wanted = entry.arguments
    if len(args) != len(wanted):
        arguments = count(len(wanted), "argument") if wanted else "no arguments"
        listed = f" ({', '.join(map(str, wanted))})" if wanted else ""
        raise source.error(f"'{name}' takes {arguments}{listed}, found {len(args)}", offset, "check the call")
    found: list[Expr] = []
    for i, (arg, must) in enumerate(zip(args, wanted, strict=True), 1):
        if not implicitly_assignable(arg.type, must):
            raise source.error(
                f"argument {i} of '{name}' must be {must}, found {arg.type.as_nullable()}",
                _place(arg) or offset,
                f"convert it: CAST(... AS {must})",
            )
        # A literal goes to the function as it is written; the run gives it the declared type.
        found.append(arg if isinstance(arg, Literal) else cast(arg, must, arg.offset))
    return tuple(found)


def _place(arg: Expr) -> int:
    """The first place in the argument: that of an operator is its own, behind its left side."""
    if isinstance(arg, Call):
        places = [place for a in arg.args if (place := _place(a))]
        return min([arg.offset, *places]) if arg.offset else min(places, default=0)
    return arg.offset

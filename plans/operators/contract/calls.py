"""Calls of aggregate functions: their checks, their description, and the reason why they need every row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hintplan.plans.declarations.computations import BUILT_IN, COLLECTIONS, ORDERED, VARIANCES, AggregateCall
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.declarations.tables import Function
from hintplan.plans.declarations.types import DataType
from hintplan.plans.errors import Diagnostic
from hintplan.plans.operators.contract.columns import check_argument, check_known, parse, same_type
from hintplan.plans.operators.contract.declared import Declared
from hintplan.plans.text.names import did_you_mean

Calls = Sequence[AggregateCall]


def users_functions(calls: Calls) -> tuple[str, ...]:
    """Return the user's functions that are called, each once."""
    return tuple(dict.fromkeys(call.function for call in calls if call.is_users))


def depend_on_order(calls: Calls) -> bool:
    """Return True if a result depends on the order of rows."""
    return any(call.function in ORDERED or call.is_users for call in calls)


def rows_taken(calls: Calls, plan: Declared) -> RowKinds | None:
    """Return insert-only if a called function cannot retract a row, or None if the calls take any row kinds."""
    called = (plan.functions.get(name) for name in users_functions(calls))
    return INSERT_ONLY if any(function is not None and not function.retracts for function in called) else None


def check_calls(calls: Calls, types: Mapping[str, str], plan: Declared, path: str) -> Iterator[Diagnostic]:
    """Yield the problems of the calls over columns of these types; ``path`` is the operator's path."""
    for call in calls:
        here = f"{path}.aggregates.{call.name}"
        yield from (_check_users_call(call, types, plan, here) if call.is_users else _check_call(call, types, here))


def needs_every_row(
    calls: Calls, *, insert_only: bool, functions: Mapping[str, Function], values_merge: bool = False
) -> str | None:
    """Return the reason why partial sums cannot replace the rows of the calls, or None if they can.

    Values that must be kept one by one cannot be summed up beforehand: with DISTINCT, and where rows may be retracted
    for MIN, MAX and functions that depend on the order of rows. A user's function must have ``merge``. Its input must
    be insert-only, because a row can only be retracted from the accumulator to which it was added. ``values_merge`` is
    true if the values of DISTINCT are a part of the partial sums.
    """
    for call in calls:
        extreme = call.function in ("MIN", "MAX")
        if call.distinct and not extreme and not values_merge:
            return f"{call.function} DISTINCT keeps every value"
        if call.is_users and not insert_only:
            return f"{call.function} takes rows of a changing input back from what it has of them"
        if call.is_users and not (call.function in functions and functions[call.function].merges):
            return f"{call.function} has no merge"
        if call.function in VARIANCES and not insert_only:
            return f"{call.function} takes values of a changing input from what it is of all before them"
        if (extreme or call.function in ORDERED) and not insert_only:
            return f"{call.function} of a changing input keeps every value"
    return None


def describe_calls(calls: Calls) -> str:
    """Return the calls in words of SQL."""
    return ", ".join(_call(call) for call in calls)


def _call(call: AggregateCall) -> str:
    arguments = ", ".join(call.arguments) if call.is_users else call.argument if call.argument is not None else "*"
    argument = ("DISTINCT " if call.distinct else "") + arguments
    if call.separator is not None:
        argument += f", {call.separator!r}"
    return f"{call.function}({argument})" + (f" FILTER ({call.filter})" if call.filter is not None else "")


def _check_users_call(call: AggregateCall, types: Mapping[str, str], plan: Declared, path: str) -> Iterator[Diagnostic]:
    function = plan.functions.get(call.function)
    if function is None or function.kind != "aggregate":
        callable_names = (
            *BUILT_IN,
            *(name for name, declared in plan.functions.items() if declared.kind == "aggregate"),
        )
        hint = did_you_mean(call.function, callable_names, what="aggregate functions")
        message = f"there is no aggregate function '{call.function}'"
        yield Diagnostic(message=message, path=f"{path}.function", hint=hint)
        return
    if call.argument is not None or call.separator is not None:
        part = "argument" if call.argument is not None else "separator"
        message = f"'{call.function}' is a function of the user's, and has no {part}"
        yield Diagnostic(message=message, path=f"{path}.{part}", hint="its columns belong in 'arguments'")
    wanted = function.arguments
    if len(call.arguments) != len(wanted):
        message = f"'{call.function}' takes {len(wanted)} arguments ({', '.join(wanted)}), found {len(call.arguments)}"
        yield Diagnostic(message=message, path=f"{path}.arguments")
        return
    if call.distinct and not wanted:
        yield Diagnostic(message="DISTINCT needs an argument", path=f"{path}.distinct")
    for index, (column, declared_type) in enumerate(zip(call.arguments, wanted, strict=True)):
        yield from check_argument(call.function, column, declared_type, types, f"{path}.arguments[{index}]")
    yield from _check_filter(call, types, path)
    for returned in function.output[:1]:
        if not same_type(call.type, returned.type):
            message = f"'{call.function}' returns {returned.type}, found {call.type}"
            yield Diagnostic(message=message, path=f"{path}.type")


def _check_filter(call: AggregateCall, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    if call.filter is None:
        return
    unknown = list(check_known([call.filter], types, path, "column of the input"))
    yield from unknown
    if not unknown and parse(types[call.filter]).root != "BOOLEAN":
        message = f"expected a BOOLEAN column, but '{call.filter}' is {types[call.filter]}"
        yield Diagnostic(message=message, path=f"{path}.filter")


def _check_call(call: AggregateCall, types: Mapping[str, str], path: str) -> Iterator[Diagnostic]:
    if call.arguments:
        message = f"{call.function} has one argument, which belongs in 'argument'"
        yield Diagnostic(message=message, path=f"{path}.arguments")
    yield from _check_filter(call, types, path)
    columns = [call.argument] if call.argument is not None else []
    unknown = list(check_known(columns, types, path, "column of the input"))
    yield from unknown
    if call.argument is None and (call.function != "COUNT" or call.distinct):
        yield Diagnostic(message=f"{call.function} needs an argument", path=path)
    if unknown:
        return
    argument = parse(types[call.argument]) if call.argument is not None else None
    result = parse(call.type)
    if call.function == "COUNT" and result.root != "BIGINT":
        yield Diagnostic(message=f"COUNT is BIGINT, found {call.type}", path=f"{path}.type")
    if call.function in ("SUM", "AVG") and argument is not None and not (argument.is_numeric and result.is_numeric):
        message = f"{call.function} needs numbers, but '{call.argument}' is {argument} and the result {result}"
        yield Diagnostic(message=message, path=path)
    if (call.function == "LISTAGG") != (call.separator is not None):
        message = "LISTAGG needs a separator" if call.function == "LISTAGG" else "only LISTAGG has a separator"
        yield Diagnostic(message=message, path=f"{path}.separator")
    if call.function == "LISTAGG" and not (argument is not None and argument.is_text and result.is_text):
        yield Diagnostic(message=f"LISTAGG joins texts, found {argument} and {call.type}", path=f"{path}.type")
    if call.function in VARIANCES and (argument is None or not argument.is_numeric or result.root != "DOUBLE"):
        message = f"{call.function} makes DOUBLE of numbers, found {argument} and {call.type}"
        yield Diagnostic(message=message, path=f"{path}.type")
    if call.function in COLLECTIONS and argument is not None:
        wanted = DataType(root=COLLECTIONS[call.function], children=(argument.as_nullable(),))
        if result.as_nullable() != wanted:
            message = f"{call.function} makes {wanted} of {argument}, found {call.type}"
            yield Diagnostic(message=message, path=f"{path}.type")
    if call.function == "COLLECT" and argument is not None and argument.contains_entries:
        message = f"COLLECT does not take {argument.as_nullable()}: a MULTISET has no elements with a MAP or MULTISET"
        yield Diagnostic(message=message, path=f"{path}.argument", hint="aggregate it with ARRAY_AGG")
    of_argument = ("MIN", "MAX", "FIRST_VALUE", "LAST_VALUE")
    if call.function in of_argument and argument is not None and argument.as_nullable() != result.as_nullable():
        message = f"{call.function} has the type of its argument, {argument}, found {call.type}"
        yield Diagnostic(message=message, path=f"{path}.type")

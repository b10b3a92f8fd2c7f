"""RAND, RAND_INTEGER and UUID, whose calls get an operator of their own, like calls of user-defined functions.

>>> random_call(Source(text=""), "UUID", (), 0).function
'user:UUID'
"""

from __future__ import annotations

from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.functions.arguments import Builder, integer_or_none
from hintplan.planner.expressions.typed import INT, NULL, USER, Call, Expr, Literal, call, referenced_fields
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.built_in import FUNCTIONS_BUILT_IN
from hintplan.plans.declarations.types import parse_type

_TAKEN = {"RAND": (0, 1), "RAND_INTEGER": (1, 2), "UUID": (0, 0)}
_SMALLER = ("TINYINT", "SMALLINT", "INT")


def random_call(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Call:
    """Compile the call; raise SqlError for arguments that Flink refuses, and for a bound that leaves no value."""
    least, most = _TAKEN[name]
    if not least <= len(args) <= most:
        wanted = "no arguments" if not most else f"{least} to {most} arguments"
        raise source.error(f"{name} takes {wanted}, found {len(args)}", offset, "check the call")
    for i, arg in enumerate(args, 1):
        if arg.type != NULL and arg.type.root not in _SMALLER:
            message = f"argument {i} of {name} must be INT, found {arg.type.as_nullable()}"
            raise source.error(message, arg.offset or offset, "convert it: CAST(... AS INT)")
    bound = integer_or_none(args[-1]) if name == "RAND_INTEGER" else None
    if bound is not None and bound <= 0:
        message = f"RAND_INTEGER takes a bound above 0, found {bound}"
        raise source.error(message, args[-1].offset or offset, "write a number from 1 on")
    function = name
    if most and len(args) == most:
        function = f"{name}_{'OF_SEED' if referenced_fields(args[0]) else 'SEEDED'}"
    result = parse_type(FUNCTIONS_BUILT_IN[function].output[0].type)
    arguments = tuple(arg if isinstance(arg, Literal) else cast(arg, INT, arg.offset) for arg in args)
    return call(USER + function, arguments, result, offset)


BUILDERS: dict[str, Builder] = dict.fromkeys(_TAKEN, random_call)

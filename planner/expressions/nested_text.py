"""ROW and ARRAY as text, as Flink's CAST writes them: ``(1, x, NULL)`` and ``[1, NULL]``.

Each part is text as a cast of its own would write it. Those of an ARRAY are converted by a cast of Spark's for all, so
that they must be of a type that Spark writes as Flink does; no function writes those of a MAP.

>>> from hintplan.planner.expressions.coercion import cast
>>> from hintplan.planner.expressions.spark_text import spark_text
>>> from hintplan.planner.expressions.typed import Field, Ref
>>> from hintplan.plans.declarations.types import parse_type
>>> n = Ref(field=Field(id=1, name="n", type=parse_type("ARRAY<INT>")))
>>> spark_text(text_of_nested(n, 0, cast), {1: "n"})
"concat('[', array_join(CAST(n AS ARRAY<STRING>), ', ', 'NULL'), ']')"
"""

from __future__ import annotations

from collections.abc import Callable

from hintplan.planner.expressions.nested_parts import fields, is_constructor
from hintplan.planner.expressions.typed import BOOLEAN, STRING, Expr, call, literal
from hintplan.plans.declarations.types import DataType

_TEXTS = DataType(root="ARRAY", children=(STRING,))


def text_of_nested(value: Expr, offset: int, cast: Callable[[Expr, DataType, int], Expr]) -> Expr:
    """``value`` of type ROW or ARRAY as text; ``cast`` is applied to its parts."""
    separator, nothing = literal(", ", STRING), literal("NULL", STRING)
    if value.type.root == "ARRAY":
        parts = value if value.type.children[0] == STRING else cast(value, _TEXTS, offset)
        return _between("[", (call("array_join", (parts, separator, nothing), STRING, offset),), "]", offset)
    shown: list[Expr] = []
    for part in fields(value, offset):
        shown += [separator] if shown else []
        shown.append(call("coalesce", (cast(part, STRING, offset), nothing), STRING, offset))
    found = _between("(", tuple(shown), ")", offset)
    if is_constructor(value):
        return found
    absent = call("IS NULL", (value,), BOOLEAN, offset)
    return call("CASE", (absent, literal(None, STRING), found), STRING, offset)


def _between(first: str, parts: tuple[Expr, ...], last: str, offset: int) -> Expr:
    return call("concat", (literal(first, STRING), *parts, literal(last, STRING)), STRING, offset)

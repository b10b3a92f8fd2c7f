"""ROW and ARRAY as text, in the form of Flink's CAST: ``(1, x, NULL)`` and ``[1, NULL]``.

Each field of a ROW is cast to text on its own. One Spark cast converts all elements of an ARRAY, so they must have a
type that Spark writes as Flink does. No function of Spark writes a MAP in this form.

>>> from hintplan.planner.expressions.coercion import cast
>>> from hintplan.planner.expressions.spark_text import spark_text
>>> from hintplan.planner.expressions.typed import Field, FieldRef
>>> from hintplan.plans.declarations.types import parse_type
>>> n = FieldRef(field=Field(id=1, name="n", type=parse_type("ARRAY<INT>")))
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
    """Return ``value``, a ROW or ARRAY, as text; its parts are converted by ``cast``."""
    separator, nothing = literal(", ", STRING), literal("NULL", STRING)
    if value.type.root == "ARRAY":
        parts = value if value.type.children[0] == STRING else cast(value, _TEXTS, offset)
        return _between("[", (call("array_join", (parts, separator, nothing), STRING, offset),), "]", offset)
    shown: list[Expr] = []
    for part in fields(value, offset):
        shown += [separator] if shown else []
        shown.append(call("coalesce", (cast(part, STRING, offset), nothing), STRING, offset))
    text = _between("(", tuple(shown), ")", offset)
    if is_constructor(value):
        return text
    absent = call("IS NULL", (value,), BOOLEAN, offset)
    return call("CASE", (absent, literal(None, STRING), text), STRING, offset)


def _between(first: str, parts: tuple[Expr, ...], last: str, offset: int) -> Expr:
    return call("concat", (literal(first, STRING), *parts, literal(last, STRING)), STRING, offset)

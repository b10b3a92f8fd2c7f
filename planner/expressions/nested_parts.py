"""The parts of ROW, ARRAY and MAP, and casts of these types, without the rules for common types.

A ROW is cast by position, and gets the field names of the new type. As text, a ROW or ARRAY has the form of Flink's
CAST: ``(1, x, NULL)`` and ``[1, NULL]``. This module knows no casts of scalars.

>>> from hintplan.planner.expressions.typed import BIGINT, INT, literal
>>> from hintplan.plans.declarations.types import parse_type
>>> one = call("array", (literal(1, INT),), parse_type("ARRAY<INT>"), 0)
>>> cast_nested(one, parse_type("ARRAY<BIGINT>"), 0, lambda value, kind, _: literal(value.text, kind)).args[0].type.root
'BIGINT'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hintplan.planner.expressions.typed import BOOLEAN, FIELD, STRING, Call, Expr, Literal, call, literal
from hintplan.plans.declarations.types import DataType

_CONSTRUCTORS = {"named_struct": "ROW", "array": "ARRAY", "map": "MAP"}


def is_constructor(value: Expr) -> bool:
    """Return True if ``value`` is an expression that constructs a ROW, ARRAY or MAP."""
    return isinstance(value, Call) and _CONSTRUCTORS.get(value.function) == value.type.root


def is_null(value: Expr) -> bool:
    """Return True if ``value`` is the literal NULL."""
    return isinstance(value, Literal) and value.text is None


def parts_with_types(constructor: Expr, target: DataType) -> Iterator[tuple[Expr, DataType]]:
    """Yield the values of a constructor in order, each with its type in ``target``."""
    assert isinstance(constructor, Call)
    values = constructor.args[1::2] if target.root == "ROW" else constructor.args
    for place, value in enumerate(values):
        yield value, target.children[place if target.root == "ROW" else place % len(target.children)]


def cast_nested(value: Expr, target: DataType, offset: int, cast: Callable[[Expr, DataType, int], Expr]) -> Expr:
    """Cast ``value``, which is not a literal, to ``target``; the parts of a constructor are converted by ``cast``."""
    if not is_constructor(value):
        return call("CAST", (value,), target, offset)
    parts = tuple(cast(part, kind, part.offset or offset) for part, kind in parts_with_types(value, target))
    assert isinstance(value, Call)
    return row_of(target, parts, offset) if target.root == "ROW" else call(value.function, parts, target, offset)


def row_of(kind: DataType, values: tuple[Expr, ...], offset: int) -> Call:
    """Return a ROW that is constructed from ``values``."""
    named = ((literal(name, STRING), value) for name, value in zip(kind.names, values, strict=True))
    return call("named_struct", tuple(part for pair in named for part in pair), kind, offset)


def field_at(whole: Expr, place: int, offset: int) -> Expr:
    """Return the field of a ROW at ``place``, counted from 0; for a constructor, return the value itself."""
    if is_constructor(whole) and isinstance(whole, Call):
        return whole.args[2 * place + 1]
    return call(FIELD, (whole, literal(whole.type.names[place], STRING)), whole.type.children[place], offset)


def fields(whole: Expr, offset: int) -> tuple[Expr, ...]:
    """Return all fields of a ROW."""
    return tuple(field_at(whole, place, offset) for place in range(len(whole.type.children)))


_TEXTS = DataType(root="ARRAY", children=(STRING,))


def text_of_nested(value: Expr, offset: int, cast: Callable[[Expr, DataType, int], Expr]) -> Expr:
    """Return ``value``, a ROW or ARRAY, as text; its parts are converted by ``cast``.

    Each field of a ROW is cast on its own. One Spark cast converts all elements of an ARRAY, so they must have a type
    that Spark writes as Flink does. No function of Spark writes a MAP in this form.

    >>> from hintplan.planner.expressions.coercion import cast
    >>> from hintplan.planner.expressions.spark_text import to_spark_sql
    >>> from hintplan.planner.expressions.typed import Field, FieldRef
    >>> from hintplan.plans.declarations.types import parse_type
    >>> n = FieldRef(field=Field(id=1, name="n", type=parse_type("ARRAY<INT>")))
    >>> to_spark_sql(text_of_nested(n, 0, cast), {1: "n"})
    "concat('[', array_join(CAST(n AS ARRAY<STRING>), ', ', 'NULL'), ']')"
    """
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

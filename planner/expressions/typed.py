"""Typed expressions of the planner: the computations of a query, after names and types are resolved.

An expression refers to columns by :class:`Field`, which is unique within a compilation, so operators can be moved and
merged without renaming. Types are Flink's. Two expressions are equal if they compute the same value; their offsets in
the SQL text do not matter. :mod:`hintplan.planner.expressions.spark_text` prints them as Spark SQL.

>>> x = FieldRef(field=Field(id=1, name="x", type=BIGINT))
>>> [f.name for f in referenced_fields(call(">", (x, literal(1, INT)), BOOLEAN, 0))]
['x']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as attribute

from hintplan.plans.declarations.built_in import DRAWN
from hintplan.plans.declarations.types import DataType

BOOLEAN = DataType(root="BOOLEAN")
INT = DataType(root="INT")
BIGINT = DataType(root="BIGINT")
DOUBLE = DataType(root="DOUBLE")
STRING = DataType(root="STRING")
NULL = DataType(root="NULL")
"""The type of a NULL literal before its context gives it one; never leaves the planner."""

USER = "user:"
"""The prefix of a user-defined function's name in a :class:`Call`."""

FIELD, VALUE = "field of", "value at"
"""Functions of a :class:`Call` that read the field of a ROW, by a literal name, and the value of a key in a MAP."""

NONDETERMINISTIC = frozenset(("current_timestamp", *(USER + name for name in DRAWN)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column of an operator's output; ``name`` is shown to users, and is empty for a hidden helper column."""

    id: int
    name: str = attribute(compare=False)
    type: DataType = attribute(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRef:
    """The value of a column."""

    field: Field
    offset: int = attribute(default=0, compare=False)

    @property
    def type(self) -> DataType:
        """Return the nullable type of the column."""
        return self.field.type.as_nullable()


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A constant: ``text`` is its value without quotes, or None for NULL."""

    text: str | None
    type: DataType
    offset: int = attribute(default=0, compare=False)


UNKNOWN = Literal(text=None, type=NULL)
"""A placeholder for an expression with an error, compared by identity; never leaves a statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of an operator or a Spark function with ``args``. ``CAST`` and ``TRY_CAST`` convert to ``type``.

    A user-defined scalar function has the name ``user:name`` until :mod:`hintplan.planner.passes.split_calls` gives the
    call its own operator.
    """

    function: str
    args: tuple[Expr, ...]
    type: DataType
    offset: int = attribute(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCallExpr:
    """A call of an aggregate function in a SELECT list or HAVING, before grouping moves it out of the expression.

    ``function`` is a built-in function, or a user-defined function in lower case. COUNT(*) has no ``arguments``.
    """

    function: str
    arguments: tuple[Expr, ...]
    distinct: bool
    filter: Expr | None
    separator: str | None = None
    type: DataType
    offset: int = attribute(default=0, compare=False)


Expr = FieldRef | Literal | Call | AggregateCallExpr


def call(function: str, args: tuple[Expr, ...], data_type: DataType, offset: int) -> Call:
    """Return a call whose type is nullable."""
    return Call(function=function, args=args, type=data_type.as_nullable(), offset=offset)


def literal(value: int | str | None, data_type: DataType, offset: int = 0) -> Literal:
    """Return a constant with the text of ``value``, or NULL for None."""
    return Literal(text=None if value is None else str(value), type=data_type, offset=offset)


def children(expression: Expr) -> tuple[Expr, ...]:
    """Return the direct sub-expressions."""
    if isinstance(expression, Call):
        return expression.args
    if isinstance(expression, AggregateCallExpr):
        return (*expression.arguments, *([] if expression.filter is None else [expression.filter]))
    return ()


def walk(expression: Expr) -> Iterator[Expr]:
    """Yield the expression and everything below it, outermost first."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def replace_outermost(expression: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Replace every outermost sub-expression for which ``change`` returns an expression."""
    changed = change(expression)
    if changed is not None:
        return changed
    if isinstance(expression, Call):
        return replace(expression, args=tuple(replace_outermost(a, change) for a in expression.args))
    if isinstance(expression, AggregateCallExpr):
        arguments = tuple(replace_outermost(a, change) for a in expression.arguments)
        condition = None if expression.filter is None else replace_outermost(expression.filter, change)
        return replace(expression, arguments=arguments, filter=condition)
    return expression


def substitute(expression: Expr, values: Mapping[int, Expr]) -> Expr:
    """Replace references to the fields whose ids are in ``values``."""
    return replace_outermost(expression, lambda e: values.get(e.field.id) if isinstance(e, FieldRef) else None)


def referenced_fields(expression: Expr) -> tuple[Field, ...]:
    """Return the fields that the expression reads, once each, in order of appearance."""
    return tuple(dict.fromkeys(e.field for e in walk(expression) if isinstance(e, FieldRef)))


def factored_conjuncts(expression: Expr | None) -> tuple[Expr, ...]:
    """Return the parts of a condition that must all be true; factor out parts that all operands of an OR share."""
    if expression is None:
        return ()
    if isinstance(expression, Call) and expression.function == "AND":
        return tuple(part for arg in expression.args for part in factored_conjuncts(arg))
    if isinstance(expression, Call) and expression.function == "OR":
        return _factored(expression)
    return (expression,)


def _factored(expression: Call) -> tuple[Expr, ...]:
    """Return ``a`` and ``b OR c`` for ``(a AND b) OR (a AND c)``."""
    branches = [factored_conjuncts(each) for each in _alternatives(expression)]
    common = tuple(part for part in branches[0] if all(part in branch for branch in branches[1:]))
    if not common:
        return (expression,)
    remainders = [conjunction(tuple(part for part in branch if part not in common)) for branch in branches]
    remaining: Expr | None = None
    for part in remainders:
        if part is None:  # this branch consists of the common parts only
            return common
        remaining = part if remaining is None else call("OR", (remaining, part), BOOLEAN, expression.offset)
    return common if remaining is None else (*common, remaining)


def _alternatives(expression: Expr) -> Iterator[Expr]:
    if isinstance(expression, Call) and expression.function == "OR":
        for arg in expression.args:
            yield from _alternatives(arg)
    else:
        yield expression


def conjunction(parts: tuple[Expr, ...]) -> Expr | None:
    """Combine conditions by AND; return None if there are none."""
    combined: Expr | None = None
    for part in parts:
        combined = part if combined is None else call("AND", (combined, part), BOOLEAN, part.offset)
    return combined


def is_deterministic(expression: Expr) -> bool:
    """Return True if the expression gives the same value each time it is computed from the same row."""
    return not any(isinstance(e, Call) and e.function in NONDETERMINISTIC for e in walk(expression))


def is_drawn(expression: Expr) -> bool:
    """Return True if the expression itself is a call that returns a random value."""
    return isinstance(expression, Call) and expression.function.removeprefix(USER) in DRAWN


def is_user_call(expression: Expr) -> bool:
    """Return True if the expression itself calls a user-defined function, or a built-in function that runs like one."""
    return isinstance(expression, Call) and expression.function.startswith(USER)


def calls_user_code(expression: Expr) -> bool:
    """Return True if a user-defined function is called anywhere in the expression."""
    return any(is_user_call(e) for e in walk(expression))


def function_name(expression: Call) -> str:
    """Return the function of a call as messages name it."""
    return expression.function.removeprefix(USER)


def node_count(expression: Expr) -> int:
    """Return the number of nodes."""
    return sum(1 for _ in walk(expression))

"""Splits the condition of a join: the part that the join evaluates, and the part that calcs below its inputs compute.

A join evaluates comparisons, CASE and arithmetic itself, on pairs of rows. Any other expression over one side becomes a
column of that side. An expression that fails for some rows, such as CAST of a text, must stay behind its guards: if a
CASE, AND or OR before it makes it unnecessary, the column is NULL. If the guards depend on both sides, the join
computes the expression.

>>> from hintplan.planner.expressions.typed import BIGINT, STRING, Field
>>> may_fail(call("CAST", (FieldRef(field=Field(id=1, name="s", type=STRING)),), BIGINT, 0))
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import (
    BOOLEAN,
    Call,
    Expr,
    Field,
    FieldRef,
    Literal,
    call,
    calls_user_code,
    conjunction,
    is_deterministic,
    literal,
    referenced_fields,
    walk,
)
from hintplan.planner.relations import Item, LogicalCalc, Relation, identity
from hintplan.plans.declarations.types import DataType

_SIMPLE = frozenset(
    (
        "AND",
        "OR",
        "NOT",
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "IS NULL",
        "IS NOT NULL",
        "BETWEEN",
        "IN",
        "CASE",
        "coalesce",
        "LIKE",
    )
)
_ARITHMETIC = frozenset(("+", "-", "*", "div", "NEGATE", "abs"))
_DIVISIONS = frozenset(("div", "/", "%"))


class Guard(NamedTuple):
    """A condition, never NULL, that must be true before an expression is computed.

    ``binding``: SQL guarantees this order of evaluation, as for CASE and COALESCE. For AND and OR it is only usual.
    """

    condition: Expr
    binding: bool


Guards = tuple[Guard, ...]


class Side:
    """One input of a join, and the columns that a calc above it computes for the join."""

    def __init__(self, context: Context, relation: Relation) -> None:
        self.context = context
        self.relation = relation
        self.ids = {f.id for f in relation.fields}
        self.computed: list[Item] = []

    def owns(self, expression: Expr) -> bool:
        """Return True if the expression reads columns of this side only, and at least one."""
        ids = {f.id for f in referenced_fields(expression)}
        return bool(ids) and ids <= self.ids

    def column(self, expression: Expr, guards: Guards = ()) -> Field:
        """Return a column with the value of ``expression``.

        The column is NULL where the expression can fail and one of ``guards`` is not true.
        """
        if isinstance(expression, FieldRef):
            return expression.field
        expression = self.guarded(expression, guards)
        for item in self.computed:
            if item.expr == expression and item.field.type == expression.type:
                return item.field
        self.computed.append(Item(field=self.context.field("", expression.type), expr=expression))
        return self.computed[-1].field

    def guarded(self, expression: Expr, guards: Guards) -> Expr:
        guard_condition = conjunction(tuple(guard.condition for guard in guards if self.knows(guard)))
        if guard_condition is None or not may_fail(expression):
            return expression
        nothing = literal(None, expression.type)
        return call("CASE", (guard_condition, expression, nothing), expression.type, expression.offset)

    def knows(self, guard: Guard) -> bool:
        """Return True if a calc above this side can evaluate the guard."""
        condition = guard.condition
        plain = is_deterministic(condition) and not calls_user_code(condition)
        return plain and {f.id for f in referenced_fields(condition)} <= self.ids

    def result(self) -> Relation:
        if not self.computed:
            return self.relation
        items = (*identity(self.relation.fields), *self.computed)
        return LogicalCalc(
            input=self.relation, filter=None, items=items, base=self.relation.base, block=self.relation.block
        )


def may_fail(expression: Expr) -> bool:
    """Return True if the expression raises an error for some values, such as a cast of text or a division by zero.

    An expression that always raises an error counts, too.
    """
    return any(_fails(e) for e in walk(expression))


def _fails(e: Expr) -> bool:
    if not isinstance(e, Call):
        return False
    if e.function == "CAST":
        return _reads_text(e.args[0].type, e.type)
    if e.function == "raise_error":
        return True
    if e.function in _DIVISIONS and (e.args[0].type.is_integer or e.type.root == "DECIMAL" or e.type.is_integer):
        divisor = e.args[1]
        return not (isinstance(divisor, Literal) and divisor.text is not None and float(divisor.text) != 0)
    return False


def _reads_text(source: DataType, target: DataType) -> bool:
    """Return True if a cast parses text anywhere in a value."""
    if target.is_nested:
        return any(map(_reads_text, source.children, target.children))
    return source.is_text and not target.is_text


def is_simple(expression: Expr) -> bool:
    """Return True if a join evaluates the condition itself, with no part computed below."""
    return all(_is_simple_node(e) for e in walk(expression))


def _is_simple_node(e: Expr) -> bool:
    if not isinstance(e, Call):
        return not isinstance(e, Literal) or e.type.root not in ("INTERVAL", "TIMESTAMP_LTZ")
    if e.function == "IN":
        return all(isinstance(a, Literal) for a in e.args[1:])
    if e.function in _SIMPLE:
        return True
    if e.function in _ARITHMETIC:
        return e.type.is_numeric and all(a.type.is_numeric for a in e.args)
    return e.function == "CAST" and e.type.is_numeric and e.args[0].type.is_numeric


def _is_computed_node(e: Expr) -> bool:
    """Return True if a join can evaluate the node where no calc below can."""
    if isinstance(e, Call) and e.function == "CAST" and e.args[0].type.is_text:
        return e.type.is_integer or e.type.root == "DECIMAL"
    if isinstance(e, Call) and e.function == "%":
        return all(a.type.is_integer for a in e.args)
    return _is_simple_node(e)


def shared_out(parts: Sequence[Expr], follows: Callable[[Expr], bool]) -> tuple[list[Expr], list[Expr]]:
    """Split the conjuncts of an inner join: the join checks the first list, and a calc above the second.

    ``follows`` selects conjuncts for the calc. The order remains, and a conjunct that can fail stays behind the
    conjuncts that precede it.
    """
    within: list[Expr] = []
    above: list[Expr] = []
    for part in parts:
        (above if follows(part) or (above and may_fail(part)) else within).append(part)
    return within, above


def first_refused(expression: Expr) -> Expr | None:
    """Return the first part that a join cannot evaluate, or None."""
    return next((e for e in walk(expression) if not _is_computed_node(e)), None)


def guards_before(parts: Sequence[Expr], guards: Callable[[Expr], bool]) -> list[tuple[Expr, Guards]]:
    """Return each conjunct of a condition with the preceding conjuncts that guard it.

    ``guards`` selects the conjuncts that act as guards. Keys of a join do not: nobody writes them as guards, and a calc
    below a join computes its columns for all rows.
    """
    guarded_parts: list[tuple[Expr, Guards]] = []
    before: Guards = ()
    for part in parts:
        guarded_parts.append((part, before))
        if guards(part):
            before = (*before, Guard(_if_true(part), binding=False))
    return guarded_parts


def _each_behind(conditions: Sequence[Expr]) -> list[Guards]:
    guards = tuple(Guard(condition, binding=False) for condition in conditions)
    return [guards[:i] for i in range(len(guards))]


def as_simple(part: Expr, sides: Sequence[Side], guards: Guards = ()) -> Expr:
    """Return ``part``, with columns from calcs below instead of expressions that the join cannot evaluate.

    Such an expression must read one of ``sides`` only. If it can fail, the calc computes it only where its guards are
    true. If the guards depend on both sides, the expression remains.
    """
    if not isinstance(part, Call) or is_simple(part):
        return part
    owner = next((side for side in sides if side.owns(part) and is_deterministic(part)), None)
    if owner is not None:
        unknown = [guard for guard in guards if not owner.knows(guard)] if may_fail(part) else []
        if unknown and first_refused(part) is None:
            return part
        if not any(guard.binding for guard in unknown):
            return FieldRef(field=owner.column(part, guards), offset=part.offset)
    return replace(
        part,
        args=tuple(
            as_simple(arg, sides, (*guards, *more)) for arg, more in zip(part.args, _guards_of(part), strict=True)
        ),
    )


def _guards_of(expression: Call) -> list[Guards]:
    """Return for each argument the conditions under which it is computed."""
    args = expression.args
    if expression.function == "AND":
        return _each_behind([_unless_false(arg) for arg in args])
    if expression.function == "OR":
        return _each_behind([_unless_false(call("NOT", (arg,), BOOLEAN, 0)) for arg in args])
    guards: Guards = ()
    guards_of_arguments: list[Guards] = []
    if expression.function == "coalesce":
        for arg in args:
            guards_of_arguments.append(guards)
            guards = (*guards, Guard(call("IS NULL", (arg,), BOOLEAN, 0), binding=True))
        return guards_of_arguments
    if expression.function != "CASE":
        return [()] * len(args)
    for condition in args[:-1:2]:
        holds = _if_true(condition)
        guards_of_arguments += [guards, (*guards, Guard(holds, binding=True))]
        guards = (*guards, Guard(call("NOT", (holds,), BOOLEAN, 0), binding=True))
    return [*guards_of_arguments, guards]


def _if_true(condition: Expr) -> Expr:
    return call("coalesce", (condition, literal("FALSE", BOOLEAN)), BOOLEAN, 0)


def _unless_false(condition: Expr) -> Expr:
    return call("coalesce", (condition, literal("TRUE", BOOLEAN)), BOOLEAN, 0)

"""Turns the condition of each join into key columns and what is left over.

Both columns of a key have the same type; expressions and conversions are computed in calcs below the join. ``IS NOT
DISTINCT FROM`` becomes two keys: whether the value is NULL, and the value with a constant for NULL. A join without an
equality gets a constant as its key if a side has one row at most, or if its meaning asks for it (``NOT IN``); all its
rows then meet in one partition. What is left of the condition must be simple enough to be evaluated inside the join,
except for an inner join, where it can follow.
"""

from __future__ import annotations

from dataclasses import replace

from planner.coercion import cast, common_type
from planner.context import Context
from planner.expressions import (
    BOOLEAN,
    INT,
    Call,
    Expr,
    Field,
    Literal,
    Ref,
    call,
    conjunction,
    fields_of,
    is_deterministic,
    literal,
    named,
    rewrite,
    walk,
)
from planner.relations import (
    Aggregate,
    Cached,
    Calc,
    Correlate,
    Expand,
    Item,
    Join,
    LookupJoin,
    Relation,
    Scan,
    Sort,
    Union,
    identity,
)

__all__ = ["Side", "equalities", "extract_join_keys", "has_one_row", "is_simple", "is_simple_node"]

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
_ANY_VALUE = {
    "BOOLEAN": "FALSE",
    "DATE": "1970-01-01",
    "TIMESTAMP": "1970-01-01 00:00:00",
    "TIMESTAMP_LTZ": "1970-01-01 00:00:00",
}
"""A value of each type to stand for NULL beside a column that says so; numbers take 0, text is empty."""


def extract_join_keys(context: Context, relation: Relation) -> Relation:
    """Give every join its keys; SqlError for a join without an equality, or with a condition it cannot evaluate."""
    if isinstance(relation, Scan):
        return relation
    if isinstance(relation, Calc | Aggregate | LookupJoin | Sort | Cached | Correlate | Expand):
        return replace(relation, input=extract_join_keys(context, relation.input))
    if isinstance(relation, Union):
        return replace(relation, inputs=tuple(extract_join_keys(context, i) for i in relation.inputs))
    left, right = extract_join_keys(context, relation.left), extract_join_keys(context, relation.right)
    return _with_keys(context, replace(relation, left=left, right=right))


class Side:
    """One input of a join, and the columns computed for the join in a calc above it."""

    def __init__(self, context: Context, relation: Relation) -> None:
        self.context = context
        self.relation = relation
        self.ids = {f.id for f in relation.fields}
        self.computed: list[Item] = []

    def owns(self, expression: Expr) -> bool:
        """Whether the expression reads columns of this side and of no other."""
        ids = {f.id for f in fields_of(expression)}
        return bool(ids) and ids <= self.ids

    def column(self, expression: Expr) -> Field:
        if isinstance(expression, Ref):
            return expression.field
        for item in self.computed:
            if item.expr == expression and item.field.type == expression.type:
                return item.field
        self.computed.append(Item(field=self.context.field("", expression.type), expr=expression))
        return self.computed[-1].field

    def result(self) -> Relation:
        if not self.computed:
            return self.relation
        items = (*identity(self.relation.fields), *self.computed)
        return Calc(input=self.relation, filter=None, items=items, base=self.relation.base, block=self.relation.block)


def _with_keys(context: Context, join: Join) -> Relation:
    left, right = Side(context, join.left), Side(context, join.right)
    keys: list[tuple[Field, Field]] = []
    rest: list[Expr] = []
    for part in join.on:
        pairs = equalities(part, left, right)
        keys += [key for a, b in pairs if (key := (left.column(a), right.column(b))) not in keys]
        if not pairs:
            rest.append(part)
    if not keys:
        if not (join.keyless or has_one_row(join.left) or has_one_row(join.right)):
            raise _no_equality(context, join)
        keys.append((left.column(literal(1, INT)), right.column(literal(1, INT))))
    above: tuple[Expr, ...] = ()
    if join.join_type == "inner":
        above = tuple(p for p in rest if not is_simple(p))
        rest = [p for p in rest if p not in above]
    else:
        rest = [_simplified(context, p, left, right) for p in rest]
    relation: Relation = replace(
        join, left=left.result(), right=right.result(), on=(), keys=tuple(keys), condition=conjunction(tuple(rest))
    )
    if above:
        relation = Calc(
            input=relation,
            filter=conjunction(above),
            items=identity(relation.fields),
            base=relation.base,
            block=relation.block,
        )
    return relation


def equalities(part: Expr, left: Side, right: Side) -> tuple[tuple[Expr, Expr], ...]:
    """The pairs of a left and a right expression whose equality means the same as ``part``; none if it is no such."""
    if not isinstance(part, Call) or not is_deterministic(part):
        return ()
    null_safe = part.function == "coalesce" and _is_null_safe(part)
    equality = part.args[0] if null_safe else part
    if not isinstance(equality, Call) or equality.function != "=":
        return ()
    a, b = equality.args
    if left.owns(b) and right.owns(a):
        a, b = b, a
    if not (left.owns(a) and right.owns(b)):
        return ()
    common = common_type((a.type, b.type))
    if common is None:
        return ()
    a, b = cast(a, common, a.offset), cast(b, common, b.offset)
    if not null_safe:
        return ((a, b),)
    stands_in = "" if common.is_text else "0" if common.is_numeric else _ANY_VALUE.get(common.root)
    if stands_in is None:
        return ()
    value = literal(stands_in, common)
    return (
        (call("IS NULL", (a,), BOOLEAN, a.offset), call("IS NULL", (b,), BOOLEAN, b.offset)),
        (call("coalesce", (a, value), common, a.offset), call("coalesce", (b, value), common, b.offset)),
    )


def _is_null_safe(part: Call) -> bool:
    """Whether ``part`` is what IS NOT DISTINCT FROM is translated to."""
    same, both = part.args if len(part.args) == 2 else (part, part)
    if not (isinstance(same, Call) and same.function == "=" and isinstance(both, Call) and both.function == "AND"):
        return False
    return all(
        isinstance(e, Call) and e.function == "IS NULL" and e.args == (value,)
        for e, value in zip(both.args, same.args, strict=True)
    )


def has_one_row(relation: Relation) -> bool:
    """Whether the relation never has more than one row: it is an aggregate without GROUP BY."""
    if isinstance(relation, Calc):
        return has_one_row(relation.input)
    if isinstance(relation, Join):
        return has_one_row(relation.left) and has_one_row(relation.right)
    return isinstance(relation, Aggregate) and not relation.keys


def _no_equality(context: Context, join: Join) -> Exception:
    if join.join_type in ("semi", "anti"):
        return context.source.error(
            "this sub-query has no equality with the outer query",
            join.offset,
            "add one to its WHERE: inner.column = outer.column",
        )
    advice = "add left.column = right.column; a side without one must be an aggregate of one row"
    return context.source.error(
        f"this join of {join.left.base} and {join.right.base} has no equality between its sides", join.offset, advice
    )


def is_simple(expression: Expr) -> bool:
    """Whether a join can evaluate the condition itself."""
    return all(is_simple_node(e) for e in walk(expression))


def is_simple_node(e: Expr) -> bool:
    if not isinstance(e, Call):
        return not isinstance(e, Literal) or e.type.root not in ("INTERVAL", "TIMESTAMP_LTZ")
    if e.function == "IN":
        return all(isinstance(a, Literal) for a in e.args[1:])
    if e.function in _SIMPLE:
        return True
    if e.function in _ARITHMETIC:
        return e.type.is_numeric and all(a.type.is_numeric for a in e.args)
    return e.function == "CAST" and e.type.is_numeric and e.args[0].type.is_numeric


def _simplified(context: Context, part: Expr, left: Side, right: Side) -> Expr:
    """``part`` with what the join cannot evaluate computed below it, as far as it concerns one side only."""

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, Call) or is_simple(e):
            return None
        for side in (left, right):
            if side.owns(e) and is_deterministic(e):
                return Ref(field=side.column(e), offset=e.offset)
        return None

    simplified = rewrite(part, change)
    bad = next((e for e in walk(simplified) if not is_simple_node(e)), None)
    if bad is not None:
        what = named(bad) if isinstance(bad, Call) else "this"
        raise context.source.error(
            f"{what} over columns of both sides cannot be part of the condition of this join",
            bad.offset or part.offset,
            "compute it in a sub-query first, or compare columns directly",
        )
    return simplified

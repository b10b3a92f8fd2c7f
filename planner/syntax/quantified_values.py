"""Comparisons with sub-queries as values, such as ``x IN (SELECT y ...)`` and ``x > ANY (SELECT y ...)``.

The rewrite follows SQL's definition. The value is TRUE if a row matches; else NULL if ``x`` is NULL and there is a row,
or if a row is NULL; else FALSE. ``x > ALL`` is the negation of ``x <= ANY``. An IN whose left side is an aggregate or
the value of a sub-query cannot move into another query, and is only marked. This module knows syntax trees only.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from hintplan.planner.syntax.dialect import offset_of, select_at

_OTHERWISE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}


def expand_quantified(
    node: exp.Expr, is_aggregate: Callable[[exp.Expr], bool], is_known: Callable[[exp.Expr], bool]
) -> exp.Expr:
    """Return ``node`` with its comparisons with sub-queries written out, unless a comparison satisfies ``is_known``."""
    if isinstance(node, exp.Query | exp.Exists) or is_aggregate(node):
        return node
    if is_known(node):
        if node.this.find(exp.Query) is None:
            return node
        copied_comparison = node.copy()
        copied_comparison.set("this", expand_quantified(node.this, is_aggregate, is_known))
        return copied_comparison
    quantified = _quantified(node, is_aggregate)
    if quantified is not None:
        return quantified
    copied = node.copy()
    if isinstance(node, exp.In) and isinstance(node.args.get("query"), exp.Query):
        copied.meta[_ANSWERED] = not isinstance(node.this, exp.Tuple)
    for child, original in zip(list(copied.iter_expressions()), list(node.iter_expressions()), strict=True):
        changed = expand_quantified(original, is_aggregate, is_known)
        if changed is not original:
            child.replace(changed)
    return copied


_ANSWERED = "answered"


def is_answered(node: exp.Expr) -> bool:
    """Return True if ``node`` is an IN with a value of TRUE, FALSE or NULL that is not written out."""
    return bool(node.meta.get(_ANSWERED))


def _quantified(node: exp.Expr, is_aggregate: Callable[[exp.Expr], bool]) -> exp.Expr | None:
    compare: type[exp.Expr]
    if isinstance(node, exp.In):
        value, query, compare, every = node.this, node.args.get("query"), exp.EQ, False
    elif type(node) in _OTHERWISE and isinstance(node.args.get("expression"), exp.Any | exp.All):
        value, query, compare = node.this, node.expression.this, type(node)
        every = isinstance(node.expression, exp.All)
    else:
        return None
    if not isinstance(query, exp.Query) or isinstance(value, exp.Tuple) or value.find(exp.Query):
        return None
    if any(map(is_aggregate, value.walk())):
        return None
    if every and compare is exp.EQ:
        return None  # Flink 2.3 finds no row equal to all, where SQL finds some
    compare = _OTHERWISE[compare] if every else compare
    place = offset_of(query)
    names = {name_node.name for name_node in value.find_all(exp.Identifier)}
    rows, column = _unlike("in_rows", names), _unlike("in_value", names)

    def of_rows() -> exp.Expr:
        return exp.Column(this=_quoted(column), table=_quoted(rows))

    def select(at: int, item: exp.Expr) -> exp.Select:
        alias = exp.TableAlias(this=_quoted(rows), columns=[_quoted(column)])
        select_over_rows = select_at(at)
        select_over_rows.set("expressions", [item])
        select_over_rows.set("from_", exp.From(this=exp.Subquery(this=query.copy(), alias=alias)))
        return select_over_rows

    matching = select(place, exp.Literal.number(1))
    matching.set("where", exp.Where(this=compare(this=value.copy(), expression=of_rows())))
    # Distinct offsets distinguish the values.
    all_rows = exp.Subquery(this=select(place - 1, _count(exp.Star())))
    non_null_rows = exp.Subquery(this=select(place - 2, _count(of_rows())))
    null_value = exp.If(this=exp.Is(this=value.copy(), expression=exp.Null()), true=exp.Literal.number(0))
    compared = exp.Case(ifs=[null_value], default=non_null_rows)
    answers = [
        exp.If(this=exp.Exists(this=matching), true=exp.Boolean(this=not every)),
        exp.If(this=exp.GT(this=all_rows, expression=compared), true=exp.Null()),
    ]
    return exp.Paren(this=exp.Case(ifs=answers, default=exp.Boolean(this=every)))


def _unlike(name: str, others: set[str]) -> str:
    """Return a name based on ``name`` that is not in ``others``, so that it hides no other column."""
    while name in others:
        name += "0"
    return name


def _quoted(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def _count(argument: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="COUNT", expressions=[argument])

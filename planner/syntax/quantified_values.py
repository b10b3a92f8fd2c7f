"""``x IN (SELECT y ...)``, ``x > ANY (SELECT y ...)`` and the like as values: TRUE, FALSE or NULL of each row.

They become what SQL defines them by: TRUE if there is such a row, else NULL if ``x`` or one of the rows is NULL, and
FALSE if not, or if there is no row. ``x > ALL`` is what ``x <= ANY`` is not. An IN that looks for an aggregate or for
the value of a sub-query, which cannot stand in another query, is marked instead. Knows syntax trees only.
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


def written_out(
    node: exp.Expr, is_aggregate: Callable[[exp.Expr], bool], is_known: Callable[[exp.Expr], bool]
) -> exp.Expr:
    """``node`` with comparisons with sub-queries written out, but for those that ``is_known``."""
    if isinstance(node, exp.Query | exp.Exists) or is_aggregate(node):
        return node
    if is_known(node):
        if node.this.find(exp.Query) is None:
            return node
        known = node.copy()
        known.set("this", written_out(node.this, is_aggregate, is_known))
        return known
    found = _quantified(node, is_aggregate)
    if found is not None:
        return found
    copied = node.copy()
    if isinstance(node, exp.In) and isinstance(node.args.get("query"), exp.Query):
        copied.meta[_ANSWERED] = not isinstance(node.this, exp.Tuple)
    for child, own in zip(list(copied.iter_expressions()), list(node.iter_expressions()), strict=True):
        changed = written_out(own, is_aggregate, is_known)
        if changed is not own:
            child.replace(changed)
    return copied


_ANSWERED = "answered"


def is_answered(node: exp.Expr) -> bool:
    """Whether ``node`` is an IN that is TRUE, FALSE or NULL, and not written out."""
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
        return None  # Flink 2.3 finds no row that equals all, where SQL has some
    compare = _OTHERWISE[compare] if every else compare
    place = offset_of(query)
    names = {each.name for each in value.find_all(exp.Identifier)}
    rows, column = _unlike("in_rows", names), _unlike("in_value", names)

    def of_rows() -> exp.Expr:
        return exp.Column(this=_quoted(column), table=_quoted(rows))

    def select(at: int, item: exp.Expr) -> exp.Select:
        alias = exp.TableAlias(this=_quoted(rows), columns=[_quoted(column)])
        found = select_at(at)
        found.set("expressions", [item])
        found.set("from_", exp.From(this=exp.Subquery(this=query.copy(), alias=alias)))
        return found

    matching = select(place, exp.Literal.number(1))
    matching.set("where", exp.Where(this=compare(this=value.copy(), expression=of_rows())))
    # Values are told apart by their places.
    all_rows = exp.Subquery(this=select(place - 1, _count(exp.Star())))
    known = exp.Subquery(this=select(place - 2, _count(of_rows())))
    none_known = exp.If(this=exp.Is(this=value.copy(), expression=exp.Null()), true=exp.Literal.number(0))
    compared = exp.Case(ifs=[none_known], default=known)
    answers = [
        exp.If(this=exp.Exists(this=matching), true=exp.Boolean(this=not every)),
        exp.If(this=exp.GT(this=all_rows, expression=compared), true=exp.Null()),
    ]
    return exp.Paren(this=exp.Case(ifs=answers, default=exp.Boolean(this=every)))


def _unlike(name: str, others: set[str]) -> str:
    """A name that is none of ``others``, which would be taken for it."""
    while name in others:
        name += "0"
    return name


def _quoted(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def _count(argument: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="COUNT", expressions=[argument])

"""What becomes of the sub-queries of a block, told by the syntax tree: semi and anti joins, or values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from hintplan.planner.context import Context, Environment
from hintplan.planner.query.clauses import clauses_of
from hintplan.planner.query.sources.inputs import inputs_of, sources_of
from hintplan.planner.syntax.dialect import is_values, offset_of
from hintplan.planner.syntax.quantified_values import is_answered
from hintplan.planner.translation import aggregates
from hintplan.planner.translation.operators import COMPARISONS
from hintplan.planner.translation.scope import Input


@dataclass(frozen=True, slots=True, kw_only=True)
class SubQuery:
    """``[value] [NOT] IN/EXISTS (query)``: the rows for which a row of the query is ``value``, or none if ``negated``.

    ``operator`` is what a row is found by: ``v > ANY (query)`` asks for a row with ``v > row``, ``v > ALL (query)``
    that there is none with ``v <= row``.
    """

    query: exp.Expr
    value: exp.Expr | None
    operator: str = "="
    negated: bool
    offset: int


def is_grouped(select: exp.Select) -> bool:
    """Whether the block aggregates; SELECT DISTINCT alone does not count."""
    if select.args.get("group") is not None:
        return True
    clauses = [*select.expressions, *([select.args["having"]] if select.args.get("having") else [])]
    return any(_has_aggregate(c) for c in clauses)


def _has_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):  # the function itself is of a window's rows, what it reads may be of groups
        call = node.this.this if isinstance(node.this, exp.Filter) else node.this
        read = [child for child in node.iter_expressions() if child is not node.this]
        return any(map(_has_aggregate, (*call.iter_expressions(), *read)))
    if aggregates.is_aggregate(node):
        return True
    return any(_has_aggregate(child) for child in node.iter_expressions())


def has_grouping_sets(select: exp.Select) -> bool:
    """Whether the block groups by GROUPING SETS, CUBE or ROLLUP."""
    group = select.args.get("group")
    sets = exp.GroupingSets | exp.Cube | exp.Rollup
    return group is not None and any(isinstance(each, sets) for each in group.expressions)


def is_one_group(query: exp.Expr) -> bool:
    """Whether ``query`` aggregates without GROUP BY, so that it has one row."""
    query = without_parentheses(query)
    return isinstance(query, exp.Select) and query.args.get("group") is None and is_grouped(query)


def is_one_row(query: exp.Expr) -> bool:
    """Whether ``query`` is such an aggregate, and its LIMIT and OFFSET keep the row."""
    return is_one_group(query) and keeps_a_row(without_parentheses(query))


def keeps_a_row(query: exp.Expr) -> bool:
    """Whether OFFSET and LIMIT of ``query`` keep a row if it has one."""
    skipped, limit = query.args.get("offset"), query.args.get("limit")
    if skipped is not None and _number(skipped.expression) != 0:
        return False
    count = limit.args.get("expression", limit.args.get("count")) if limit is not None else None
    return count is None or _number(count) > 0


def _number(node: exp.Expr) -> int:
    return int(node.name) if isinstance(node, exp.Literal) and node.name.isdigit() else -1


def without_parentheses(query: exp.Expr) -> exp.Expr:
    """``query`` without parentheses around it that have no clause of their own."""
    while isinstance(query, exp.Subquery) and clauses_of(query) <= {"this"}:
        query = query.this
    return query


def plain_select(query: exp.Expr) -> exp.Select | None:
    """The one SELECT that a query is, parentheses aside; None if it is more."""
    query = without_parentheses(query)
    return query if isinstance(query, exp.Select) and not is_values(query) else None


def _parts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(node, exp.And):
        yield from _parts(node.this)
        yield from _parts(node.expression)
    elif isinstance(node, exp.Paren):
        inner = list(_parts(node.this))
        yield from inner if len(inner) > 1 or joined_sub_query(node.this) else [node]
    elif node is not None:
        yield node


def where_conditions(select: exp.Select) -> list[exp.Expr]:
    clause = select.args.get("where")
    return list(_parts(clause.this)) if clause is not None else []


def joined_sub_query(node: exp.Expr) -> SubQuery | None:
    negated, inner = False, node
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    if isinstance(inner.args.get("expression"), exp.Any | exp.All) and type(inner) in COMPARISONS:
        return _quantified(inner, inner.expression, negated=negated)
    query = inner.this if isinstance(inner, exp.Exists) else inner.args.get("query")
    if not isinstance(query, exp.Query) or is_one_row(query):
        return None  # the latter is a value, whether it has rows or not
    if isinstance(inner, exp.Exists):
        return SubQuery(query=inner.this, value=None, negated=negated, offset=offset_of(inner))
    if isinstance(inner, exp.In):
        return SubQuery(query=query, value=inner.this, negated=negated, offset=offset_of(inner))
    return None


_INVERSE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _quantified(node: exp.Expr, rows: exp.Expr, *, negated: bool) -> SubQuery | None:
    """``value > ANY (query)`` and its like; what is not so for ANY row is otherwise for ALL."""
    query, operator = rows.this, COMPARISONS[type(node)]
    if not isinstance(query, exp.Query) or is_one_row(query) or isinstance(node.this, exp.Tuple):
        return None
    operator = _INVERSE[operator] if negated else operator
    every = isinstance(rows, exp.All) != negated
    if (operator == "=" and every) or (operator == "<>" and not every and negated):
        return None  # Flink 2.3 finds no row that equals all, where SQL has some
    return SubQuery(
        query=query,
        value=node.this,
        operator=_INVERSE[operator] if every else operator,
        negated=every,
        offset=offset_of(node),
    )


def joins_in_where(select: exp.Select) -> bool:
    """Whether WHERE has sub-queries, which become joins."""
    values = (value for part in plain_conditions(select) for value in values_in(part, filters=True))
    return any(joined_sub_query(part) for part in where_conditions(select)) or any(True for _ in values)


def plain_conditions(select: exp.Select) -> list[exp.Expr]:
    """The conditions of WHERE that do not become semi or anti joins."""
    return [part for part in where_conditions(select) if not joined_sub_query(part)]


def values_in(node: exp.Expr, *, filters: bool = False) -> Iterator[exp.Expr]:
    """The scalar sub-queries and EXISTS in an expression; not what ALL and ANY read, nor what is aggregated.

    IN with a sub-query is one of them where its being NULL is as good as its being false: below AND and OR in what
    ``filters``; wherever the sub-query is one group; and where it is not written out. Before it come those in what it
    looks for.
    """
    below = filters and isinstance(node, exp.And | exp.Or | exp.Paren)
    is_in = isinstance(node, exp.In) and node.args.get("query") is not None
    if is_in and (filters or is_one_row(node.args["query"]) or is_answered(node)):
        yield from values_in(node.this)
        yield node
    elif isinstance(node, exp.Query | exp.Exists):
        yield node
    elif not isinstance(node, exp.All | exp.Any | exp.Filter) and not aggregates.is_aggregate(node):
        for child in node.iter_expressions():
            if not (is_in and child is node.args.get("query")):
                yield from values_in(child, filters=below)


def sub_queries_in(nodes: Iterable[exp.Expr], *, filters: bool = False) -> list[exp.Expr]:
    """The sub-queries in ``nodes`` that are values, see :func:`values_in`."""
    return [each for node in nodes for each in values_in(node, filters=filters)]


def has_values(select: exp.Select) -> bool:
    """Whether sub-queries in the clauses of ``select`` are values."""
    having = select.args.get("having")
    clauses = [*select.expressions, *([having] if having is not None else [])]
    found = [value for clause in clauses for value in values_in(clause)]
    found += [value for part in plain_conditions(select) for value in values_in(part, filters=True)]
    return bool(found)


def only_input(context: Context, environment: Environment, query: exp.Expr) -> Input | None:
    select = plain_select(query)
    if select is None or is_grouped(select) or joins_in_where(select):
        return None
    if select.args.get("distinct") or select.args.get("with_"):
        return None
    inputs = [i for node in sources_of(select) for i in inputs_of(context, environment, node)]
    return inputs[0] if len(inputs) == 1 else None


def semi_join_inputs(context: Context, environment: Environment, select: exp.Select) -> Iterator[Input | None]:
    """The right input of each semi or anti join as a hint would address it; None if it has no name."""
    for part in where_conditions(select):
        found = joined_sub_query(part)
        if found is not None:
            yield only_input(context, environment, found.query)

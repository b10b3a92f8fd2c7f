"""Decides from the syntax tree whether a sub-query of a block becomes a semi or anti join, or a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from hintplan.planner.context import Context, QueryEnvironment
from hintplan.planner.query.clauses import clauses_of
from hintplan.planner.query.sources.inputs import inputs_of_source, sources_of
from hintplan.planner.syntax.dialect import is_values, offset_of
from hintplan.planner.syntax.quantified_values import is_answered
from hintplan.planner.translation import aggregates
from hintplan.planner.translation.operators import COMPARISONS
from hintplan.planner.translation.scope import Input


@dataclass(frozen=True, slots=True, kw_only=True)
class SubQuery:
    """A condition ``[value] [NOT] IN/EXISTS (query)`` that becomes a semi join, or an anti join if it is ``negated``.

    ``operator`` compares ``value`` with a row of the query. ``v > ANY (query)`` is true if a row exists with ``v >
    row``. ``v > ALL (query)`` is true if no row exists with ``v <= row``.
    """

    query: exp.Expr
    value: exp.Expr | None
    operator: str = "="
    negated: bool
    offset: int


def is_grouped(select: exp.Select) -> bool:
    """Return True if the block aggregates; SELECT DISTINCT alone does not count."""
    if select.args.get("group") is not None:
        return True
    clauses = [*select.expressions, *([select.args["having"]] if select.args.get("having") else [])]
    return any(_has_aggregate(c) for c in clauses)


def _has_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):  # the function aggregates a window; only its operands may aggregate groups
        call = node.this.this if isinstance(node.this, exp.Filter) else node.this
        read = [child for child in node.iter_expressions() if child is not node.this]
        return any(map(_has_aggregate, (*call.iter_expressions(), *read)))
    if aggregates.is_aggregate(node):
        return True
    return any(_has_aggregate(child) for child in node.iter_expressions())


def has_grouping_sets(select: exp.Select) -> bool:
    """Return True if the block groups by GROUPING SETS, CUBE or ROLLUP."""
    group = select.args.get("group")
    sets = exp.GroupingSets | exp.Cube | exp.Rollup
    return group is not None and any(isinstance(each, sets) for each in group.expressions)


def is_one_group(query: exp.Expr) -> bool:
    """Return True if ``query`` aggregates without GROUP BY, so that it has one row."""
    query = without_parentheses(query)
    return isinstance(query, exp.Select) and query.args.get("group") is None and is_grouped(query)


def is_single_row_query(query: exp.Expr) -> bool:
    """Return True if ``query`` aggregates without GROUP BY, and its LIMIT and OFFSET keep the row."""
    return is_one_group(query) and keeps_a_row(without_parentheses(query))


def keeps_a_row(query: exp.Expr) -> bool:
    """Return True if OFFSET and LIMIT of ``query`` keep at least one row of a non-empty result."""
    skipped, limit = query.args.get("offset"), query.args.get("limit")
    if skipped is not None and _number(skipped.expression) != 0:
        return False
    count = limit.args.get("expression", limit.args.get("count")) if limit is not None else None
    return count is None or _number(count) > 0


def _number(node: exp.Expr) -> int:
    return int(node.name) if isinstance(node, exp.Literal) and node.name.isdigit() else -1


def without_parentheses(query: exp.Expr) -> exp.Expr:
    """Return ``query`` without enclosing parentheses, except parentheses with a clause of their own."""
    while isinstance(query, exp.Subquery) and clauses_of(query) <= {"this"}:
        query = query.this
    return query


def plain_select(query: exp.Expr) -> exp.Select | None:
    """Return the SELECT that ``query`` consists of, in parentheses or not, or None if it is something else."""
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
    """Return the conditions of WHERE that AND connects."""
    clause = select.args.get("where")
    return list(_parts(clause.this)) if clause is not None else []


def joined_sub_query(node: exp.Expr) -> SubQuery | None:
    """Return the semi or anti join that the condition ``node`` becomes, or None if it stays a condition."""
    negated, inner = False, node
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    if isinstance(inner.args.get("expression"), exp.Any | exp.All) and type(inner) in COMPARISONS:
        return _quantified(inner, inner.expression, negated=negated)
    query = inner.this if isinstance(inner, exp.Exists) else inner.args.get("query")
    if not isinstance(query, exp.Query) or is_single_row_query(query):
        return None  # a query with exactly one row is a value
    if isinstance(inner, exp.Exists):
        return SubQuery(query=inner.this, value=None, negated=negated, offset=offset_of(inner))
    if isinstance(inner, exp.In):
        return SubQuery(query=query, value=inner.this, negated=negated, offset=offset_of(inner))
    return None


_INVERSE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _quantified(node: exp.Expr, rows: exp.Expr, *, negated: bool) -> SubQuery | None:
    """Return the join for ``value > ANY (query)`` and the like; NOT turns ANY into ALL with the inverse operator."""
    query, operator = rows.this, COMPARISONS[type(node)]
    if not isinstance(query, exp.Query) or is_single_row_query(query) or isinstance(node.this, exp.Tuple):
        return None
    operator = _INVERSE[operator] if negated else operator
    every = isinstance(rows, exp.All) != negated
    if (operator == "=" and every) or (operator == "<>" and not every and negated):
        return None  # Flink 2.3 returns no row for "= ALL", contrary to SQL, so the comparison is refused later
    return SubQuery(
        query=query,
        value=node.this,
        operator=_INVERSE[operator] if every else operator,
        negated=every,
        offset=offset_of(node),
    )


def joins_in_where(select: exp.Select) -> bool:
    """Return True if WHERE has sub-queries, which become joins."""
    values = (value for part in plain_conditions(select) for value in values_in(part, filters=True))
    return any(joined_sub_query(part) for part in where_conditions(select)) or any(True for _ in values)


def plain_conditions(select: exp.Select) -> list[exp.Expr]:
    """Return the conditions of WHERE that do not become semi or anti joins."""
    return [part for part in where_conditions(select) if not joined_sub_query(part)]


def values_in(node: exp.Expr, *, filters: bool = False) -> Iterator[exp.Expr]:
    """Yield the scalar sub-queries and EXISTS in an expression, except inside ALL, ANY and aggregate calls.

    An IN with a sub-query, preceded by the sub-queries in its left side, is included:

    - if it is part of a condition that ``filters``, below AND and OR only, where NULL has the effect of FALSE
    - if the sub-query has exactly one row
    - if :mod:`hintplan.planner.syntax.quantified_values` has marked the IN as a value
    """
    below = filters and isinstance(node, exp.And | exp.Or | exp.Paren)
    is_in = isinstance(node, exp.In) and node.args.get("query") is not None
    if is_in and (filters or is_single_row_query(node.args["query"]) or is_answered(node)):
        yield from values_in(node.this)
        yield node
    elif isinstance(node, exp.Query | exp.Exists):
        yield node
    elif not isinstance(node, exp.All | exp.Any | exp.Filter) and not aggregates.is_aggregate(node):
        for child in node.iter_expressions():
            if not (is_in and child is node.args.get("query")):
                yield from values_in(child, filters=below)


def sub_queries_in(nodes: Iterable[exp.Expr], *, filters: bool = False) -> list[exp.Expr]:
    """Return the sub-queries in ``nodes`` that are values, as defined by :func:`values_in`."""
    return [each for node in nodes for each in values_in(node, filters=filters)]


def has_values(select: exp.Select) -> bool:
    """Return True if sub-queries in the clauses of ``select`` are values."""
    having = select.args.get("having")
    clauses = [*select.expressions, *([having] if having is not None else [])]
    values = [value for clause in clauses for value in values_in(clause)]
    values += [value for part in plain_conditions(select) for value in values_in(part, filters=True)]
    return bool(values)


def only_input(context: Context, environment: QueryEnvironment, query: exp.Expr) -> Input | None:
    """Return the input of a query that only filters and projects one input, or None."""
    select = plain_select(query)
    if select is None or is_grouped(select) or joins_in_where(select):
        return None
    if select.args.get("distinct") or select.args.get("with_"):
        return None
    inputs = [i for node in sources_of(select) for i in inputs_of_source(context, environment, node)]
    return inputs[0] if len(inputs) == 1 else None


def semi_join_inputs(context: Context, environment: QueryEnvironment, select: exp.Select) -> Iterator[Input | None]:
    """Yield the right input of each semi or anti join under the name that a hint uses, or None if it has no name."""
    for part in where_conditions(select):
        sub_query = joined_sub_query(part)
        if sub_query is not None:
            yield only_input(context, environment, sub_query.query)

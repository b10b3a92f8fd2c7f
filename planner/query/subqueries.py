"""WHERE: plain conditions filter; ``IN (SELECT ...)`` and ``[NOT] EXISTS (SELECT ...)`` become semi and anti joins.

A sub-query may refer to the outer block in its own WHERE; those conditions become the condition of the join. Only
conditions that must be true on their own (joined by AND) are supported. ``NOT IN`` has other rules for NULL: a NULL on
either side is as good as an equal value, so unless both sides are known to have none, every row meets every other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from planner.context import Context, Environment
from planner.expressions.comparisons import compared
from planner.expressions.operands import comparable
from planner.expressions.typed import BOOLEAN, Expr, Ref, call, conjuncts, fields_of
from planner.properties.nullability import may_be_null
from planner.query import from_clause, grouping, ordering, queries, scalar_subqueries
from planner.query.cached_results import has_cached_hint
from planner.query.from_clause import From
from planner.query.hint_scope import BlockHints
from planner.query.inputs import inputs_of, sources_of
from planner.query.subquery_values import check_around, join_values
from planner.relations import Join, Relation, StateInput, identity
from planner.syntax.dialect import offset_of, select_offset
from planner.translation.expressions import clause_translator
from planner.translation.scope import Input, Scope

__all__ = ["apply_where", "filtered_block", "joins_in_where", "plain_conditions", "plain_select", "semi_join_inputs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SubQuery:
    """``[value] [NOT] IN/EXISTS (query)``."""

    query: exp.Expr
    value: exp.Expr | None
    negated: bool
    offset: int


def _parts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(node, exp.And):
        yield from _parts(node.this)
        yield from _parts(node.expression)
    elif isinstance(node, exp.Paren):
        inner = list(_parts(node.this))
        yield from inner if len(inner) > 1 or _sub_query(node.this) else [node]
    elif node is not None:
        yield node


def _where(select: exp.Select) -> list[exp.Expr]:
    clause = select.args.get("where")
    return list(_parts(clause.this)) if clause is not None else []


def _sub_query(node: exp.Expr) -> _SubQuery | None:
    negated, inner = False, node
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    query = inner.this if isinstance(inner, exp.Exists) else inner.args.get("query")
    if not isinstance(query, exp.Query) or scalar_subqueries.is_one_group(query):
        return None  # the latter is a value, whether it has rows or not
    if isinstance(inner, exp.Exists):
        return _SubQuery(query=inner.this, value=None, negated=negated, offset=offset_of(inner))
    if isinstance(inner, exp.In):
        return _SubQuery(query=query, value=inner.this, negated=negated, offset=offset_of(inner))
    return None


def joins_in_where(select: exp.Select) -> bool:
    """Whether WHERE has sub-queries, which become joins."""
    values = (value for part in plain_conditions(select) for value in scalar_subqueries.values_in(part, filters=True))
    return any(_sub_query(part) for part in _where(select)) or any(True for _ in values)


def plain_conditions(select: exp.Select) -> list[exp.Expr]:
    """The conditions of WHERE that do not become semi or anti joins."""
    return [part for part in _where(select) if not _sub_query(part)]


def semi_join_inputs(context: Context, environment: Environment, select: exp.Select) -> Iterator[Input | None]:
    """The right input of each semi or anti join as a hint would address it; None if it has no name."""
    for part in _where(select):
        found = _sub_query(part)
        if found is not None:
            yield _only_input(context, environment, found.query)


def _only_input(context: Context, environment: Environment, query: exp.Expr) -> Input | None:
    select = plain_select(query)
    if select is None or grouping.is_grouped(select) or select.args.get("distinct") or joins_in_where(select):
        return None
    inputs = [i for node in sources_of(select) for i in inputs_of(context, environment, node)]
    return inputs[0] if len(inputs) == 1 else None


def plain_select(query: exp.Expr) -> exp.Select | None:
    """The one SELECT that a query is, parentheses aside; None if it is more."""
    while isinstance(query, exp.Subquery) and not ordering.is_ordered(query) and not query.args.get("with_"):
        query = query.this
    return query if isinstance(query, exp.Select) else None


def apply_where(
    context: Context,
    environment: Environment,
    found: From,
    select: exp.Select,
    hints: BlockHints,
    *,
    aggregates: bool,
) -> tuple[Relation, Scope]:
    """Filter ``found`` by the WHERE clause of ``select``."""
    relation, correlated = filtered_block(context, environment, found, select, hints, aggregates=aggregates)
    assert not correlated
    return relation, found.scope


def filtered_block(
    context: Context,
    environment: Environment,
    found: From,
    select: exp.Select,
    hints: BlockHints,
    *,
    aggregates: bool,
) -> tuple[Relation, tuple[Expr, ...]]:
    """The filtered relation, and the conditions that refer to an outer block.

    If the block ``aggregates``, what hints say of its input is said of the aggregate, as in Flink, and of no join here.
    """
    conditions = plain_conditions(select)
    translator = clause_translator(context, found.scope, "WHERE")
    values = scalar_subqueries.compile_values(context, environment, translator, conditions, filters=True)
    translator = replace(translator, values={place: value.worth for place, value in values.items()})
    of_values = {f.id for value in values.values() for f in value.fields}
    own = {f.id for f in found.relation.fields} | of_values
    plain: list[Expr] = []
    above: list[Expr] = []
    correlated: list[Expr] = []
    for condition in (each for part in conditions for each in conjuncts(translator.condition(part))):
        ids = {f.id for f in fields_of(condition)}
        (correlated if not ids <= own else above if ids & of_values else plain).append(condition)
    relation = queries.filtered(found.relation, tuple(plain), environment.block)
    name = None if aggregates else found.name
    for sub_query in filter(None, map(_sub_query, _where(select))):
        relation = _semi_join(
            context, environment, relation, found.scope, sub_query, StateInput(name=name, hint=hints.of(name)), hints
        )
        name = None
    if values:
        state = StateInput(name=name, hint=hints.of(name))
        relation = join_values(context, relation, values, state, environment.block, conditions=tuple(above))
        relation = queries.filtered(relation, tuple(above), environment.block)
    return relation, tuple(correlated)


def _semi_join(
    context: Context,
    environment: Environment,
    left: Relation,
    scope: Scope,
    sub_query: _SubQuery,
    left_state: StateInput,
    hints: BlockHints,
) -> Relation:
    offset, keyless = sub_query.offset, False
    right, outputs, on = _right_side(context, environment, sub_query, scope)
    if sub_query.value is not None:
        same, keyless = _in(context, sub_query, scope, (left, right), outputs)
        on = (*same, *on)
    check_around(context, on, {f.id for f in (*left.fields, *right.fields)})
    named = _only_input(context, environment, sub_query.query)
    taken = named is not None and any(named.name == i.name for i in scope.inputs)
    name = named.name if named is not None and not taken else None
    return Join(
        left=left,
        right=right,
        join_type="anti" if sub_query.negated else "semi",
        on=on,
        items=identity(left.fields),
        states=(left_state, StateInput(name=name, hint=hints.of(name))),
        keyless=keyless,
        offset=offset,
        base=(*left.base, *right.base),
        block=environment.block,
    )


def _in(
    context: Context, sub_query: _SubQuery, scope: Scope, sides: tuple[Relation, Relation], outputs: tuple[Expr, ...]
) -> tuple[tuple[Expr, ...], bool]:
    """What of ``[NOT] IN`` joins the two sides, and whether NULLs make every row meet every other."""
    source, offset, node = context.source, sub_query.offset, sub_query.value
    nodes = node.expressions if isinstance(node, exp.Tuple) else [node]
    if len(outputs) != len(nodes):
        what = "one value" if len(nodes) == 1 else f"{len(nodes)} values"
        columns = f"{len(outputs)} column{'s' * (len(outputs) != 1)}"
        advice = "select one column" if len(nodes) == 1 else f"select {len(nodes)} columns"
        raise source.error(f"IN compares {what} with {columns}", offset, advice)
    if sub_query.negated and len(nodes) > 1:
        advice = "write NOT EXISTS (SELECT ... WHERE inner.x = outer.x AND inner.y = outer.y)"
        raise source.error("NOT IN of several values is not supported", offset, advice)
    translator = clause_translator(context, scope, "WHERE")
    pairs = [
        comparable(source, "IN", (translator.expression(each), output), offset)
        for each, output in zip(nodes, outputs, strict=True)
    ]
    if not sub_query.negated:
        return tuple(compared("=", pair, offset) for pair in pairs), False
    (pair,) = pairs
    nulls = tuple(v for v, side in zip(pair, sides, strict=True) if may_be_null(context, side, v))
    same = compared("=", pair, offset)
    for value in nulls:
        same = call("OR", (same, call("IS NULL", (value,), BOOLEAN, offset)), BOOLEAN, offset)
    return (same,), bool(nulls)


def _right_side(
    context: Context, environment: Environment, sub_query: _SubQuery, scope: Scope
) -> tuple[Relation, tuple[Expr, ...], tuple[Expr, ...]]:
    """The sub-query's relation, its output expressions, and its conditions on the outer block."""
    select = plain_select(sub_query.query)
    if select is not None and context.batch and sub_query.value is None:
        select = ordering.without_idle_clauses(select)
    if (
        select is None
        or grouping.is_grouped(select)
        or select.args.get("distinct")
        or select.args.get("with_")
        or (context.batch and ordering.is_ordered(select))
        or has_cached_hint(context, select_offset(select))
    ):
        relation = queries.build_query(context, environment, sub_query.query)
        return relation, tuple(Ref(field=f) for f in relation.fields), ()
    queries.refuse_clauses(context, select)
    own = queries.block_hints(context, environment, select, aggregates=False)
    found = from_clause.build_from(context, environment, select, own, scope)
    relation, correlated = filtered_block(context, environment, found, select, own, aggregates=False)
    outputs: tuple[Expr, ...] = ()
    if sub_query.value is not None:
        translator = clause_translator(context, replace(found.scope, parent=None), "SELECT")
        outputs = tuple(e for _, e in queries.projections(context, select, translator))
    return relation, outputs, correlated

"""WHERE: plain conditions filter; ``IN (SELECT ...)`` and ``[NOT] EXISTS (SELECT ...)`` become semi and anti joins.

A sub-query may refer to the outer block in its own WHERE; those conditions become the condition of the join. Only
conditions that must be true on their own (joined by AND) are supported. ``NOT IN`` has other rules for NULL: a NULL on
either side is as good as an equal value, so unless both sides are known to have none, every row meets every other.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import comparable
from hintplan.planner.expressions.typed import BOOLEAN, Expr, Ref, call, conjuncts, fields_of
from hintplan.planner.properties.nullability import may_be_null
from hintplan.planner.query import ordering
from hintplan.planner.query.clauses import read_clauses, refuse_clauses
from hintplan.planner.query.columns import filtered, projections
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.from_clause import From, build_from
from hintplan.planner.query.hint_scope.block import block_hints
from hintplan.planner.query.hint_scope.state_ttl import BlockHints
from hintplan.planner.query.subqueries.plain_blocks import (
    PLAIN,
    beyond,
    check_idle,
    is_plain,
    refers_outwards,
    without_duplicates_kept,
    without_order,
)
from hintplan.planner.query.subquery_kinds import (
    SubQuery,
    check_looked_for,
    joined_sub_query,
    only_input,
    plain_conditions,
    plain_select,
    sub_queries_in,
    where_conditions,
)
from hintplan.planner.query.subquery_values import Value, check_around, join_values
from hintplan.planner.relations import Join, Relation, StateInput, identity
from hintplan.planner.syntax.dialect import select_offset
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Scope
from hintplan.planner.translation.translator import Translator
from hintplan.plans.text.counts import count


def apply_where(
    compiler: QueryCompiler, found: From, select: exp.Select, hints: BlockHints, *, aggregates: bool
) -> Relation:
    """Filter ``found`` by the WHERE clause of ``select``, which is no sub-query of another block."""
    relation, correlated = filtered_block(compiler, found, select, hints, aggregates=aggregates)
    assert not correlated
    return relation


def filtered_block(
    compiler: QueryCompiler, found: From, select: exp.Select, hints: BlockHints, *, aggregates: bool
) -> tuple[Relation, tuple[Expr, ...]]:
    """The filtered relation, and the conditions that refer to an outer block.

    If the block ``aggregates``, what hints say of its input is said of the aggregate, as in Flink, and of no join here.
    """
    context, conditions = compiler.context, plain_conditions(select)
    translator = clause_translator(context, found.scope, "WHERE")
    values = compiler.values(translator, sub_queries_in(conditions, filters=True))
    of_values = {f.id for value in values.values() for f in value.fields}
    own = {f.id for f in found.relation.fields} | of_values
    plain: list[Expr] = []
    above: list[Expr] = []
    correlated: list[Expr] = []
    for condition in _conjuncts(translator, conditions, values):
        ids = {f.id for f in fields_of(condition)}
        (correlated if not ids <= own else above if ids & of_values else plain).append(condition)
    relation = filtered(found.relation, tuple(plain), compiler.block)
    name = None if aggregates else found.name
    for sub_query in filter(None, map(joined_sub_query, where_conditions(select))):
        left = replace(found, relation=relation, name=name)
        relation = _semi_join(compiler, left, sub_query, hints)
        name = None
    if values:
        state = StateInput(name=name, hint=hints.of(name))
        relation = join_values(context, relation, values, state, compiler.block, conditions=tuple(above))
        relation = filtered(relation, tuple(above), compiler.block)
    return relation, tuple(correlated)


def _conjuncts(translator: Translator, conditions: list[exp.Expr], values: dict[int, Value]) -> list[Expr]:
    translator = replace(translator, values={place: value.worth for place, value in values.items()})
    return [each for part in conditions for each in conjuncts(translator.condition(part))]


def _semi_join(compiler: QueryCompiler, left: From, sub_query: SubQuery, hints: BlockHints) -> Relation:
    """The rows of ``left`` for which ``sub_query`` is true."""
    context, scope = compiler.context, left.scope
    left_state, keyless = StateInput(name=left.name, hint=hints.of(left.name)), False
    right, outputs, on = _right_side(compiler, sub_query, scope)
    if sub_query.value is not None:
        same, keyless = _in(context, sub_query, scope, (left.relation, right), outputs)
        on = (*same, *on)
    check_around(context, on, {f.id for f in (*left.relation.fields, *right.fields)})
    named = only_input(context, compiler.environment, sub_query.query)
    taken = named is not None and any(named.name == i.name for i in scope.inputs)
    name = named.name if named is not None and not taken else None
    return Join(
        left=left.relation,
        right=right,
        join_type="anti" if sub_query.negated else "semi",
        on=on,
        items=identity(left.relation.fields),
        states=(left_state, StateInput(name=name, hint=hints.of(name))),
        keyless=keyless,
        offset=sub_query.offset,
        base=(*left.relation.base, *right.base),
        block=compiler.block,
    )


def _in(
    context: Context, sub_query: SubQuery, scope: Scope, sides: tuple[Relation, Relation], outputs: tuple[Expr, ...]
) -> tuple[tuple[Expr, ...], bool]:
    """What of ``[NOT] IN`` joins the two sides, and whether NULLs make every row meet every other."""
    source, offset, node = context.source, sub_query.offset, sub_query.value
    assert node is not None
    check_looked_for(source, node)
    nodes = node.expressions if isinstance(node, exp.Tuple) else [node]
    if len(outputs) != len(nodes):
        what = "one value" if len(nodes) == 1 else f"{len(nodes)} values"
        columns = count(len(outputs), "column")
        advice = "select one column" if len(nodes) == 1 else f"select {len(nodes)} columns"
        raise source.error(f"IN compares {what} with {columns}", offset, advice)
    translator = clause_translator(context, scope, "WHERE")
    pairs = [
        comparable(source, _called(sub_query), (translator.expression(each), output), offset)
        for each, output in zip(nodes, outputs, strict=True)
    ]
    if not sub_query.negated:
        return tuple(compared(sub_query.operator, pair, offset) for pair in pairs), False
    found: list[Expr] = []
    keyless = sub_query.operator == "="
    for pair in pairs:
        nulls = tuple(v for v, side in zip(pair, sides, strict=True) if may_be_null(context, side, v))
        same = compared(sub_query.operator, pair, offset)
        for value in nulls:
            same = call("OR", (same, call("IS NULL", (value,), BOOLEAN, offset)), BOOLEAN, offset)
        found.append(same)
        keyless = keyless and bool(nulls)
    return tuple(found), keyless


def _called(sub_query: SubQuery) -> str:
    return "IN" if sub_query.operator == "=" else "a comparison with ANY or ALL"


def _right_side(
    compiler: QueryCompiler, sub_query: SubQuery, scope: Scope
) -> tuple[Relation, tuple[Expr, ...], tuple[Expr, ...]]:
    """The sub-query's relation, its output expressions, and its conditions on the outer block."""
    context, environment = compiler.context, compiler.environment
    written = plain_select(sub_query.query)
    select = None if written is None else _needed(compiler, sub_query, written, scope)
    if written is None or select is None:
        relation = compiler.apart(sub_query.query, beyond(context, sub_query.query, scope))
        return relation, tuple(Ref(field=f) for f in relation.fields), ()
    refuse_clauses(context, written)
    if not is_plain(context, select, listed=sub_query.value is not None):
        return _for_each(compiler, select, scope)
    read_clauses(context, select, *PLAIN)
    own = block_hints(context, environment, select, aggregates=False)
    found = build_from(compiler, select, own, scope)
    relation, correlated = filtered_block(compiler, found, select, own, aggregates=False)
    if sub_query.value is None:
        check_idle(compiler, written, found, relation)
        return relation, (), correlated
    translator = clause_translator(context, replace(found.scope, parent=None), "SELECT")
    return relation, tuple(e for _, e in projections(context, select, translator)), correlated


def _needed(compiler: QueryCompiler, sub_query: SubQuery, select: exp.Select, scope: Scope) -> exp.Select | None:
    """``select`` without clauses that mean nothing here; None if it has to be compiled by itself, and can be."""
    context, listed = compiler.context, sub_query.value is not None
    needed = select if listed else without_order(select)
    if is_plain(context, needed, listed=listed):
        return needed
    if not refers_outwards(compiler, select, scope):
        return None
    needed = without_duplicates_kept(needed)
    others = ("group", "having", "distinct", *ordering.CLAUSES)
    return needed if is_plain(context, needed, *others, listed=listed) else None


def _for_each(
    compiler: QueryCompiler, select: exp.Select, scope: Scope
) -> tuple[Relation, tuple[Expr, ...], tuple[Expr, ...]]:
    """The rows of ``select`` that it has for each of the values that it is compared by, such as the first of them."""
    source, called = compiler.context.source, "a sub-query"
    found = compiler.lateral(exp.Lateral(this=exp.Subquery(this=select)), scope, called)
    if found.domain is not None:
        message = "GROUP BY or DISTINCT in a sub-query that is compared by more than equality is not supported here"
        raise source.error(message, select_offset(select), "compare by equalities only")
    return found.relation, tuple(Ref(field=f) for f in found.input.fields), found.conditions

"""WHERE: plain conditions become filters; ``IN (SELECT ...)`` and ``[NOT] EXISTS`` become semi and anti joins.

A sub-query may refer to the outer block in its own WHERE, and such conditions become the join condition. If it refers
to that block elsewhere, it is decorrelated (:mod:`hintplan.planner.query.decorrelation`). Only conditions that AND
connects at the top of WHERE become such joins.

``NOT IN`` treats NULL differently: a NULL on either side counts as an equal value. So every row is compared with every
other, unless neither side can be NULL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import comparison_operands
from hintplan.planner.expressions.typed import (
    BOOLEAN,
    Call,
    Expr,
    Field,
    FieldRef,
    call,
    factored_conjuncts,
    referenced_fields,
)
from hintplan.planner.properties.nullability import may_be_null
from hintplan.planner.query import ordering
from hintplan.planner.query.clauses import read_clauses, refuse_clauses
from hintplan.planner.query.columns import filtered, projections
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.decorrelation import decorrelated, is_correlated
from hintplan.planner.query.domains import Domain, over_domain
from hintplan.planner.query.from_clause import From, build_from
from hintplan.planner.query.hint_scope import BlockHints, block_hints
from hintplan.planner.query.subqueries.plain_blocks import (
    PLAIN,
    check_idle,
    is_plain,
    refers_outwards,
    selects_outer,
    without_idle_distinct,
    without_order,
)
from hintplan.planner.query.subquery_kinds import (
    SubQuery,
    has_grouping_sets,
    is_one_group,
    joined_sub_query,
    only_input,
    plain_conditions,
    plain_select,
    sub_queries_in,
    where_conditions,
)
from hintplan.planner.query.subquery_values import SubqueryValue, join_values
from hintplan.planner.query.window_functions import has_windows
from hintplan.planner.relations import Item, LogicalCalc, LogicalJoin, Relation, StateInput, identity
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Scope
from hintplan.planner.translation.translator import Translator
from hintplan.plans.text.counts import count


def apply_where(
    compiler: QueryCompiler, from_clause: From, select: exp.Select, hints: BlockHints, *, aggregates: bool
) -> Relation:
    """Filter ``from_clause`` by the WHERE clause of ``select``, which may refer to an outer block."""
    relation, correlated = filtered_block(compiler, from_clause, select, hints, aggregates=aggregates)
    return filtered(relation, correlated, compiler.block)


def filtered_block(
    compiler: QueryCompiler, from_clause: From, select: exp.Select, hints: BlockHints, *, aggregates: bool
) -> tuple[Relation, tuple[Expr, ...]]:
    """Return the filtered relation, and the conditions that refer to an outer block.

    If the block ``aggregates``, hints for its input apply to the aggregate, as in Flink, and not to the joins here.
    """
    context, conditions = compiler.context, plain_conditions(select)
    translator = clause_translator(context, from_clause.scope, "WHERE")
    values = compiler.values(translator, sub_queries_in(conditions, filters=True))
    of_values = {f.id for value in values.values() for f in value.fields}
    own = {f.id for f in from_clause.relation.fields} | of_values
    plain: list[Expr] = []
    above: list[Expr] = []
    correlated: list[Expr] = []
    for condition in _conjuncts(translator, conditions, values):
        ids = {f.id for f in referenced_fields(condition)}
        (correlated if not ids <= own else above if ids & of_values else plain).append(condition)
    relation = filtered(from_clause.relation, tuple(plain), compiler.block)
    name = None if aggregates else from_clause.name
    for sub_query in filter(None, map(joined_sub_query, where_conditions(select))):
        left = replace(from_clause, relation=relation, name=name)
        relation = _semi_join(compiler, left, sub_query, hints)
        name = None
    if values:
        state = StateInput(name=name, hint=hints.of(name))
        relation = join_values(context, relation, values, state, compiler.block, conditions=tuple(above))
        relation = filtered(relation, tuple(above), compiler.block)
    return relation, tuple(correlated)


def _conjuncts(translator: Translator, conditions: list[exp.Expr], values: dict[int, SubqueryValue]) -> list[Expr]:
    translator = replace(translator, values={place: value.worth for place, value in values.items()})
    return [condition for part in conditions for condition in factored_conjuncts(translator.condition(part))]


def _semi_join(compiler: QueryCompiler, left: From, sub_query: SubQuery, hints: BlockHints) -> Relation:
    """Return the rows of ``left`` for which ``sub_query`` is true."""
    context, scope = compiler.context, left.scope
    left_state, keyless = StateInput(name=left.name, hint=hints.of(left.name)), False
    rows, operands = _asked(compiler, left, sub_query, left_state)
    side = _right_side(compiler, sub_query, scope)
    right, on = side.relation, side.on
    if side.domain is not None:
        right, same = over_domain(context, right, side.domain, left.relation, lambda expression: expression)
        on = (*on, *same)
    if sub_query.value is not None:
        same, keyless = _in(context, sub_query, operands, (rows, right), side.outputs)
        on = (*same, *on)
    if rows is not left.relation:
        left_state = StateInput()
    named = only_input(context, compiler.environment, sub_query.query)
    taken = named is not None and any(named.name == i.name for i in scope.inputs)
    name = named.name if named is not None and not taken else None
    return LogicalJoin(
        left=rows,
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


def _asked(
    compiler: QueryCompiler, left: From, sub_query: SubQuery, state: StateInput
) -> tuple[Relation, tuple[Expr, ...]]:
    """Compile the left side of IN, ANY or ALL; return ``left`` with the values of sub-queries, and the operands."""
    context, node = compiler.context, sub_query.value
    nodes = [] if node is None else node.expressions if isinstance(node, exp.Tuple) else [node]
    translator = clause_translator(context, left.scope, "WHERE")
    values = compiler.values(translator, sub_queries_in(nodes))
    translator = replace(translator, values={place: value.worth for place, value in values.items()})
    operands = tuple(map(translator.expression, nodes))
    return join_values(context, left.relation, values, state, compiler.block), operands


def _in(
    context: Context,
    sub_query: SubQuery,
    asked: tuple[Expr, ...],
    sides: tuple[Relation, Relation],
    outputs: tuple[Expr, ...],
) -> tuple[tuple[Expr, ...], bool]:
    """Return the join conditions of ``[NOT] IN``, and True if NULLs force a comparison of every pair of rows."""
    source, offset = context.source, sub_query.offset
    if len(outputs) != len(asked):
        what = "one value" if len(asked) == 1 else f"{len(asked)} values"
        columns = count(len(outputs), "column")
        advice = "select one column" if len(asked) == 1 else f"select {len(asked)} columns"
        raise source.error(f"IN compares {what} with {columns}", offset, advice)
    pairs = [
        comparison_operands(source, _called(sub_query), (operand, output), offset)
        for operand, output in zip(asked, outputs, strict=True)
    ]
    if not sub_query.negated:
        return tuple(compared(sub_query.operator, pair, offset) for pair in pairs), False
    conditions: list[Expr] = []
    keyless = sub_query.operator == "="
    for pair in pairs:
        nulls = tuple(v for v, side in zip(pair, sides, strict=True) if may_be_null(context, side, v))
        same = compared(sub_query.operator, pair, offset)
        for value in nulls:
            same = call("OR", (same, call("IS NULL", (value,), BOOLEAN, offset)), BOOLEAN, offset)
        conditions.append(same)
        keyless = keyless and bool(nulls)
    return tuple(conditions), keyless


def _called(sub_query: SubQuery) -> str:
    return "IN" if sub_query.operator == "=" else "a comparison with ANY or ALL"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Right:
    """The rows of a sub-query, its output expressions, and its join conditions with the outer block."""

    relation: Relation
    outputs: tuple[Expr, ...]
    on: tuple[Expr, ...]
    domain: Domain | None = None


def _right_side(compiler: QueryCompiler, sub_query: SubQuery, scope: Scope) -> _Right:
    context, environment = compiler.context, compiler.environment
    written = plain_select(sub_query.query)
    select = None if written is None else _needed(compiler, sub_query, written, scope)
    if written is None or select is None:
        relation = compiler.seeing(scope).query(sub_query.query)
        return _decorrelated(compiler, sub_query, relation, relation.fields)
    refuse_clauses(context, written)
    if not is_plain(context, select, listed=sub_query.value is not None):
        return _for_each(compiler, select, scope)
    read_clauses(context, select, *PLAIN)
    own = block_hints(context, environment, select, aggregates=False)
    source = build_from(compiler, select, own, scope)
    relation, correlated = filtered_block(compiler, source, select, own, aggregates=False)
    if sub_query.value is None:
        check_idle(compiler, written, source, relation)
        outputs: tuple[Expr, ...] = ()
    else:
        translator = clause_translator(context, source.scope, "SELECT")
        outputs = tuple(e for _, e in projections(context, select, translator))
    ids = {f.id for f in relation.fields}
    if is_correlated(relation) or any(f.id not in ids for e in outputs for f in referenced_fields(e)):
        rows = filtered(relation, correlated, compiler.block)
        items = tuple(Item(field=context.field("", e.type), expr=e) for e in outputs)
        listed = LogicalCalc(input=rows, filter=None, items=items, base=rows.base, block=rows.block) if items else rows
        return _decorrelated(compiler, sub_query, listed, tuple(item.field for item in items))
    return _Right(relation=relation, outputs=outputs, on=correlated)


def _decorrelated(
    compiler: QueryCompiler, sub_query: SubQuery, relation: Relation, outputs: tuple[Field, ...]
) -> _Right:
    whole = decorrelated(compiler.context, relation, compiler.block, sub_query.offset)
    fields = tuple(FieldRef(field=f) for f in outputs)
    return _Right(relation=whole.relation, outputs=fields, on=whole.on, domain=whole.domain)


def _needed(compiler: QueryCompiler, sub_query: SubQuery, select: exp.Select, scope: Scope) -> exp.Select | None:
    """Return ``select`` without clauses that have no effect here, or None if it must be compiled as a whole."""
    context, listed = compiler.context, sub_query.value is not None
    needed = select if listed else without_order(select)
    if is_plain(context, needed, listed=listed):
        return needed
    if not refers_outwards(compiler, select, scope):
        return None
    needed = without_idle_distinct(needed)
    clauses = ("group", "having", "distinct", *ordering.CLAUSES)
    if not is_plain(context, needed, *clauses, listed=listed) or not _is_for_each(compiler, needed, scope):
        return None
    return needed


def _is_for_each(compiler: QueryCompiler, select: exp.Select, scope: Scope) -> bool:
    """Return True if ``select`` can be a LATERAL query that only equalities in its WHERE connect to the outer block."""
    is_unlimited = ordering.is_ordered(select) and select.args.get("limit") is None
    is_ordered_distinct = select.args.get("distinct") is not None and ordering.is_ordered(select)
    clauses = [*select.expressions, *filter(None, [select.args.get("having")])]
    if is_one_group(select) and (ordering.is_ordered(select) or sub_queries_in(clauses)):
        return False
    if is_unlimited or is_ordered_distinct or has_grouping_sets(select) or has_windows(select):
        return False
    if selects_outer(compiler, select, scope):
        return False
    with compiler.context.on_trial():
        source = build_from(compiler, select, BlockHints(), scope)
        rows, correlated = filtered_block(compiler, source, select, BlockHints(), aggregates=False)
    own = {f.id for f in rows.fields}
    return not is_correlated(rows) and all(_is_equality(part, own) for part in correlated)


def _is_equality(part: Expr, own: set[int]) -> bool:
    if not isinstance(part, Call) or part.function != "=":
        return False
    sides = [{f.id in own for f in referenced_fields(e)} for e in part.args]
    return sorted(map(tuple, sides)) == [(False,), (True,)]


def _for_each(compiler: QueryCompiler, select: exp.Select, scope: Scope) -> _Right:
    """Compile ``select`` like a LATERAL query: LIMIT and groups apply per value that it is compared with."""
    lateral = compiler.lateral(exp.Lateral(this=exp.Subquery(this=select)), scope, "a sub-query")
    outputs = tuple(FieldRef(field=f) for f in lateral.input.fields)
    return _Right(relation=lateral.relation, outputs=outputs, on=lateral.conditions, domain=lateral.domain)

"""GROUP BY, HAVING and aggregate functions of a block.

Keys, arguments and filters of an aggregate are columns: what is more than that is computed in a calc below it, what the
SELECT list makes of the results in a calc above it.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from planner.context import Context, Environment
from planner.expressions.typed import (
    BIGINT,
    AggregateCallExpr,
    Call,
    Expr,
    Field,
    Literal,
    Ref,
    conjuncts,
    rewrite,
    walk,
)
from planner.query import queries, scalar_subqueries
from planner.query.ordering import SortKeys
from planner.query.subquery_values import join_values
from planner.relations import Aggregate, AggregateItem, Calc, Expand, Item, Relation, StateInput, identity
from planner.syntax.dialect import offset_of, select_offset
from planner.translation import aggregates
from planner.translation.expressions import clause_translator
from planner.translation.grouping_sets import GROUP_ID, GroupingSets, grouping_number, grouping_sets, is_grouping_call
from planner.translation.scope import Scope
from planner.translation.translator import only

__all__ = ["build", "column_for", "is_grouped"]


def is_grouped(select: exp.Select) -> bool:
    """Whether the block aggregates; SELECT DISTINCT alone does not count."""
    if select.args.get("group") is not None:
        return True
    clauses = [*select.expressions, *([select.args["having"]] if select.args.get("having") else [])]
    return any(_has_aggregate(c) for c in clauses)


def _has_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        return False
    if isinstance(node, exp.Anonymous) and node.name.upper() in aggregates.NAMES:
        return True
    return any(_has_aggregate(child) for child in node.iter_expressions())


def build(
    context: Context,
    environment: Environment,
    select: exp.Select,
    relation: Relation,
    scope: Scope,
    state: StateInput,
    order: SortKeys,
) -> tuple[Relation, tuple[Item, ...], tuple[Expr | None, ...]]:
    """The aggregation of ``relation``, filtered by HAVING, the items of the SELECT list over it, and the sort keys."""
    groups = _groups(context, select, scope)
    keys = groups.keys
    having = select.args.get("having")
    clauses = [*select.expressions, *([] if having is None else [having])]
    translator = clause_translator(context, scope, "SELECT", aggregates=True)
    values = scalar_subqueries.compile_values(context, environment, translator, clauses)
    translator = replace(translator, values={place: value.worth for place, value in values.items()})
    selected = queries.projections(context, select, translator)
    conditions: tuple[Expr, ...] = ()
    if having is not None:
        conditions = conjuncts(replace(translator, clause="HAVING").condition(having.this))
    in_order = replace(translator, clause="ORDER BY")
    sorted_by = [None if node is None else in_order.expression(node) for node in order.expressions]
    names = {e: n for n, e in reversed(selected) if isinstance(e, AggregateCallExpr)}
    calls = tuple(
        dict.fromkeys(
            e
            for root in (*(e for _, e in selected), *conditions, *(e for e in sorted_by if e is not None))
            for e in walk(root)
            if isinstance(e, AggregateCallExpr)
        )
    )
    computed: list[Item] = []
    key_fields = tuple(column_for(context, k, computed) for k in keys)
    by_keys, several = computed, len(groups.sets) > 1
    if several:  # what is aggregated does not become NULL in a set, so that it is a column of its own
        computed = []

    def column(expression: Expr) -> Field:
        return column_for(context, expression, computed, apart=key_fields if several else ())

    items = tuple(
        AggregateItem(
            field=context.field(names.get(c, ""), c.type),
            function=c.function,
            distinct=c.distinct,
            argument=None if c.argument is None else column(c.argument),
            filter=None if c.filter is None else column(c.filter),
            separator=c.separator,
        )
        for c in calls
    )
    if computed or by_keys:
        below = (*by_keys, *computed) if several else computed
        relation = Calc(
            input=relation,
            filter=None,
            items=(*identity(relation.fields), *below),
            base=relation.base,
            block=environment.block,
        )
    group_id: Field | None = None
    if several:
        relation, key_fields, group_id = _expanded(context, groups, key_fields, relation, environment.block)
    grouped: Relation = Aggregate(
        input=relation,
        keys=(*key_fields, *([] if group_id is None else [group_id])),
        calls=items,
        state=state,
        offset=select_offset(select),
        base=relation.base,
        block=environment.block,
    )
    results: dict[Expr, Field] = {
        **dict(zip(keys, key_fields, strict=True)),
        **{c: i.field for c, i in zip(calls, items, strict=True)},
    }
    known = {f.id for f in results.values()} | ({group_id.id} if group_id is not None else set())
    known |= {f.id for value in values.values() for f in value.fields}

    def over_results(expression: Expr) -> Expr:
        def change(e: Expr) -> Expr | None:
            if isinstance(e, Call) and is_grouping_call(e):
                return grouping_number(context.source, e, groups, group_id)
            return Ref(field=results[e], offset=e.offset) if e in results else None

        found = rewrite(expression, change)
        for e in walk(found):
            if isinstance(e, Ref) and e.field.id not in known:
                raise context.source.error(
                    f"column '{e.field.name}' is neither grouped nor aggregated",
                    e.offset,
                    f"add it to GROUP BY, or aggregate it, such as MAX({e.field.name})",
                )
        return found

    conditions = tuple(over_results(c) for c in conditions)
    grouped = join_values(
        context, grouped, values, StateInput(), environment.block, conditions=conditions, outer=over_results
    )
    grouped = queries.filtered(grouped, conditions, environment.block)
    outputs = ((n, over_results(e)) for n, e in selected)
    shown = tuple(Item(field=context.field_for(e, n), expr=e) for n, e in outputs)
    return grouped, shown, tuple(None if e is None else over_results(e) for e in sorted_by)


def column_for(context: Context, expression: Expr, computed: list[Item], *, apart: tuple[Field, ...] = ()) -> Field:
    """The field that holds ``expression``, computed if it is not a column, or if it is one of ``apart``."""
    if isinstance(expression, Ref) and expression.field not in apart:
        return expression.field
    for item in computed:
        if item.expr == expression:
            return item.field
    name = expression.field.name if isinstance(expression, Ref) else ""
    computed.append(Item(field=context.field(name, expression.type), expr=expression))
    return computed[-1].field


def _expanded(
    context: Context, groups: GroupingSets, keys: tuple[Field, ...], relation: Relation, block: str
) -> tuple[Relation, tuple[Field, ...], Field]:
    """``relation`` with a copy of its rows for each set, the fields that the ``keys`` are there, and the set's id."""
    items = tuple(Item(field=context.field(f.name, f.type.as_nullable()), expr=Ref(field=f)) for f in keys)
    expand = Expand(
        input=relation,
        keys=items,
        sets=groups.sets,
        passed=tuple(f for f in relation.fields if f not in keys),
        group_id=context.field(GROUP_ID, BIGINT),
        base=relation.base,
        block=block,
    )
    return expand, tuple(i.field for i in items), expand.group_id


def _groups(context: Context, select: exp.Select, scope: Scope) -> GroupingSets:
    source, group = context.source, select.args.get("group")
    if group is not None:
        only(source, group, "expressions", "all")
    translator = clause_translator(context, scope, "GROUP BY")

    def column(node: exp.Expr) -> Expr:
        expression = translator.expression(node)
        if isinstance(expression, Literal):
            raise source.error(
                "GROUP BY a constant is not supported: positions of the SELECT list are not counted",
                offset_of(node),
                "repeat the expression of the SELECT list",
            )
        if expression.type.root in ("ARRAY", "MAP", "ROW", "NULL", "INTERVAL"):
            raise source.error(f"GROUP BY does not take {expression.type}", offset_of(node), "group by scalar columns")
        return expression

    return grouping_sets(source, group, column)

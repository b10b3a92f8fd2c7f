"""GROUP BY, HAVING and aggregate functions of a block.

Keys, arguments and filters of an aggregate are columns: what is more than that is computed in a calc below it, what the
SELECT list makes of the results in a calc above it.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from planner import aggregates, queries
from planner.context import Context, Environment
from planner.dialect import offset_of, select_offset
from planner.expressions import AggregateCallExpr, Expr, Field, Literal, Ref, conjuncts, rewrite, walk
from planner.ordering import SortKeys
from planner.relations import Aggregate, AggregateItem, Calc, Item, Relation, StateInput, identity
from planner.scope import Scope
from planner.translation import Translator, only
from planner.unique_keys import is_insert_only
from plans.changelog import ORDERED

__all__ = ["build", "is_grouped"]


def is_grouped(context: Context, select: exp.Select) -> bool:
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
    keys = _keys(context, select, scope)
    translator = Translator(
        source=context.source, scope=scope, clause="SELECT", functions=context.catalog.functions, aggregates=True
    )
    selected = queries.projections(context, select, translator)
    having = select.args.get("having")
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
    _check_order(context, relation, calls)
    computed: list[Item] = []
    key_fields = tuple(_column(context, k, computed) for k in keys)
    items = tuple(
        AggregateItem(
            field=context.field(names.get(c, ""), c.type),
            function=c.function,
            distinct=c.distinct,
            argument=None if c.argument is None else _column(context, c.argument, computed),
            filter=None if c.filter is None else _column(context, c.filter, computed),
            separator=c.separator,
        )
        for c in calls
    )
    if computed:
        relation = Calc(
            input=relation,
            filter=None,
            items=(*identity(relation.fields), *computed),
            base=relation.base,
            block=environment.block,
        )
    grouped: Relation = Aggregate(
        input=relation,
        keys=tuple(dict.fromkeys(key_fields)),
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
    known = {f.id for f in results.values()}

    def over_results(expression: Expr) -> Expr:
        def change(e: Expr) -> Expr | None:
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

    grouped = queries.filtered(grouped, tuple(over_results(c) for c in conditions), environment.block)
    outputs = ((n, over_results(e)) for n, e in selected)
    shown = tuple(Item(field=context.field_for(e, n), expr=e) for n, e in outputs)
    return grouped, shown, tuple(None if e is None else over_results(e) for e in sorted_by)


def _check_order(context: Context, relation: Relation, calls: tuple[AggregateCallExpr, ...]) -> None:
    """Refuse calls that would have to take rows back though only their order says what they came from."""
    ordered = next((c for c in calls if c.function in ORDERED), None)
    if ordered is not None and not context.batch and not is_insert_only(relation):
        raise context.source.error(
            f"{ordered.function} cannot take rows back, but the rows it aggregates can change",
            ordered.offset,
            "aggregate rows that are inserted only, or use MIN or MAX",
        )


def _column(context: Context, expression: Expr, computed: list[Item]) -> Field:
    """The field that holds ``expression``, computed if it is not a column."""
    if isinstance(expression, Ref):
        return expression.field
    for item in computed:
        if item.expr == expression:
            return item.field
    computed.append(Item(field=context.field("", expression.type), expr=expression))
    return computed[-1].field


def _keys(context: Context, select: exp.Select, scope: Scope) -> tuple[Expr, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    source = context.source
    several = next(group.find_all(exp.GroupingSets, exp.Rollup, exp.Cube), None)
    if several is not None:
        name = {exp.Rollup: "ROLLUP", exp.Cube: "CUBE"}.get(type(several), "GROUPING SETS")
        raise source.error(f"{name} is not supported", offset_of(several), "UNION ALL one query per grouping")
    only(source, group, "expressions")
    translator = Translator(source=source, scope=scope, clause="GROUP BY", functions=context.catalog.functions)
    found: list[Expr] = []
    for node in group.expressions:
        expression = translator.expression(node)
        if isinstance(expression, Literal):
            raise source.error(
                "GROUP BY a constant is not supported: positions of the SELECT list are not counted",
                offset_of(node),
                "repeat the expression of the SELECT list",
            )
        if expression.type.root in ("ARRAY", "MAP", "ROW", "NULL", "INTERVAL"):
            raise source.error(f"GROUP BY does not take {expression.type}", offset_of(node), "group by scalar columns")
        found.append(expression)
    return tuple(dict.fromkeys(found))

"""GROUP BY, HAVING and aggregate functions of a block.

The keys, arguments and filters of an aggregate are columns. A calc below the aggregate computes what is not a column
yet, and a calc above it computes the SELECT list from the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import (
    BIGINT,
    UNKNOWN,
    AggregateCallExpr,
    Call,
    Expr,
    Field,
    FieldRef,
    Literal,
    factored_conjuncts,
    referenced_fields,
    replace_outermost,
    walk,
)
from hintplan.planner.properties.windows import windows_of
from hintplan.planner.query.columns import check_own, column_for, filtered, projections
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.group_windows import GroupWindow, check_arguments, group_window
from hintplan.planner.query.ordering import SortKeys
from hintplan.planner.query.select_aliases import instead_of_position, refuse_aliases
from hintplan.planner.query.subquery_kinds import sub_queries_in
from hintplan.planner.query.subquery_values import SubqueryValue, join_values
from hintplan.planner.relations import (
    AggregateItem,
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalExpand,
    Relation,
    StateInput,
    identity,
)
from hintplan.planner.syntax.dialect import offset_of, select_offset
from hintplan.planner.translation.aggregates import check_retractions
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.grouping_sets import (
    GROUP_ID,
    GroupingSets,
    grouping_number,
    grouping_sets,
    is_grouping_call,
)
from hintplan.planner.translation.scope import Scope
from hintplan.planner.translation.translator import only


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedInput:
    """The rows to group, the names that expressions can use, and the input that a hint for the aggregate names.

    ``called`` names the grouping query in messages, if its names include an outer block that only WHERE may refer to.
    """

    relation: Relation
    scope: Scope
    state: StateInput
    called: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The groups of a block; its HAVING conditions, SELECT items and sort keys read the columns of ``relation``.

    ``counts`` are the ids of the columns that hold a COUNT, which is 0 for empty input.
    """

    relation: Relation
    having: tuple[Expr, ...]
    items: tuple[Item, ...]
    sorted_by: tuple[Expr | None, ...]
    counts: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clauses:
    """The clauses of a grouping block that read its groups; ``values`` are the sub-queries in them."""

    selected: tuple[tuple[str, Expr], ...]
    having: tuple[Expr, ...]
    sorted_by: tuple[Expr | None, ...]
    values: Mapping[int, SubqueryValue]

    @property
    def calls(self) -> tuple[AggregateCallExpr, ...]:
        """Return the distinct aggregate calls, in the order in which they are written."""
        roots = (*(e for _, e in self.selected), *self.having, *(e for e in self.sorted_by if e is not None))
        return tuple(dict.fromkeys(e for root in roots for e in walk(root) if isinstance(e, AggregateCallExpr)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grouped:
    """An aggregate, its columns that hold the keys and calls, and the column of the set's id for several sets."""

    relation: LogicalAggregate
    groups: GroupingSets
    results: Mapping[Expr, Field]
    group_id: Field | None


def build_aggregate(
    compiler: QueryCompiler, select: exp.Select, rows: GroupedInput, order: SortKeys
) -> tuple[Relation, tuple[Item, ...], tuple[Expr | None, ...]]:
    """Aggregate ``rows`` and filter by HAVING; return the relation, the items of the SELECT list, and the sort keys."""
    groups = groups_of(compiler, select, rows, order)
    return filtered(groups.relation, groups.having, compiler.block), groups.items, groups.sorted_by


def groups_of(
    compiler: QueryCompiler, select: exp.Select, rows: GroupedInput, order: SortKeys, by: tuple[Field, ...] = ()
) -> Groups:
    """Aggregate ``rows`` by the keys of ``select`` and by the columns ``by``."""
    context = compiler.context
    window = group_window(context, select, rows.relation, rows.scope, compiler.block)
    groups = _groups(context, select, rows.scope, window)
    if by and len(groups.sets) > 1:
        message = "GROUPING SETS, CUBE and ROLLUP in a query that is compared with another are not supported"
        raise context.source.error(message, offset_of(select.args["group"]), "write UNION ALL of the groups")
    clauses = _clauses(compiler, select, rows.scope, order, window)
    _check_own(context, rows, groups, clauses, window)
    grouped = _aggregated(compiler, select, rows, groups, clauses, by, window)
    results = {f.id for f in grouped.results.values()} | (
        {grouped.group_id.id} if grouped.group_id is not None else set()
    )
    results |= {f.id for value in clauses.values.values() for f in value.fields}
    own = {f.id for f in rows.relation.fields}

    def over_results(expression: Expr) -> Expr:
        return _over_results(context, select, grouped, own - results, expression)

    conditions = tuple(over_results(c) for c in clauses.having)
    relation = join_values(
        context,
        grouped.relation,
        clauses.values,
        StateInput(),
        compiler.block,
        conditions=conditions,
        outer=over_results,
    )
    outputs = ((n, over_results(e)) for n, e in clauses.selected)
    return Groups(
        relation=relation,
        having=conditions,
        items=tuple(Item(field=context.field_for(e, n), expr=e) for n, e in outputs),
        sorted_by=tuple(None if e is None else over_results(e) for e in clauses.sorted_by),
        counts=frozenset(grouped.results[c].id for c in clauses.calls if c.function == "COUNT"),
    )


def _check_own(
    context: Context, rows: GroupedInput, groups: GroupingSets, clauses: _Clauses, window: GroupWindow | None
) -> None:
    """Refuse columns of an outer block outside WHERE, if ``rows.called`` is set."""
    if rows.scope.parent is None or not rows.called:
        return
    own = {f.id for f in rows.relation.fields} | {f.id for value in clauses.values.values() for f in value.fields}
    own |= set() if window is None else {f.id for f in window.fields}
    sorted_by = (e for e in clauses.sorted_by if e is not None)
    for root in (*(e for _, e in clauses.selected), *clauses.having, *sorted_by, *groups.keys):
        check_own(context, root, own, rows.called)


def _clauses(
    compiler: QueryCompiler, select: exp.Select, scope: Scope, order: SortKeys, window: GroupWindow | None
) -> _Clauses:
    context, having = compiler.context, select.args.get("having")
    nodes = [*select.expressions, *([] if having is None else [having])]
    translator = clause_translator(context, scope, "SELECT", aggregates=True)
    values = compiler.values(translator, sub_queries_in(nodes))
    worths = {place: value.worth for place, value in values.items()}
    translator = replace(translator, values=worths if window is None else {**worths, **window.values})
    selected = tuple(projections(context, select, translator))
    conditions: tuple[Expr, ...] = ()
    if having is not None:
        refuse_aliases(context.source, scope, select, having.this, "HAVING")
        conditions = factored_conjuncts(replace(translator, clause="HAVING").condition(having.this))
    in_order = replace(translator, clause="ORDER BY")
    sorted_by = tuple(None if node is None else in_order.expression(node) for node in order.expressions)
    return _Clauses(selected=selected, having=conditions, sorted_by=sorted_by, values=values)


def _aggregated(
    compiler: QueryCompiler,
    select: exp.Select,
    rows: GroupedInput,
    groups: GroupingSets,
    clauses: _Clauses,
    by: tuple[Field, ...],
    window: GroupWindow | None,
) -> _Grouped:
    context, relation, calls = compiler.context, rows.relation, clauses.calls
    check_retractions(context, calls, relation)
    if window is not None:
        check_arguments(context, window, calls)
    computed: list[Item] = []
    outer = _outer_fields(relation, (*(key for key in groups.keys if window is None or key != window.key), *calls))
    key_fields = tuple(column_for(context, k, computed, apart=outer) for k in groups.keys)
    by_keys, several = computed, len(groups.sets) > 1
    if several:  # a grouping set makes keys NULL, but not arguments, so an argument needs its own column
        computed = []
    items = _calls(context, clauses, computed, apart=(*outer, *key_fields) if several else outer)
    if computed or by_keys:
        below = (*by_keys, *computed) if several else computed
        relation = LogicalCalc(
            input=relation,
            filter=None,
            items=(*identity(relation.fields), *below),
            base=relation.base,
            block=compiler.block,
        )
    group_id: Field | None = None
    if window is not None:
        relation = window.over(relation, (*by, *key_fields))
        by = (*by, *window.keys)
    if several:
        relation, key_fields, groups, group_id = _expanded(context, groups, key_fields, relation, compiler.block)
    grouped = LogicalAggregate(
        input=relation,
        keys=(*(f for f in by if f not in key_fields), *key_fields, *([] if group_id is None else [group_id])),
        calls=items,
        state=rows.state,
        offset=select_offset(select),
        base=relation.base,
        block=compiler.block,
    )
    results: dict[Expr, Field] = {
        **dict(zip((*groups.fixed, *groups.keys), key_fields, strict=True)),
        **{c: i.field for c, i in zip(calls, items, strict=True)},
    }
    return _Grouped(relation=grouped, groups=groups, results=results, group_id=group_id)


def _outer_fields(relation: Relation, expressions: Iterable[Expr]) -> tuple[Field, ...]:
    """Return the columns of an outer block that ``expressions`` over ``relation`` read."""
    own = {f.id for f in relation.fields}
    return tuple(f for e in expressions for f in referenced_fields(e) if f.id not in own)


def _calls(
    context: Context, clauses: _Clauses, computed: list[Item], *, apart: tuple[Field, ...]
) -> tuple[AggregateItem, ...]:
    """Return the aggregate calls over columns; append to ``computed`` what is not a column yet."""
    names = {e: n for n, e in reversed(clauses.selected) if isinstance(e, AggregateCallExpr)}

    return tuple(
        AggregateItem(
            field=context.field(names.get(c, ""), c.type),
            function=c.function,
            distinct=c.distinct,
            arguments=tuple(column_for(context, a, computed, apart=apart) for a in c.arguments),
            filter=None if c.filter is None else column_for(context, c.filter, computed, apart=apart),
            separator=c.separator,
        )
        for c in clauses.calls
    )


def _over_results(context: Context, select: exp.Select, grouped: _Grouped, lost: set[int], expression: Expr) -> Expr:
    """Rewrite ``expression`` to read the aggregate's columns; raise SqlError if it reads a column in ``lost``.

    These are columns that the aggregate reads, but does not return.
    """

    def change(e: Expr) -> Expr | None:
        if isinstance(e, Call) and is_grouping_call(e):
            return grouping_number(context.source, e, grouped.groups, grouped.group_id)
        return FieldRef(field=grouped.results[e], offset=e.offset) if e in grouped.results else None

    changed = replace_outermost(expression, change)
    for e in walk(changed):
        if isinstance(e, FieldRef) and e.field.id in lost:
            advice = f"add it to GROUP BY, or aggregate it, such as MAX({e.field.name})"
            numbers = (k.text for k in grouped.groups.keys if isinstance(k, Literal) and k.type.is_integer)
            number = next(filter(None, numbers), None)
            if number is not None:
                advice = instead_of_position(context.source, select, int(number))
            raise context.source.error(f"column '{e.field.name}' is neither grouped nor aggregated", e.offset, advice)
    return changed


def _expanded(
    context: Context, groups: GroupingSets, keys: tuple[Field, ...], relation: Relation, block: str
) -> tuple[Relation, tuple[Field, ...], GroupingSets, Field]:
    """Copy the rows of ``relation`` once per grouping set.

    Returns the relation, its fields for the keys, the sets, and the field of the set's id. The columns of a window that
    all sets have are no keys of the sets, so that the rows keep their window.
    """
    windows = frozenset(each for window in windows_of(relation) for each in window.ids)
    reduced = groups.without(frozenset(place for place, key in enumerate(keys) if key.id in windows))
    is_fixed = [expression in reduced.fixed for expression in groups.keys]
    fixed = tuple(key for key, fixes in zip(keys, is_fixed, strict=True) if fixes)
    keys = tuple(key for key, fixes in zip(keys, is_fixed, strict=True) if not fixes)
    items = tuple(Item(field=context.field(f.name, f.type.as_nullable()), expr=FieldRef(field=f)) for f in keys)
    expand = LogicalExpand(
        input=relation,
        keys=items,
        sets=reduced.sets,
        passed=tuple(f for f in relation.fields if f not in keys),
        group_id=context.field(GROUP_ID, BIGINT),
        base=relation.base,
        block=block,
    )
    return expand, (*fixed, *(i.field for i in items)), reduced, expand.group_id


def _groups(context: Context, select: exp.Select, scope: Scope, window: GroupWindow | None) -> GroupingSets:
    source, group = context.source, select.args.get("group")
    if group is not None:
        only(source, group, "expressions", "all")
    translator = clause_translator(context, scope, "GROUP BY")

    def column(node: exp.Expr) -> Expr:
        if window is not None and node is window.node:
            return window.key
        refuse_aliases(source, scope, select, node, "GROUP BY")
        expression = translator.expression(node)
        if expression is not UNKNOWN and expression.type.root in ("NULL", "INTERVAL"):
            raise source.error(f"GROUP BY does not take {expression.type}", offset_of(node), "group by scalar columns")
        return expression

    return grouping_sets(source, group, column)

"""LATERAL (SELECT ...): a query in FROM whose WHERE may refer to the inputs before it.

It becomes a join on the compared values.

- ORDER BY and LIMIT apply to each row of the left side. So the rows of the query are numbered per compared value, which
  requires that all comparisons are equalities.
- A query that aggregates or removes duplicates does so for each compared value. If some comparisons are not equalities,
  its rows are first joined with these values (:mod:`hintplan.planner.query.domains`). Without GROUP BY, it has one row
  even on empty input. This row is computed above the join that brings the group, and its COUNT is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.expressions.typed import BOOLEAN, Call, Expr, FieldRef, call, referenced_fields, replace_outermost
from hintplan.planner.properties.nullability import may_be_null
from hintplan.planner.query import grouping, ordering
from hintplan.planner.query.clauses import read_clauses, refuse_clauses
from hintplan.planner.query.columns import check_comparable, check_own, column_for, distinct_fields, filtered
from hintplan.planner.query.compiler import Lateral, OneGroup, QueryCompiler
from hintplan.planner.query.domains import Domain
from hintplan.planner.query.from_clause import build_from
from hintplan.planner.query.hint_scope import block_hints
from hintplan.planner.query.ordering import SortKeys
from hintplan.planner.query.sources.inputs import alias_of
from hintplan.planner.query.subqueries.block import SubQueryBlock, block_columns, joined_on, read_block
from hintplan.planner.query.subqueries.empty_groups import zero_if_absent
from hintplan.planner.query.subquery_kinds import is_grouped, is_one_group, sub_queries_in
from hintplan.planner.query.where_clause import filtered_block
from hintplan.planner.relations import Item, LogicalAggregate, LogicalCalc, Relation, UnnamedInput, identity
from hintplan.planner.syntax.dialect import offset_of, select_offset
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Input, Scope
from hintplan.planner.translation.translator import only

_ALLOWED = ("hint", "expressions", "from_", "joins", "where", "group", "having", "distinct", *ordering.CLAUSES)


def compile_lateral(compiler: QueryCompiler, node: exp.Lateral, outer: Scope, called: str) -> Lateral:
    """Compile the query at ``node``: its rows, and the conditions that compare them with the names of ``outer``.

    Messages name the query as ``called``, since it may be a sub-query that is compiled like a LATERAL query.
    """
    context, select, alias = compiler.context, node.this.this, alias_of(node)
    refuse_clauses(context, select)
    only(context.source, node.this, "this")
    read_clauses(context, select, *_ALLOWED)
    inner = compiler.within(replace(compiler.environment, block=alias or compiler.block, set_operation=""))
    keys = ordering.order_by_keys(context, select)
    by_groups = is_grouped(select) or select.args.get("distinct") is not None
    source = (grouped_rows if by_groups else _plain_rows)(inner, node, select, keys, outer, called)
    names = _names(compiler, node, [item.field.name for item in source.items])
    shown = tuple(
        Item(field=context.field(name, item.expr.type), expr=item.expr)
        for name, item in zip(names, source.items, strict=True)
    )
    fields = tuple(item.field for item in shown)
    rows, one_group = source.relation, source.one_group
    if one_group is not None:
        one_group = replace(one_group, items=shown)
    else:
        if ordering.is_ordered(select):
            rows = _first(inner, select, source, keys, shown, called)
        rows = LogicalCalc(
            input=rows, filter=None, items=(*shown, *identity(rows.fields)), base=rows.base, block=inner.block
        )
    return Lateral(
        relation=replace(rows, base=(alias,) if alias else rows.base),
        input=Input(name=alias, kind="sub-query", fields=fields, offset=offset_of(node)),
        conditions=source.conditions,
        domain=source.domain,
        one_group=one_group,
    )


def _plain_rows(
    compiler: QueryCompiler, node: exp.Lateral, select: exp.Select, keys: SortKeys, outer: Scope, called: str
) -> LateralRows:
    """Return the rows of a query that does not aggregate."""
    context = compiler.context
    hints = block_hints(context, compiler.environment, select, aggregates=False)
    source = build_from(compiler, select, hints, outer)
    rows, conditions = filtered_block(compiler, source, select, hints, aggregates=False)
    items, sorted_by = ordering.select_list_items(
        context, select, clause_translator(context, source.scope, "SELECT"), keys
    )
    own = frozenset(f.id for f in rows.fields)
    for expression in (*(item.expr for item in items), *(e for e in sorted_by if e is not None)):
        check_own(context, expression, own, called)
    return LateralRows(relation=rows, items=items, sorted_by=sorted_by, conditions=conditions)


def _at(compiler: QueryCompiler, ordered: exp.Ordered, shown: tuple[Item, ...], position: int | None) -> Expr:
    fields = tuple(item.field for item in shown)
    chosen = ordering.at_position(compiler.context, ordered, position or 0, fields)
    return next(item.expr for item in shown if item.field == chosen)


def _names(compiler: QueryCompiler, node: exp.Lateral, names: list[str]) -> list[str]:
    alias = node.args.get("alias")
    columns = [c.name for c in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
    if columns and len(columns) != len(names):
        message = f"{len(columns)} column names for {len(names)} columns"
        raise compiler.context.source.error(message, offset_of(node.args["alias"]), "name each column once")
    return columns or names


def _first(
    compiler: QueryCompiler,
    select: exp.Select,
    lateral: LateralRows,
    keys: SortKeys,
    shown: tuple[Item, ...],
    called: str,
) -> Relation:
    """Keep the first rows for each combination of the values that the conditions compare."""
    context, rows = compiler.context, lateral.relation
    sorted_by = [
        _at(compiler, node, shown, position) if e is None else e
        for node, position, e in zip(keys.nodes, keys.positions, lateral.sorted_by, strict=True)
    ]
    own = frozenset(f.id for f in rows.fields)
    compared = [_own_side(part, own) for part in lateral.conditions]
    if select.args.get("limit") is None:
        raise context.source.error("ORDER BY without LIMIT has no effect in LATERAL", offset_of(select), "add LIMIT")
    if None in compared:
        message = f"LIMIT in {called} that is compared by more than equality is not supported"
        raise context.source.error(message, offset_of(select.args["limit"]), "compare by equalities only")
    if context.batch and not sorted_by:
        message = "rows of a batch job have no order of arrival"
        raise context.source.error(message, offset_of(select.args["limit"]), "add ORDER BY")
    values = list(dict.fromkeys(e for e in compared if e is not None))
    nullable = [e for e in values if may_be_null(context, rows, e)]
    rows = filtered(rows, tuple(call("IS NOT NULL", (e,), BOOLEAN, 0) for e in nullable), compiler.block)
    computed: list[Item] = []
    partition, order = (tuple(column_for(context, e, computed) for e in part) for part in (values, sorted_by))
    if computed:
        items = (*identity(rows.fields), *computed)
        rows = LogicalCalc(input=rows, filter=None, items=items, base=rows.base, block=compiler.block)
    return ordering.first_of_each(context, select, rows, keys, order, partition, compiler.block)


def _own_side(condition: Expr, own: frozenset[int]) -> Expr | None:
    """Return the query's own side of an equality, or None if the condition is not an equality or mixes both sides."""
    if isinstance(condition, Call) and condition.function == "=":
        for mine, other in (condition.args, condition.args[::-1]):
            sides = [{f.id in own for f in referenced_fields(e)} for e in (mine, other)]
            if sides == [{True}, {False}]:
                return mine
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LateralRows:
    """The ``items`` that a query selects from ``relation``, its sort keys, and its join ``conditions``."""

    relation: Relation
    items: tuple[Item, ...]
    sorted_by: tuple[Expr | None, ...]
    conditions: tuple[Expr, ...]
    domain: Domain | None = None
    one_group: OneGroup | None = None


def grouped_rows(
    compiler: QueryCompiler, node: exp.Lateral, select: exp.Select, keys: SortKeys, outer: Scope, called: str
) -> LateralRows:
    """Return the groups or distinct rows of ``select`` per combination of the ``outer`` values in its comparisons."""
    _check_form(compiler, select, called)
    block = read_block(compiler, outer, node, select, select)
    if block.domain is not None and ordering.is_ordered(select):
        message = f"LIMIT in {called} that is compared by more than equality is not supported"
        place = select.args.get("limit") or select
        raise compiler.context.source.error(message, offset_of(place), "compare by equalities only")
    rows, by, _ = block_columns(block, [])
    lateral = LateralRows(relation=rows, items=(), sorted_by=(), conditions=joined_on(block, by), domain=block.domain)
    state = block.state
    if is_grouped(select):
        grouped = grouping.GroupedInput(relation=rows, scope=block.scope, state=state, called=called)
        groups = grouping.groups_of(compiler, select, grouped, keys, by)
        if is_one_group(select):
            return _one_group(lateral, groups)
        relation = filtered(groups.relation, groups.having, compiler.block)
        lateral = replace(lateral, relation=relation, items=groups.items, sorted_by=groups.sorted_by)
        state = UnnamedInput
    else:
        lateral = _listed(compiler, block, lateral, keys, called)
    if select.args.get("distinct") is None:
        return lateral
    items = distinct_fields(compiler.context, lateral.items)
    listed = LogicalCalc(
        input=lateral.relation, filter=None, items=items, base=lateral.relation.base, block=compiler.block
    )
    check_comparable(compiler.context, listed, "DISTINCT", select_offset(select))
    columns = tuple(item.field for item in items)
    own = tuple(field for field in by if field not in columns)
    distinct = LogicalAggregate(
        input=replace(listed, items=(*identity(own), *items)),
        keys=(*own, *columns),
        calls=(),
        state=state,
        offset=select_offset(select),
        base=listed.base,
        block=compiler.block,
    )
    return replace(lateral, relation=distinct, items=identity(columns))


def _check_form(compiler: QueryCompiler, select: exp.Select, called: str) -> None:
    """Refuse clauses that are not supported together with groups."""
    source, distinct, having = compiler.context.source, select.args.get("distinct"), select.args.get("having")
    if distinct is not None:
        only(source, distinct, "expressions")
    one_group = is_one_group(select)
    if ordering.is_ordered(select) and (one_group or distinct is not None):
        what, advice = "with DISTINCT", "write GROUP BY instead of DISTINCT"
        if one_group:
            what, advice = "that has one row", "leave them out"
        raise source.error(f"ORDER BY and LIMIT in {called} {what} are not supported", offset_of(select), advice)
    nodes = sub_queries_in([*select.expressions, *([] if having is None else [having])])
    if one_group and nodes:
        message = f"a sub-query in SELECT or HAVING of {called} without GROUP BY is not supported"
        raise source.error(message, offset_of(nodes[0]), "write it in the query around this one")


def _listed(
    compiler: QueryCompiler, block: SubQueryBlock, lateral: LateralRows, keys: SortKeys, called: str
) -> LateralRows:
    translator = clause_translator(compiler.context, block.scope, "SELECT")
    items, sorted_by = ordering.select_list_items(compiler.context, block.select, translator, keys)
    for item in items:
        check_own(compiler.context, item.expr, block.own, called)
    return replace(lateral, items=items, sorted_by=sorted_by)


def _one_group(lateral: LateralRows, groups: grouping.Groups) -> LateralRows:
    """Return the single row of all rows; if the group is missing, its columns have their values for empty input."""

    def absent(e: Expr) -> Expr | None:
        return zero_if_absent(e) if isinstance(e, FieldRef) and e.field.id in groups.counts else None

    having = tuple(replace_outermost(condition, absent) for condition in groups.having)
    items = tuple(replace(item, expr=replace_outermost(item.expr, absent)) for item in groups.items)
    return replace(lateral, relation=groups.relation, items=items, one_group=OneGroup(items=items, having=having))

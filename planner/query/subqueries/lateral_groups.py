"""LATERAL (SELECT COUNT(*) ...): a query after LATERAL that aggregates or removes duplicates.

It does so for each value that its WHERE compares with the inputs before it. If some comparisons are not equalities, its
rows are first joined with these values (:mod:`hintplan.planner.query.domains`). Without GROUP BY, it has one row even
on empty input. This row is computed above the join that brings the group, and its COUNT is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.expressions.typed import Expr, FieldRef, replace_outermost
from hintplan.planner.query import grouping, ordering
from hintplan.planner.query.columns import check_comparable, check_own, distinct_fields, filtered
from hintplan.planner.query.compiler import OneGroup, QueryCompiler
from hintplan.planner.query.domains import Domain
from hintplan.planner.query.ordering import SortKeys
from hintplan.planner.query.subqueries.block import SubQueryBlock, block_columns, joined_on, read_block
from hintplan.planner.query.subqueries.empty_groups import zero_if_absent
from hintplan.planner.query.subquery_kinds import is_grouped, is_one_group, sub_queries_in
from hintplan.planner.relations import Item, LogicalAggregate, LogicalCalc, Relation, UnnamedInput, identity
from hintplan.planner.syntax.dialect import offset_of, select_offset
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Scope
from hintplan.planner.translation.translator import only


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

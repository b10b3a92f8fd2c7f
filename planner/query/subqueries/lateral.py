"""LATERAL (SELECT ...): a query in FROM that may refer, in its WHERE, to what stands before it.

It becomes a join on what it compares. With ORDER BY and LIMIT, which count the rows for each row before it, its own
rows are numbered for each value that they are compared by, so that all comparisons must be equalities.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from planner.expressions.typed import BOOLEAN, Call, Expr, Ref, call, fields_of, walk
from planner.properties.nullability import may_be_null
from planner.query import ordering
from planner.query.columns import column_for, filtered, projections
from planner.query.compiler import Lateral, QueryCompiler
from planner.query.from_clause import build_from
from planner.query.hint_scope.block import block_hints
from planner.query.ordering import SortKeys
from planner.query.refused_clauses import refuse_clauses
from planner.query.sources.inputs import alias_of
from planner.query.subquery_kinds import is_grouped
from planner.query.where_clause import filtered_block
from planner.relations import Calc, Item, Relation, identity
from planner.syntax.dialect import offset_of
from planner.translation.expressions import clause_translator
from planner.translation.scope import Input, Scope
from planner.translation.translator import only

_ALLOWED = ("hint", "expressions", "from_", "joins", "where", *ordering.CLAUSES)
_INSTEAD = "write a sub-query in FROM without LATERAL, and join it on what it compares"


def compile_lateral(compiler: QueryCompiler, node: exp.Lateral, outer: Scope) -> Lateral:
    """The rows of the query at ``node``, and what of them is compared with the names of ``outer``."""
    context, select, alias = compiler.context, node.this.this, alias_of(node)
    refuse_clauses(context, select)
    if is_grouped(select) or select.args.get("distinct") is not None:
        message = "a LATERAL query that aggregates or removes duplicates is not supported"
        raise context.source.error(message, offset_of(select), _INSTEAD)
    only(context.source, select, *_ALLOWED)
    inner = compiler.within(replace(compiler.environment, block=alias or compiler.block, set_operation=""))
    hints = block_hints(context, inner.environment, select, aggregates=False)
    found = build_from(inner, select, hints, outer)
    rows, conditions = filtered_block(inner, found, select, hints, aggregates=False)
    translator = clause_translator(context, found.scope, "SELECT")
    selected = projections(context, select, translator)
    keys = ordering.sort_keys(context, select)
    in_order = replace(translator, clause="ORDER BY")
    sorted_by = [None if key is None else in_order.expression(key) for key in keys.expressions]
    own = frozenset(f.id for f in rows.fields)
    for expression in (*(e for _, e in selected), *(e for e in sorted_by if e is not None)):
        _check_own(inner, expression, own)
    names = _names(compiler, node, [name for name, _ in selected])
    shown = tuple(Item(field=context.field(name, e.type), expr=e) for name, (_, e) in zip(names, selected, strict=True))
    if ordering.is_ordered(select):
        order = [
            _at(inner, node, shown, position) if e is None else e
            for node, position, e in zip(keys.nodes, keys.positions, sorted_by, strict=True)
        ]
        rows = _first(inner, select, rows, keys, order, conditions)
    items = (*shown, *identity(rows.fields))
    relation = Calc(input=rows, filter=None, items=items, base=rows.base, block=inner.block)
    fields = tuple(item.field for item in shown)
    return Lateral(
        relation=replace(relation, base=(alias,) if alias else rows.base),
        input=Input(name=alias, kind="sub-query", fields=fields, offset=offset_of(node)),
        conditions=conditions,
    )


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


def _check_own(compiler: QueryCompiler, expression: Expr, own: frozenset[int]) -> None:
    for e in walk(expression):
        if isinstance(e, Ref) and e.field.id not in own:
            message = "a LATERAL query can refer to what stands before it in its WHERE only"
            raise compiler.context.source.error(message, e.offset, "compute with the value in the query around it")


def _first(
    compiler: QueryCompiler,
    select: exp.Select,
    rows: Relation,
    keys: SortKeys,
    sorted_by: list[Expr],
    conditions: tuple[Expr, ...],
) -> Relation:
    """The first of ``rows`` for each of the values that ``conditions`` compare them by."""
    context, own = compiler.context, frozenset(f.id for f in rows.fields)
    compared = [_own_side(part, own) for part in conditions]
    if select.args.get("limit") is None:
        raise context.source.error("ORDER BY without LIMIT has no effect in LATERAL", offset_of(select), "add LIMIT")
    if None in compared:
        message = "LIMIT in a LATERAL query that is compared by more than equality is not supported"
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
        rows = Calc(input=rows, filter=None, items=items, base=rows.base, block=compiler.block)
    return ordering.first_of_each(context, select, rows, keys, order, partition, compiler.block)


def _own_side(condition: Expr, own: frozenset[int]) -> Expr | None:
    """What of its own an equality compares; None if it is none, or mixes the sides."""
    if isinstance(condition, Call) and condition.function == "=":
        for mine, other in (condition.args, condition.args[::-1]):
            sides = [{f.id in own for f in fields_of(e)} for e in (mine, other)]
            if sides == [{True}, {False}]:
                return mine
    return None

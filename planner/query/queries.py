"""Queries: SELECT blocks, UNION, WITH and views become relations.

A block is compiled in SQL's order: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT. Everything that a block can say
and that is not compiled is refused here.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from planner.context import Context, Cte, Environment
from planner.expressions.coercion import cast, common_type
from planner.expressions.typed import NULL, Expr, Field, Ref, conjunction
from planner.query import from_clause, grouping, intersection, ordering, scalar_subqueries, subqueries
from planner.query.bare_selects import read_query
from planner.query.cached_results import cached_block
from planner.query.hint_scope import BlockHints, explain_division, resolve_block
from planner.query.inputs import inputs_of, names_elsewhere, sources_of
from planner.query.lookup_scope import resolve_lookups
from planner.query.subquery_values import join_values
from planner.relations import Aggregate, Calc, Item, Relation, StateInput, Union, UnnamedInput, identity
from planner.statements.model import CreateView
from planner.syntax.dialect import offset_of, select_offset
from planner.translation.expressions import clause_translator
from planner.translation.scope import Scope, star
from planner.translation.translator import Translator, only

__all__ = [
    "block_hints",
    "build_query",
    "build_view",
    "check_comparable",
    "filtered",
    "projections",
    "refuse_clauses",
    "renamed",
]

_IN_BATCH = "write SET 'execution.runtime-mode' = 'batch'"
_CLAUSES = {
    "order": ("ORDER BY is not supported in streaming", f"a stream of changes has no order: remove it, or {_IN_BATCH}"),
    "limit": ("LIMIT is not supported in streaming", f"a stream of changes has no end: remove it, or {_IN_BATCH}"),
    "offset": ("OFFSET is not supported in streaming", f"a stream of changes has no order: remove it, or {_IN_BATCH}"),
    "qualify": ("QUALIFY is not supported", "window functions are not available; use GROUP BY"),
    "windows": ("WINDOW is not supported", "window functions are not available; use GROUP BY"),
    "laterals": ("LATERAL is not supported", "join tables, views or sub-queries"),
    "match": ("MATCH_RECOGNIZE is not supported", "remove it"),
    "pivots": ("PIVOT is not supported", "use GROUP BY with FILTER"),
}


def build_view(context: Context, view: CreateView, readings: tuple[tuple[str, int], ...] = ()) -> Relation:
    """The relation of a view's query, under the view's column names; ``readings`` end with where it is read."""
    query = read_query(context.source, context.text, list(view.query))
    relation = build_query(context, Environment(block=view.name, readings=readings), query)
    return renamed(context, relation, view.columns, view.offset)


def build_query(context: Context, environment: Environment, node: exp.Expr) -> Relation:
    """Compile any query; its output is the relation's fields, by position and name."""
    if isinstance(node, exp.Select | exp.SetOperation | exp.Subquery):
        refuse_clauses(context, node)
    inner = _with(context, environment, node)
    relation = _body(context, inner, node)
    if not isinstance(node, exp.Select):
        relation = ordering.over_output(context, node, relation, environment.block)
    for name, cte in inner.ctes.items():
        if environment.ctes.get(name) is not cte and offset_of(cte.query) not in context.used_ctes:
            with context.on_trial():
                build_query(context, cte.environment, cte.query)
    return relation


def _body(context: Context, environment: Environment, node: exp.Expr) -> Relation:
    if isinstance(node, exp.Subquery):
        only(context.source, node, "this", "with_", *ordering.CLAUSES)
        return build_query(context, environment, node.this)
    if isinstance(node, exp.Union):
        return _union(context, environment, node)
    if isinstance(node, exp.SetOperation):
        return intersection.build(context, environment, node)
    if not isinstance(node, exp.Select):
        raise context.source.error("expected a query", offset_of(node), "write SELECT ... FROM ...")
    return _select(context, environment, node)


def refuse_clauses(context: Context, node: exp.Expr) -> None:
    """Refuse what no query can say, and what only a batch job can."""
    for key, (message, advice) in _CLAUSES.items():
        found = node.args.get(key)
        if found and not (context.batch and key in ordering.CLAUSES):
            place = found[0] if isinstance(found, list) else found
            raise context.source.error(message, offset_of(place) or offset_of(node), advice)


def _with(context: Context, environment: Environment, node: exp.Expr) -> Environment:
    clause = node.args.get("with_")
    if clause is None:
        return environment
    if clause.args.get("recursive"):
        raise context.source.error("WITH RECURSIVE is not supported", offset_of(clause), "write the levels out")
    for cte in clause.expressions:
        only(context.source, cte, "this", "alias")
        if not isinstance(cte.this, exp.Query):
            raise context.source.error("expected a query in WITH", offset_of(cte), "write name AS (SELECT ...)")
        columns = tuple(c.name for c in cte.args["alias"].args.get("columns") or ())
        known = Cte(query=cte.this, columns=columns, environment=environment)
        environment = replace(environment, ctes={**environment.ctes, cte.alias: known})
    return environment


def renamed(context: Context, relation: Relation, names: tuple[str, ...], offset: int) -> Relation:
    """The relation with its columns called ``names``; unchanged if there are none."""
    if not names:
        return relation
    if len(names) != len(relation.fields):
        raise context.source.error(
            f"{len(names)} column names for {len(relation.fields)} columns", offset, "name each column once"
        )
    items = tuple(
        Item(field=context.field_for(Ref(field=f), n), expr=Ref(field=f))
        for n, f in zip(names, relation.fields, strict=True)
    )
    return Calc(input=relation, filter=None, items=items, base=relation.base, block=relation.block)


def filtered(relation: Relation, parts: tuple[Expr, ...], block: str) -> Relation:
    """The rows for which all ``parts`` are true."""
    condition = conjunction(parts)
    if condition is None:
        return relation
    return Calc(input=relation, filter=condition, items=identity(relation.fields), base=relation.base, block=block)


def _select(context: Context, environment: Environment, select: exp.Select) -> Relation:
    source = context.source
    known = ("hint", "expressions", "from_", "joins", "where", "group", "having", "distinct", "with_")
    only(source, select, *known, *ordering.CLAUSES)
    if select.args.get("from_") is None:
        raise source.error("SELECT without FROM is not supported", select_offset(select), "read from a table")
    groups = grouping.is_grouped(select)
    aggregated = groups or bool(select.args.get("distinct"))
    hints = block_hints(context, environment, select, aggregates=aggregated)
    found = from_clause.build_from(context, environment, select, hints, None)
    relation, scope = subqueries.apply_where(context, environment, found, select, hints, aggregates=aggregated)
    translator = clause_translator(context, scope, "SELECT")
    values = {} if groups else scalar_subqueries.compile_values(context, environment, translator, select.expressions)
    of_joins = of_aggregate = UnnamedInput
    if aggregated:  # sub-queries become joins below or above the aggregate, which alone has the input's name
        of_aggregate = StateInput(name=found.name, hint=hints.of(found.name))
    elif values and not subqueries.joins_in_where(select):
        of_joins = StateInput(name=found.name, hint=hints.of(found.name))
    _warn_of_unused(context, hints, select)
    if values:
        relation = join_values(context, relation, values, of_joins, environment.block)
    keys = ordering.sort_keys(context, select)
    if groups:
        relation, items, sorted_by = grouping.build(context, environment, select, relation, scope, of_aggregate, keys)
        of_aggregate = UnnamedInput
    else:
        translator = replace(translator, values={place: value.worth for place, value in values.items()})
        items = tuple(Item(field=context.field_for(e, n), expr=e) for n, e in projections(context, select, translator))
        in_order = replace(translator, clause="ORDER BY")
        sorted_by = tuple(None if node is None else in_order.expression(node) for node in keys.expressions)
    listed = Calc(
        input=relation, filter=None, items=_distinct_fields(context, items), base=relation.base, block=environment.block
    )
    relation = _distinct(context, environment, select, listed, of_aggregate)
    if ordering.is_ordered(select):
        relation = ordering.over_select(context, select, listed, relation, keys, sorted_by, environment.block)
    return cached_block(context, relation, select_offset(select), environment.block)


def _distinct(
    context: Context, environment: Environment, select: exp.Select, relation: Relation, state: StateInput
) -> Relation:
    """``relation``, the SELECT list, without duplicates if the block says DISTINCT."""
    distinct = select.args.get("distinct")
    if distinct is not None:
        only(context.source, distinct, "expressions")
        check_comparable(context, relation, "DISTINCT", select_offset(select))
        relation = Aggregate(
            input=relation,
            keys=relation.fields,
            calls=(),
            state=state,
            offset=select_offset(select),
            base=relation.base,
            block=environment.block,
        )
    return relation


def block_hints(context: Context, environment: Environment, select: exp.Select, *, aggregates: bool) -> BlockHints:
    """The TTLs that the hints of ``select`` give to its inputs."""
    offset = select_offset(select)
    if offset not in context.ledger.hints.after_select:
        return BlockHints()
    inputs = [i for node in sources_of(select) for i in inputs_of(context, environment, node)]
    elsewhere = names_elsewhere(context, environment, select)
    lookups = resolve_lookups(context.ledger, context.report, offset, tuple(inputs), elsewhere)
    in_from = tuple(inputs)
    joins = sum(not (i.looked_up or i.called) for i in inputs) > 1
    joins = joins or scalar_subqueries.has_values(select)
    for name in subqueries.semi_join_inputs(context, environment, select):
        joins = True
        if name is not None and all(name.name != i.name for i in inputs):
            inputs.append(name)
    advice = "put it after the SELECT of the block that joins or groups"
    if environment.set_operation in ("INTERSECT", "EXCEPT"):
        advice = f"states of {environment.set_operation} cannot be hinted; set their TTLs in the plan, or for the job"
    elif environment.set_operation:
        advice = "UNION's removal of duplicates cannot be hinted; write SELECT DISTINCT over a UNION ALL sub-query"
    resolved = resolve_block(
        context.ledger,
        context.report,
        offset,
        tuple(inputs),
        stateful=joins or aggregates,
        batch=context.batch,
        advice=advice,
        elsewhere=elsewhere,
    )
    if joins and aggregates:
        explain_division(context.report, resolved, in_from)
    return replace(resolved, lookups=lookups)


def _warn_of_unused(context: Context, hints: BlockHints, select: exp.Select) -> None:
    """Keys of inputs that no state keeps under their name: what a lookup or a call adds columns to has none."""
    calls = any(isinstance(node, exp.Lateral) for node in sources_of(select))
    added = "but with what a function returned for them" if calls else "but of its lookup join"
    joined = "call" if calls else "lookup join"
    for name, hinted in hints.by_input.items():
        if name not in hints.asked_for:
            reason = f"no state keeps rows of '{name}' itself, {added}"
            context.ledger.losers[hinted.offset] = ("refused", reason)
            context.report.warn_of_hint(
                f"STATE_TTL key '{name}' has no effect: {reason}",
                hinted.offset,
                f"put the {joined} into a sub-query with an alias and use the alias as key",
            )


def projections(context: Context, select: exp.Select, translator: Translator) -> list[tuple[str, Expr]]:
    found: list[tuple[str, Expr]] = []
    for node in select.expressions:
        expanded = star_fields(context, node, translator.scope)
        if expanded is not None:
            found.extend((f.name, Ref(field=f)) for f in expanded)
            continue
        name, body = output_name(context, node)
        expression = translator.expression(body)
        found.append((name if name is not None else default_name(expression), expression))
    return found


def star_fields(context: Context, node: exp.Expr, scope: Scope) -> tuple[Field, ...] | None:
    """The fields of ``*`` or ``t.*``; None if ``node`` is something else."""
    inner = node.this if isinstance(node, exp.Column) else node
    if not isinstance(inner, exp.Star):
        return None
    only(context.source, inner)
    qualifier = node.args.get("table") if isinstance(node, exp.Column) else None
    return star(context.source, scope, qualifier.name if qualifier else None, offset_of(node))


def output_name(context: Context, node: exp.Expr) -> tuple[str | None, exp.Expr]:
    """The alias of a SELECT item, if it has one, and the item itself."""
    if not isinstance(node, exp.Alias):
        return None, node
    if node.alias.startswith("__"):
        raise context.source.error(
            f"column names that start with '__' are reserved: '{node.alias}'",
            offset_of(node.args["alias"]),
            "rename it",
        )
    return node.alias, node.this


def default_name(expression: Expr) -> str:
    """The name of a SELECT item without an alias: that of the column, or none."""
    return expression.field.name if isinstance(expression, Ref) else ""


def check_comparable(context: Context, relation: Relation, what: str, offset: int) -> None:
    """Refuse columns of types that ``what`` cannot compare."""
    for found in relation.fields:
        if found.type.root in ("ARRAY", "MAP", "ROW", "NULL"):
            raise context.source.error(
                f"{what} cannot compare column '{found.name}' of type {found.type.root}", offset, "leave the column out"
            )


def _distinct_fields(context: Context, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Items with fields of their own where one column is selected twice."""
    seen: set[int] = set()
    found: list[Item] = []
    for item in items:
        if item.field.id in seen:
            item = replace(item, field=context.field(item.field.name, item.field.type))
        seen.add(item.field.id)
        found.append(item)
    return tuple(found)


def _union(context: Context, environment: Environment, node: exp.Union) -> Relation:
    only(context.source, node, "this", "expression", "distinct", "with_", *ordering.CLAUSES)
    if node.args.get("by_name"):
        raise context.source.error("UNION BY NAME is not supported", offset_of(node.expression), "list the columns")
    distinct = bool(node.args.get("distinct"))
    inner = replace(environment, set_operation="UNION" if distinct else environment.set_operation)
    branches = [build_query(context, inner, n) for n in _branches(node, distinct)]
    width = len(branches[0].fields)
    for branch, part in zip(branches, _branches(node, distinct), strict=True):
        if len(branch.fields) != width:
            raise context.source.error(
                f"UNION of {width} and {len(branch.fields)} columns",
                offset_of(part),
                "select the same number of columns",
            )
    fields: list[Field] = []
    for i in range(width):
        columns = [b.fields[i] for b in branches]
        found = common_type([c.type for c in columns])
        if found is None or found == NULL:
            types = " and ".join(dict.fromkeys(str(c.type.as_nullable()) for c in columns))
            raise context.source.error(
                f"column {i + 1} of UNION has the types {types}", offset_of(node.expression), "convert them with CAST"
            )
        fields.append(context.field(columns[0].name, found))
    inputs = tuple(_aligned(context, b, tuple(fields)) for b in branches)
    base = tuple(name for branch in branches for name in branch.base)
    relation: Relation = Union(inputs=inputs, fields=tuple(fields), base=base, block=environment.block)
    if distinct:
        check_comparable(context, relation, "UNION", offset_of(node.expression))
        relation = Aggregate(
            input=relation,
            keys=relation.fields,
            calls=(),
            state=UnnamedInput,
            offset=offset_of(node),
            base=relation.base,
            block=environment.block,
        )
    return relation


def _branches(node: exp.Expr, distinct: bool) -> list[exp.Expr]:
    """The inputs of a chain of UNIONs of one kind."""
    if isinstance(node, exp.Union) and bool(node.args.get("distinct")) == distinct and not node.args.get("with_"):
        return [*_branches(node.this, distinct), *_branches(node.expression, distinct)]
    if isinstance(node, exp.Union):
        return [node] if bool(node.args.get("distinct")) != distinct else [node.this, node.expression]
    return [node]


def _aligned(context: Context, relation: Relation, fields: tuple[Field, ...]) -> Relation:
    items = tuple(
        Item(field=context.field(wanted.name, wanted.type), expr=cast(Ref(field=f), wanted.type, 0))
        for f, wanted in zip(relation.fields, fields, strict=True)
    )
    return Calc(input=relation, filter=None, items=items, base=relation.base, block=relation.block)

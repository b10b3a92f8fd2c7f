"""FROM: compiles tables, views, CTEs, sub-queries and joins, and collects the names that the block can use.

Joins keep their sides as written. This module does not look for equalities. A comma join starts without a condition and
gets one when a pass pushes WHERE into it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.context import Context, Cte, QueryEnvironment, TableEntry
from hintplan.planner.expressions.coercion import cast, common_data_type
from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import comparison_operands
from hintplan.planner.expressions.typed import (
    Expr,
    Field,
    FieldRef,
    call,
    conjunction,
    factored_conjuncts,
    literal,
    substitute,
)
from hintplan.planner.properties.rowtimes import interval_of
from hintplan.planner.properties.time_attributes import clock_interval_of
from hintplan.planner.query.cached_results import cached_table
from hintplan.planner.query.clauses import check_clauses_read, read_clauses
from hintplan.planner.query.columns import filtered, rename_columns
from hintplan.planner.query.compiler import OneGroup, QueryCompiler
from hintplan.planner.query.domains import over_domain
from hintplan.planner.query.hint_scope import BlockHints
from hintplan.planner.query.sources.inputs import alias_of, find_table, inputs_of_source, is_lateral_query
from hintplan.planner.query.sources.laterals import lateral
from hintplan.planner.query.sources.lookups import LookupClause, lookup_join, rowtime_of
from hintplan.planner.query.sources.scans import scan_table, single_row
from hintplan.planner.query.sources.unnests import elements, unnested
from hintplan.planner.query.sources.windows import windowed
from hintplan.planner.query.syntax_rewrites import parse_simplified_query
from hintplan.planner.relations import AsOf, Item, LogicalCalc, LogicalJoin, Relation, StateInput, identity
from hintplan.planner.statements.model import CreateView
from hintplan.planner.syntax.dialect import is_comma_join, offset_of
from hintplan.planner.syntax.problems import FollowUp
from hintplan.planner.syntax.windowed_tables import window_call
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Input, Scope, resolve_column
from hintplan.planner.translation.translator import only
from hintplan.plans.operators import JoinType

_JOIN_TYPES: dict[str, JoinType] = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}


@dataclass(frozen=True, slots=True, kw_only=True)
class From:
    """A relation with the names it offers; ``name`` is the key of a hint for it, None for an intermediate result."""

    relation: Relation
    scope: Scope
    name: str | None


def build_from(compiler: QueryCompiler, select: exp.Select, hints: BlockHints, outer: Scope | None) -> From:
    """Compile the FROM clause of ``select``; columns of ``outer`` are visible, too, if it is a sub-query."""
    inner = compiler if outer is compiler.outer else compiler.seeing(outer)
    problems, first = compiler.context.source.problems, select.args["from_"].this
    source: From | None = None
    with problems.going_on():
        source = _source(inner, first, hints)
    left = source or _failed(inner, first)
    for join in select.args.get("joins") or []:
        joined: From | None = None
        with problems.going_on():
            joined = _join(inner, left, join, hints)
        left = joined or _failed(inner, join.this, left)
    return replace(left, scope=replace(left.scope, parent=outer))


def _failed(compiler: QueryCompiler, node: exp.Expr, left: From | None = None) -> From:
    """Return a placeholder for ``node``, which has an error, joined to ``left``; its columns are unknown."""
    if left is None:
        left = From(relation=single_row(compiler.context, compiler.block), scope=Scope(inputs=()), name=None)
    name = alias_of(node) or (node.name if isinstance(node, exp.Table) else None)
    added = Input(name=name, kind="", fields=(), offset=offset_of(node), failed=True)
    return replace(left, scope=replace(left.scope, inputs=(*left.scope.inputs, added)), name=None)


def view_relation(compiler: QueryCompiler, view: CreateView, readings: tuple[tuple[str, int], ...] = ()) -> Relation:
    """Compile the query of a view, under the view's column names; ``readings`` end with the place where it is read."""
    context = compiler.context
    query = parse_simplified_query(context, view.query)
    with context.within_view(view.name):
        relation = compiler.of_declared(QueryEnvironment(block=view.name, readings=readings)).query(query)
    check_clauses_read(context, query)
    return rename_columns(context, relation, view.columns, view.offset)


def _source(compiler: QueryCompiler, node: exp.Expr, hints: BlockHints) -> From:
    """Compile one source of FROM; for a join in parentheses, with everything that is joined there."""
    source = compiler.context.source
    if isinstance(node, exp.Subquery) and not _is_query(node.this):
        read_clauses(compiler.context, node, "this", "alias", "joins")
        if alias_of(node):
            raise source.error(
                "an alias for a join in parentheses is not supported",
                offset_of(node.args["alias"]),
                "write (SELECT * FROM ...) alias",
            )
        compiled = _source(compiler, node.this, hints)
    else:
        compiled = _input(compiler, node)
    for join in node.args.get("joins") or []:
        compiled = _join(compiler, compiled, join, hints)
    return compiled


def _of_rows(version: exp.Expr) -> bool:
    """Return True if FOR SYSTEM_TIME AS OF names a column, or the time at which a row is processed."""
    called = (call.name.upper() for call in version.find_all(exp.Anonymous))
    return version.find(exp.Column) is not None or "PROCTIME" in called


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Select | exp.SetOperation) or (isinstance(node, exp.Subquery) and _is_query(node.this))


def _input(compiler: QueryCompiler, node: exp.Expr, *, looked_up: bool = False) -> From:
    context, environment = compiler.context, compiler.environment
    version = node.args.get("version")
    if version and not looked_up and not _of_rows(version):
        message = "FOR SYSTEM_TIME AS OF another time is not supported: no table is read as it was then"
        advice = "read a table of Delta by the version that it had: /*+ OPTIONS('versionAsOf' = '3') */ after its name"
        raise context.source.error(message, offset_of(version), advice)
    if version and not looked_up:
        raise context.source.error(
            "FOR SYSTEM_TIME AS OF belongs to the right side of a JOIN",
            offset_of(node),
            "write FROM <stream> AS o JOIN <table> FOR SYSTEM_TIME AS OF o.proc_time AS d ON ...",
        )
    if isinstance(node, exp.Lateral):
        raise context.source.error(
            "LATERAL must come after the table for whose rows its function is called",
            offset_of(node),
            "write FROM t, LATERAL TABLE(f(x)) AS T(a)",
        )
    if isinstance(node, exp.Unnest):
        return _elements(compiler, node)
    described = next(iter(inputs_of_source(context, environment, node)))
    name, alias = described.name, node.args.get("alias")
    base = (name or "query",)
    if isinstance(node, exp.Table):
        relation = _named(compiler, node, described.offset, base, looked_up=looked_up)
        call = window_call(node)
        if call is not None:
            context.count_operator()
            relation = windowed(context, call, relation, compiler.block)
    else:
        read_clauses(context, node, "this", "alias", "joins")
        inner = replace(environment, block=name or environment.block, set_operation="")
        relation = compiler.within(inner).query(node.this)
    relation = replace(relation, base=base)
    if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
        columns = tuple(c.name for c in alias.args["columns"])
        relation = rename_columns(context, relation, columns, offset_of(alias))
    scope = Scope(inputs=(replace(described, fields=relation.fields),))
    return From(relation=relation, scope=scope, name=name)


def _elements(compiler: QueryCompiler, node: exp.Unnest) -> From:
    """Compile UNNEST at the beginning of FROM, where its value reads no columns, over a relation with a single row."""
    row = single_row(compiler.context, compiler.block)
    joined, added = elements(compiler.context, row, Scope(inputs=()), node, compiler.block)
    relation = replace(joined, items=joined.items[len(row.fields) :])
    return From(relation=relation, scope=Scope(inputs=(added,)), name=added.name)


def _named(
    compiler: QueryCompiler, node: exp.Table, offset: int, base: tuple[str, ...], *, looked_up: bool
) -> Relation:
    """Return the table, CTE or view that ``node`` names; the rows of a looked-up table are never cached."""
    context, environment = compiler.context, compiler.environment
    target = find_table(context, environment, node)
    readings = (*environment.readings, (node.name, offset))
    if isinstance(target, TableEntry):
        context.count_operator()
        relation = scan_table(context, environment, node, target, base)
        return relation if looked_up else cached_table(context, node.name, relation)
    if isinstance(target, Cte):
        context.used_ctes.add(offset_of(target.query))
        inner = replace(target.environment, block=node.name, readings=readings)
        with context.within_view(node.name):
            relation = compiler.of_declared(inner, target).query(target.query)
        return rename_columns(context, relation, target.columns, offset)
    context.ledger.view_sites.add((node.name, offset))
    relation = context.take_tried(target) or view_relation(compiler, target, readings)
    return cached_table(context, node.name, relation)


def _join(compiler: QueryCompiler, left: From, join: exp.Join, hints: BlockHints) -> From:
    context, offset = compiler.context, offset_of(join)
    only(context.source, join, "this", "on", "using", "side", "kind", "method")
    is_lateral = is_lateral_query(join.this)
    if isinstance(join.this, exp.Lateral | exp.Unnest) and not is_lateral:
        return _call(compiler, left, join)
    _check_form(context, join)
    correlated: tuple[Expr, ...] = ()
    one_group: OneGroup | None = None
    side, version = _word(join, "side"), join.this.args.get("version")
    rowtime: Field | None = None
    if version is not None:
        right = _input(compiler, join.this, looked_up=True)
        rowtime = rowtime_of(context, version, left.relation, left.scope, right.relation)
        _check_side(context, join, rowtime)
    elif is_lateral:
        _check_lateral(context, join)
        query = compiler.lateral(join.this, left.scope)
        rows, correlated, one_group = query.relation, query.conditions, query.one_group
        if query.domain is not None:
            rows, same = over_domain(context, rows, query.domain, left.relation, lambda expression: expression)
            correlated = (*correlated, *same)
        right = From(relation=rows, scope=Scope(inputs=(query.input,)), name=query.input.name)
    else:
        source: From | None = None
        with context.source.problems.going_on():
            source = _source(compiler, join.this, hints)
        right = source or _failed(compiler, join.this)
    _check_names(context, left, right.scope.inputs)
    parts, scope, merged = _condition(compiler, left, right, join)
    # With wrong options it is unknown whether the table supports lookups; its columns are known in any case.
    if version is not None and rowtime is None and not context.source.problems.unsure:
        name = right.name or "_".join(right.relation.base)
        lookup = LookupClause(
            name=name,
            outer=side == "LEFT",
            parts=parts,
            hint=hints.lookups.get(right.name or ""),
            offset=offset,
            right_offset=offset_of(join.this.this),
        )
        relation = lookup_join(context, left.relation, right.relation, lookup, compiler.block)
        return From(relation=relation, scope=scope, name=None)
    relation = LogicalJoin(
        left=left.relation,
        right=right.relation,
        join_type=_JOIN_TYPES[side] if one_group is None else "left",
        on=(*correlated, *parts) if one_group is None else correlated,
        items=identity((*left.relation.fields, *right.relation.fields)),
        states=(
            StateInput(name=left.name, hint=hints.of(left.name)),
            StateInput(name=right.name, hint=hints.of(right.name)),
        ),
        as_of=None
        if rowtime is None
        else AsOf(left_time=rowtime, place=offset_of(version), right_place=offset_of(join.this.this)),
        offset=offset,
        base=(*left.relation.base, *right.relation.base),
        block=compiler.block,
    )
    if relation.join_type != "inner":
        bounded = interval_of(context, relation) or clock_interval_of(context, relation)
        relation = replace(relation, is_bounded=bounded is not None)
    if one_group is not None:
        kept = left.relation.fields
        row = _with_one_row(relation, kept, one_group, parts, outer=side == "LEFT", block=compiler.block)
        return From(relation=row, scope=scope, name=None)
    if merged:
        items = (*identity(relation.fields), *merged)
        columns = LogicalCalc(input=relation, filter=None, items=items, base=relation.base, block=compiler.block)
        return From(relation=columns, scope=scope, name=None)
    return From(relation=relation, scope=scope, name=None)


def _with_one_row(
    join: LogicalJoin, kept: tuple[Field, ...], group: OneGroup, on: tuple[Expr, ...], *, outer: bool, block: str
) -> Relation:
    """Return the fields ``kept`` of ``join`` with the row of ``group``, provided that its HAVING and ``on`` are true.

    An ``outer`` join keeps the other rows, with NULLs.
    """
    values = {item.field.id: item.expr for item in group.items}
    condition = conjunction((*group.having, *(substitute(part, values) for part in on)))
    items = group.items
    if outer and condition is not None:
        items = tuple(
            replace(i, expr=call("CASE", (condition, i.expr, literal(None, i.expr.type)), i.expr.type, join.offset))
            for i in items
        )
        condition = None
    return LogicalCalc(input=join, filter=condition, items=(*identity(kept), *items), base=join.base, block=block)


def _check_lateral(context: Context, join: exp.Join) -> None:
    side = _word(join, "side")
    if side not in ("", "LEFT") or join.args.get("using") or _word(join, "method"):
        what = f"a {side} JOIN" if side not in ("", "LEFT") else "USING or NATURAL"
        raise context.source.error(
            f"{what} of LATERAL is not supported", offset_of(join), "write JOIN or LEFT JOIN LATERAL (...) ON TRUE"
        )


def _word(join: exp.Join, part: str) -> str:
    return str(join.args.get(part) or "").upper()


def _check_form(context: Context, join: exp.Join) -> None:
    """Refuse kinds of joins that hintplan does not support."""
    source, offset = context.source, offset_of(join)
    method, kind = _word(join, "method"), _word(join, "kind")
    if kind in ("SEMI", "ANTI"):
        raise source.error(f"{kind} JOIN is not supported", offset, "write WHERE [NOT] EXISTS (SELECT ...)")
    if kind not in ("", "INNER", "OUTER", "CROSS") or method not in ("", "NATURAL"):
        raise source.error(
            f"{method} {kind} JOIN is not supported".replace("  ", " ").strip(), offset, "write JOIN ... ON"
        )
    conditional = join.args.get("on") is not None or join.args.get("using") or method
    if not conditional and not is_comma_join(join) and kind != "CROSS":
        raise source.error("this JOIN has no condition", offset, "add ON left.column = right.column")


def _check_side(context: Context, join: exp.Join, rowtime: Field | None) -> None:
    """Refuse RIGHT and FULL JOINs with FOR SYSTEM_TIME AS OF."""
    side = _word(join, "side")
    if side in ("", "LEFT"):
        return
    message = f"a lookup join cannot be a {side} JOIN: a lookup does not read all rows of the table"
    if rowtime is not None:
        message = f"a temporal join cannot be a {side} JOIN: the right side has versions, not rows to be kept"
    raise context.source.error(message, offset_of(join), "write JOIN or LEFT JOIN")


def _condition(
    compiler: QueryCompiler, left: From, right: From, join: exp.Join
) -> tuple[tuple[Expr, ...], Scope, tuple[Item, ...]]:
    """Return the join condition, the names that the join offers, and the columns into which USING merges both sides."""
    context = compiler.context
    source, offset = context.source, offset_of(join)
    on, using = join.args.get("on"), join.args.get("using")
    scope = Scope(
        inputs=(*left.scope.inputs, *right.scope.inputs),
        merged={**left.scope.merged, **right.scope.merged},
        hidden=left.scope.hidden | right.scope.hidden,
    )
    if isinstance(on, exp.Boolean) and on.this and is_lateral_query(join.this):
        return (), scope, ()
    if on is not None:
        visible = replace(scope, parent=compiler.outer)
        return factored_conjuncts(clause_translator(context, visible, "ON").condition(on)), scope, ()
    if not using and not _word(join, "method"):
        return (), scope, ()
    names = tuple(u.name for u in using or ()) or _shared(left, right)
    if not names:
        raise source.error("the sides of this NATURAL JOIN share no column", offset, "write JOIN ... ON")
    either = _word(join, "side") in ("RIGHT", "FULL")
    return _using(context, left, right, scope, names, offset, either=either)


def _call(compiler: QueryCompiler, left: From, join: exp.Join) -> From:
    """Join ``left`` with the rows that a function returns for each of its rows, or with elements of a collection."""
    context = compiler.context
    added = unnested if isinstance(join.this, exp.Unnest) else lateral
    called = added(context, left.relation, left.scope, join, compiler.block)
    _check_names(context, left, (called.input,))
    scope = replace(left.scope, inputs=(*left.scope.inputs, called.input))
    relation = called.relation
    if called.condition is not None:
        condition = clause_translator(context, scope, "ON").condition(called.condition)
        relation = filtered(relation, factored_conjuncts(condition), compiler.block)
    return From(relation=relation, scope=scope, name=None)


def _check_names(context: Context, left: From, right: tuple[Input, ...]) -> None:
    taken = {i.name for i in left.scope.inputs if i.name}
    for added in right:
        if added.name in taken:
            raise context.source.error(
                f"'{added.name}' is twice in FROM", added.offset, f"give it an alias: {added.name} AS {added.name}2"
            )


def _shared(left: From, right: From) -> tuple[str, ...]:
    names = {f.name for f in right.relation.fields}
    return tuple(dict.fromkeys(f.name for f in left.relation.fields if f.name in names))


def _using(
    context: Context, left: From, right: From, scope: Scope, names: tuple[str, ...], offset: int, *, either: bool
) -> tuple[tuple[Expr, ...], Scope, tuple[Item, ...]]:
    """Return the same as :func:`_condition` for USING and NATURAL. A merged column is the left side's column.

    With ``either``, for RIGHT and FULL joins, it has the value of whichever side has a row.
    """
    parts: list[Expr] = []
    items: list[Item] = []
    merged: dict[str, Field] = {}
    hidden: set[int] = set(scope.hidden)
    for name in names:
        a = resolve_column(context.source, left.scope, None, name, offset)
        b = resolve_column(context.source, right.scope, None, name, offset)
        if not isinstance(a, FieldRef) or not isinstance(b, FieldRef):
            raise FollowUp
        if all(a.field not in input_.fields for input_ in left.scope.inputs):
            message = f"USING '{name}' again after a RIGHT or FULL JOIN, whose '{name}' is of either side"
            raise context.source.error(message, offset, f"write ON, and which table's '{name}' is meant")
        pair = comparison_operands(context.source, "USING", (a, b), offset)
        parts.append(compared("=", pair, offset))
        merged[name] = a.field
        if either:
            kind = common_data_type([value.type for value in pair]) or pair[0].type
            values = tuple(cast(value, kind, offset) for value in pair)
            merged[name] = context.field(name, kind.as_nullable())
            items.append(Item(field=merged[name], expr=call("coalesce", values, kind, offset)))
        hidden |= {a.field.id, b.field.id}
    shown = replace(scope, merged={**scope.merged, **merged}, hidden=frozenset(hidden))
    return tuple(parts), shown, tuple(items)

"""FROM: tables, views, CTEs, sub-queries and joins become relations, and the names that the block can use.

Joins keep their sides as written. Equalities are not looked for here; a comma join starts without a condition and gets
one when WHERE is pushed into it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from planner.context import Context, Cte, Environment, TableEntry
from planner.expressions.comparisons import compared
from planner.expressions.operands import comparable
from planner.expressions.typed import Expr, Field, Ref, conjuncts, substitute
from planner.query import queries
from planner.query.cached_results import cached_table
from planner.query.hint_scope import BlockHints
from planner.query.inputs import alias_of, find_table, inputs_of
from planner.query.laterals import lateral
from planner.query.lookups import check_time, lookup_join
from planner.relations import Calc, Item, Join, Relation, Scan, StateInput, identity
from planner.syntax.dialect import is_comma_join, offset_of
from planner.translation.expressions import clause_translator
from planner.translation.scope import Input, Scope, resolve
from planner.translation.translator import only
from plans.connectors.table import is_upsert_source, source_kinds
from plans.declarations.tables import Table
from plans.operators import JoinType
from plans.settings.config import EVENTS_DUPLICATE

__all__ = ["From", "build_from"]


_JOIN_TYPES: dict[str, JoinType] = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}


@dataclass(frozen=True, slots=True, kw_only=True)
class From:
    """A relation with the names it offers; ``name`` is how a hint addresses it, None for an intermediate result."""

    relation: Relation
    scope: Scope
    name: str | None


def build_from(
    context: Context, environment: Environment, select: exp.Select, hints: BlockHints, outer: Scope | None
) -> From:
    """Compile the FROM clause of ``select``; columns of ``outer`` are visible to correlated sub-queries only."""
    first = select.args["from_"].this
    found = _source(context, environment, first, hints)
    for join in select.args.get("joins") or []:
        found = _join(context, environment, found, join, hints)
    return replace(found, scope=replace(found.scope, parent=outer))


def _source(context: Context, environment: Environment, node: exp.Expr, hints: BlockHints) -> From:
    if isinstance(node, exp.Subquery) and not _is_query(node.this):
        only(context.source, node, "this", "alias", "joins")
        if alias_of(node):
            raise context.source.error(
                "an alias for a join in parentheses is not supported",
                offset_of(node.args["alias"]),
                "write (SELECT * FROM ...) alias",
            )
        found = _source(context, environment, node.this, hints)
    else:
        found = _input(context, environment, node)
    for join in node.args.get("joins") or []:
        found = _join(context, environment, found, join, hints)
    return found


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Select | exp.SetOperation) or (isinstance(node, exp.Subquery) and _is_query(node.this))


def _input(context: Context, environment: Environment, node: exp.Expr, *, looked_up: bool = False) -> From:
    if node.args.get("version") and not looked_up:
        raise context.source.error(
            "FOR SYSTEM_TIME AS OF belongs to the right side of a JOIN",
            offset_of(node),
            "write FROM <stream> AS o JOIN <table> FOR SYSTEM_TIME AS OF o.proc_time AS d ON ...",
        )
    if isinstance(node, exp.Lateral):
        raise context.source.error(
            "LATERAL stands behind what its function is called for",
            offset_of(node),
            "write FROM t, LATERAL TABLE(f(x)) AS T(a)",
        )
    described = next(iter(inputs_of(context, environment, node)))
    name, alias = described.name, node.args.get("alias")
    base = (name or "query",)
    if isinstance(node, exp.Table):
        target = find_table(context, environment, node)
        readings = (*environment.readings, (node.name, described.offset))
        if isinstance(target, TableEntry):
            context.count_scan(described.offset)
            relation = _scan(context, environment, node, target, base)
            if not looked_up:
                relation = cached_table(context, node.name, relation)
        elif isinstance(target, Cte):
            context.used_ctes.add(offset_of(target.query))
            inner = replace(target.environment, block=node.name, readings=readings)
            relation = queries.build_query(context, inner, target.query)
            relation = queries.renamed(context, relation, target.columns, described.offset)
        else:
            context.ledger.view_sites.add((node.name, described.offset))
            relation = cached_table(context, node.name, queries.build_view(context, target, readings))
    else:
        only(context.source, node, "this", "alias", "joins")
        inner = replace(environment, block=name or environment.block, set_operation="")
        relation = queries.build_query(context, inner, node.this)
    relation = replace(relation, base=base)
    if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
        columns = tuple(c.name for c in alias.args["columns"])
        relation = queries.renamed(context, relation, columns, offset_of(alias))
    scope = Scope(inputs=(replace(described, fields=relation.fields),))
    return From(relation=relation, scope=scope, name=name)


def _scan(
    context: Context, environment: Environment, node: exp.Table, entry: TableEntry, base: tuple[str, ...]
) -> Relation:
    fields = {f.id: context.field(f.name, f.type) for f in entry.physical}
    place = offset_of(node.this)
    options = context.ledger.hints.after_name.get(place)
    context.ledger.at_tables.add(place)
    scan = Scan(
        table=node.name,
        fields=tuple(fields.values()),
        options=options,
        changelog=source_kinds(entry.table) != ("+I",),
        normalized=_normalized(context, node.name, entry.table, place),
        readings=environment.readings,
        offset=place,
        base=base,
        block=environment.block,
    )
    if scan.changelog and context.batch:
        raise context.source.error(
            f"'{node.name}' is a changelog, which batch mode cannot read: rows have no order there",
            place,
            "run the job in streaming mode, with --once",
        )
    if not entry.computed:
        return scan
    values: dict[int, Expr] = {old: Ref(field=new) for old, new in fields.items()}
    physical = {f.name: Item(field=f, expr=Ref(field=f)) for f in fields.values()}
    computed = {
        c.name: Item(field=context.field(c.name, c.expr.type), expr=substitute(c.expr, values)) for c in entry.computed
    }
    items = tuple({**physical, **computed}[c.name] for c in entry.table.columns)
    return Calc(input=scan, filter=None, items=items, base=base, block=environment.block)


def _normalized(context: Context, name: str, table: Table, place: int) -> tuple[str, ...]:
    """The columns by which rows of a source replace each other, if it emits upserts or may repeat changes."""
    if is_upsert_source(table):
        return table.primary_key
    if context.compiler.get(EVENTS_DUPLICATE) != "true" or source_kinds(table) == ("+I",):
        return ()
    if not table.primary_key:
        raise context.source.error(
            f"'{EVENTS_DUPLICATE}' is true, but the changelog '{name}' has no primary key to tell repeated changes by",
            place,
            "declare PRIMARY KEY (...) NOT ENFORCED",
        )
    return table.primary_key


def _join(context: Context, environment: Environment, left: From, join: exp.Join, hints: BlockHints) -> From:
    source, offset = context.source, offset_of(join)
    only(source, join, "this", "on", "using", "side", "kind", "method")
    if isinstance(join.this, exp.Lateral):
        return _call(context, environment, left, join)
    method, kind, side = (str(join.args.get(k) or "").upper() for k in ("method", "kind", "side"))
    if kind in ("SEMI", "ANTI"):
        raise source.error(f"{kind} JOIN is not supported", offset, "write WHERE [NOT] EXISTS (SELECT ...)")
    if kind not in ("", "INNER", "OUTER", "CROSS") or method not in ("", "NATURAL"):
        raise source.error(
            f"{method} {kind} JOIN is not supported".replace("  ", " ").strip(), offset, "write JOIN ... ON"
        )
    on, using, version = join.args.get("on"), join.args.get("using"), join.this.args.get("version")
    if version is not None and side not in ("", "LEFT"):
        message = f"a lookup join cannot be a {side} JOIN: the rows of a table that is looked up are not all known"
        raise source.error(message, offset, "write JOIN or LEFT JOIN")
    if on is None and not using and not method and not is_comma_join(join) and kind != "CROSS":
        raise source.error("this JOIN has no condition", offset, "add ON left.column = right.column")
    if version is not None:
        right = _input(context, environment, join.this, looked_up=True)
        check_time(context, version, left.relation, left.scope)
    else:
        right = _source(context, environment, join.this, hints)
    _check_names(context, left, right.scope.inputs)
    scope = Scope(
        inputs=(*left.scope.inputs, *right.scope.inputs),
        merged={**left.scope.merged, **right.scope.merged},
        hidden=left.scope.hidden | right.scope.hidden,
    )
    parts: tuple[Expr, ...] = ()
    if on is not None:
        parts = conjuncts(clause_translator(context, scope, "ON").condition(on))
    elif using or method:
        names = tuple(u.name for u in using or ()) or _shared(left, right)
        if not names:
            raise source.error("the sides of this NATURAL JOIN share no column", offset, "write JOIN ... ON")
        if side not in ("", "LEFT"):
            raise source.error(f"USING and NATURAL are not supported in a {side} JOIN", offset, "write JOIN ... ON")
        parts, scope = _using(context, left, right, scope, names, offset)
    if version is not None:
        relation = lookup_join(
            context,
            left.relation,
            right.relation,
            right.name or "_".join(right.relation.base),
            outer=side == "LEFT",
            parts=parts,
            hint=hints.lookups.get(right.name or ""),
            offset=offset,
            right_offset=offset_of(join.this.this),
            block=environment.block,
        )
        return From(relation=relation, scope=scope, name=None)
    relation = Join(
        left=left.relation,
        right=right.relation,
        join_type=_JOIN_TYPES[side],
        on=parts,
        items=identity((*left.relation.fields, *right.relation.fields)),
        states=(
            StateInput(name=left.name, hint=hints.of(left.name)),
            StateInput(name=right.name, hint=hints.of(right.name)),
        ),
        offset=offset,
        base=(*left.relation.base, *right.relation.base),
        block=environment.block,
    )
    return From(relation=relation, scope=scope, name=None)


def _call(context: Context, environment: Environment, left: From, join: exp.Join) -> From:
    """The rows of ``left`` with what a function returns for each."""
    called = lateral(context, left.relation, left.scope, join, environment.block)
    _check_names(context, left, (called.input,))
    scope = replace(left.scope, inputs=(*left.scope.inputs, called.input))
    relation = called.relation
    if called.condition is not None:
        translator = clause_translator(context, scope, "ON")
        relation = queries.filtered(relation, conjuncts(translator.condition(called.condition)), environment.block)
    return From(relation=relation, scope=scope, name=None)


def _check_names(context: Context, left: From, right: tuple[Input, ...]) -> None:
    known = {i.name for i in left.scope.inputs if i.name}
    for found in right:
        if found.name in known:
            raise context.source.error(
                f"'{found.name}' stands twice in FROM", found.offset, f"give it an alias: {found.name} AS {found.name}2"
            )


def _shared(left: From, right: From) -> tuple[str, ...]:
    names = {f.name for f in right.relation.fields}
    return tuple(dict.fromkeys(f.name for f in left.relation.fields if f.name in names))


def _using(
    context: Context, left: From, right: From, scope: Scope, names: tuple[str, ...], offset: int
) -> tuple[tuple[Expr, ...], Scope]:
    parts: list[Expr] = []
    merged: dict[str, Field] = {}
    hidden: set[int] = set(scope.hidden)
    for name in names:
        a = resolve(context.source, left.scope, None, name, offset)
        b = resolve(context.source, right.scope, None, name, offset)
        assert isinstance(a, Ref)
        assert isinstance(b, Ref)
        parts.append(compared("=", comparable(context.source, "USING", (a, b), offset), offset))
        merged[name] = a.field
        hidden |= {a.field.id, b.field.id}
    return tuple(parts), replace(scope, merged={**merged, **scope.merged}, hidden=frozenset(hidden))

"""JOIN ... FOR SYSTEM_TIME AS OF: a join that looks up its right side when it processes a row of the left side.

This module checks the looked-up relation (one table, directly or through views that only filter and project it) and the
lookup time. It also resolves the settings of the lookup, and records the outcome of every hint option. Later,
:mod:`hintplan.planner.passes.extract_lookup_keys` splits the condition into keys and a remainder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import (
    BOOLEAN,
    Call,
    Expr,
    Field,
    FieldRef,
    Literal,
    call,
    factored_conjuncts,
    referenced_fields,
    substitute,
)
from hintplan.planner.hints.lookup import LookupHint
from hintplan.planner.properties.rowtimes import why_no_rowtime
from hintplan.planner.properties.time_attributes import is_processing_time
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.relations import (
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalPassthrough,
    LogicalScan,
    LogicalUnion,
    LogicalUnnest,
    LogicalValues,
    LogicalWindowAggregate,
    Relation,
    identity,
)
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.syntax.problems import FollowUp
from hintplan.planner.translation.scope import Scope, resolve_column
from hintplan.plans.connectors.connector import LookedUp
from hintplan.plans.connectors.table import CONNECTORS, can_lookup, why_no_lookup
from hintplan.plans.operators.temporal_join import IN_STREAMS, NOT_IN_BATCHES
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.lookup import LOOKUP_GROUPS, SETTINGS
from hintplan.plans.settings.lookup_layers import Contradiction, ResolvedLookup
from hintplan.plans.settings.lookup_layers import resolve_lookup as resolve_layers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dimension:
    """A looked-up table: its ``scan``, the fields of the right side as ``values`` over it, and its ``filters``."""

    scan: LogicalScan
    values: Mapping[int, Expr]
    filters: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupClause:
    """A lookup join as written: ``name`` is the looked-up input, ``parts`` are the conditions.

    An ``outer`` join pads rows without a match with NULLs. ``offset`` is the position of the join, ``right_offset`` the
    position of the table.
    """

    name: str
    outer: bool
    parts: tuple[Expr, ...]
    hint: LookupHint | None
    offset: int
    right_offset: int


def rowtime_of(context: Context, version: exp.Expr, left: Relation, scope: Scope, right: Relation) -> Field | None:
    """Return the rowtime of a temporal join, or None for a lookup, whose time is the processing time.

    Refuse all other times. The advice in the error depends on whether ``right`` is a table that can be looked up.
    """
    source, node = context.source, version.args.get("expression")
    # FOR SYSTEM_TIME AS p has no time expression, so the error points at the table.
    offset = offset_of(node if node is not None else version.parent or version)
    if version.args.get("kind") != "AS OF":
        raise source.error(
            f"FOR SYSTEM_TIME {version.args.get('kind')} is not supported",
            offset,
            "write FOR SYSTEM_TIME AS OF o.proc_time",
        )
    if isinstance(node, exp.Anonymous) and node.name.upper() == "PROCTIME" and not node.expressions:
        return None
    advice = "declare a column proc_time AS PROCTIME() in the table, and write FOR SYSTEM_TIME AS OF o.proc_time"
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        raise source.error("FOR SYSTEM_TIME AS OF takes a column with the processing time", offset, advice)
    qualifier = node.args.get("table")
    column = resolve_column(source, scope, qualifier.name if qualifier else None, node.name, offset)
    if not isinstance(column, FieldRef):
        raise FollowUp
    if is_processing_time(context, left, column.field.id, materialized=True):
        return None
    if _is_looked_up(context, right):
        raise source.error(
            f"'{column.field.name}' is not a processing time: a lookup reads the table at the time when a row is "
            f"processed",
            offset,
            advice,
        )
    if context.batch:
        raise source.error(NOT_IN_BATCHES, offset, IN_STREAMS)
    lost = why_no_rowtime(context, left, column.field)
    if lost is not None:
        message = f"FOR SYSTEM_TIME AS OF takes a rowtime, but '{column.field.name}' is none: {lost.reason}"
        advice = lost.advice if lost.instead is None else f"write '{lost.instead}', or change the WATERMARK"
        regular = "leave FOR SYSTEM_TIME AS OF out, and a regular JOIN takes the newest row of each key"
        raise source.error(message, offset, f"{advice}; or {regular}")
    return column.field


def _is_looked_up(context: Context, relation: Relation) -> bool:
    """Return True for a table that can be looked up and has no WATERMARK, also through views of it alone."""
    while isinstance(relation, LogicalCalc):
        relation = relation.input
    if not isinstance(relation, LogicalScan):
        return False
    table = context.table(relation.table).table
    return table.watermark is None and bool(can_lookup(table))


def lookup_join(context: Context, left: Relation, right: Relation, lookup: LookupClause, block: str) -> Relation:
    """Return a relation that looks up ``right`` for each row of ``left``, with the fields of both."""
    dimension = _dimension(context, right, lookup.name, lookup.right_offset)
    insert_only = context.batch or is_insert_only(left)
    settings, hinted = _settings(context, dimension.scan, lookup.hint, insert_only, lookup.right_offset)
    if not insert_only:
        context.report.warn(
            "the left side of this lookup join has updates and deletions, which look the table up again: if it has "
            "changed since, they take back other rows than were written",
            lookup.offset,
            "look up before the aggregation or join, or read the table as a stream with a regular join",
        )
    on = (*(c for p in lookup.parts for c in factored_conjuncts(substitute(p, dimension.values))), *dimension.filters)
    values = {f.id: dimension.values[f.id] for f in right.fields}
    computed = [f.id for f in right.fields if not isinstance(values[f.id], FieldRef)]
    guard = _found_marker(on, dimension.scan) if lookup.outer and computed else None
    read = {f.id: f for i in computed for f in referenced_fields(values[i])} | ({guard.id: guard} if guard else {})
    items = [*identity(left.fields), *(Item(field=f, expr=values[f.id]) for f in right.fields if f.id not in computed)]
    items += identity(tuple(f for f in read.values() if all(f.id != i.field.id for i in items)))
    base = (*left.base, *right.base)
    relation = LogicalLookupJoin(
        input=left,
        table=dimension.scan.table,
        name=lookup.name,
        fetched=dimension.scan.fields,
        join_type="left" if lookup.outer else "inner",
        on=on,
        items=tuple(items),
        settings=settings,
        hinted=hinted,
        offset=lookup.offset,
        base=base,
        block=block,
    )
    if not computed:
        return relation
    shown = (
        Item(field=f, expr=_padded(values[f.id], guard) if f.id in computed else FieldRef(field=f))
        for f in right.fields
    )
    return LogicalCalc(input=relation, filter=None, items=(*identity(left.fields), *shown), base=base, block=block)


def _dimension(context: Context, relation: Relation, name: str, offset: int) -> _Dimension:
    match relation:
        case LogicalScan():
            _check_connector(context, relation, offset)
            return _Dimension(scan=relation, values={f.id: FieldRef(field=f) for f in relation.fields}, filters=())
        case LogicalCalc():
            below = _dimension(context, relation.input, name, offset)
            filters = (substitute(c, below.values) for c in factored_conjuncts(relation.filter))
            values = {i.field.id: substitute(i.expr, below.values) for i in relation.items}
            return _Dimension(scan=below.scan, values=values, filters=(*below.filters, *filters))
        case LogicalAggregate() | LogicalWindowAggregate() | LogicalExpand():
            kind = "an aggregation"
        case LogicalUnion():
            kind = "a UNION"
        case LogicalValues():
            kind = "a list of VALUES"
        case LogicalPassthrough():
            kind = relation.title
        case LogicalCorrelate():
            kind = "what a function returns"
        case LogicalUnnest():
            kind = "the elements of an array or a map"
        case LogicalJoin() | LogicalLookupJoin():
            kind = "a join"
        case _:
            assert_never(relation)
    raise context.source.error(
        f"'{name}' cannot be looked up: it is {kind}, not one table",
        offset,
        "look up each table in a join of its own, or write a regular join",
    )


def _check_connector(context: Context, scan: LogicalScan, offset: int) -> None:
    table = context.table(scan.table).table
    if not can_lookup(table):
        connectors = (name for name, spec in CONNECTORS.items() if isinstance(spec, LookedUp))
        able = ", ".join(sorted(name for name in connectors if name != table.options.get("connector")))
        raise context.source.error(
            f"table '{scan.declared}' cannot be looked up: {why_no_lookup(table)}",
            offset,
            f"declare it with a connector that looks up ({able}), or write a regular join",
        )
    beside = next((column.name for column in table.columns if column.metadata is not None), None)
    if beside is not None:
        raise context.source.error(
            f"table '{scan.declared}' cannot be looked up: it has a METADATA column, '{beside}'",
            offset,
            f"declare one without it: CREATE TABLE ... LIKE {scan.declared} (EXCLUDING METADATA)",
        )
    time = next((f for f in scan.fields if f.type.contains("TIME")), None)
    if time is not None:
        raise context.source.error(
            f"table '{scan.declared}' cannot be looked up: column '{time.name}' is {time.type}",
            offset,
            f"declare it STRING, and write CAST({time.name} AS TIME) in the query",
        )
    if scan.changelog:
        raise context.source.error(
            f"table '{scan.declared}' cannot be looked up: it is a changelog", offset, "write a regular join"
        )


def _settings(
    context: Context, scan: LogicalScan, hint: LookupHint | None, insert_only: bool, offset: int
) -> tuple[Mapping[str, Settings], tuple[tuple[int, str], ...]]:
    """Return the resolved settings, and the hint options in effect; warn about all other options."""
    hints = [h for h in (hint, scan.options) if h is not None]
    table = context.table(scan.table).table
    layers = {}
    for group in LOOKUP_GROUPS:
        hinted = next((h.settings[group.name] for h in hints if group.name in h.settings), {})
        layers[group.name] = group.asked(context.config, table.options, origin={"hint": hinted})
    places = {place: at for h in hints for place, at in h.places.items()}
    try:
        resolved = resolve_layers(layers, can_lookup(table), insert_only=insert_only, parks=not context.batch)
    except Contradiction as error:
        at = places.get(("cache", error.name), offset) if error.layer == "hint" else offset
        raise context.source.error(f"table '{scan.declared}': {error}", at, error.hint) from None
    _warn_of_unmet(context, resolved, places)
    without = {places[u.group, u.name] for u in resolved.unmet if u.layer == "hint"}
    heeded = [(at, f"{group}.{name}") for (group, name), at in places.items() if at not in without]
    if hint is not None:
        heeded += [(o.offset, "") for o in hint.options if o.key == "table" and o.offset not in hint.overridden]
        sync = layers["async"]["hint"].get("enabled") is False and places["async", "enabled"] not in without
        for option in ("capacity", "timeout") if sync else ():
            if ("async", option) in places:
                message = f"LOOKUP option '{option}' has no effect with 'async'='false'"
                context.report.warn_of_hint(message, places["async", option], "remove one of them")
    for source in hints:
        for loser, winner in source.overridden.items():
            context.ledger.losers[loser] = ("overridden", f"at {context.source.where(winner)}")
    return resolved.groups, tuple(heeded)


def _warn_of_unmet(context: Context, resolved: ResolvedLookup, places: Mapping[tuple[str, str], int]) -> None:
    reasons: dict[str, list[tuple[int, str]]] = {}
    for unmet in resolved.unmet:
        if unmet.layer == "hint":
            at = places[unmet.group, unmet.name]
            context.ledger.losers[at] = ("refused", unmet.reason)
            option = SETTINGS[unmet.group][unmet.name].hint or unmet.name
            reasons.setdefault(unmet.reason, []).append((at, f"'{option}'"))
    for reason, unmet_options in reasons.items():
        options = ", ".join(option for _, option in sorted(unmet_options))
        plural = "options" if len(unmet_options) > 1 else "option"
        verb = "have" if len(unmet_options) > 1 else "has"
        message = f"LOOKUP {plural} {options} {verb} no effect: {reason}"
        context.report.warn_of_hint(message, min(at for at, _ in unmet_options), "remove the part without effect")


def _found_marker(on: tuple[Expr, ...], scan: LogicalScan) -> Field | None:
    """Return a column of the table that is never NULL in a matching row, because an equality compares it, or None."""
    own = {f.id for f in scan.fields}
    for part in on:
        if isinstance(part, Call) and part.function == "=":
            for a, b in (part.args, part.args[::-1]):
                if isinstance(a, FieldRef) and a.field.id in own and not any(f.id in own for f in referenced_fields(b)):
                    return a.field
    return None


def _padded(expression: Expr, guard: Field | None) -> Expr:
    """Return ``expression`` over the matching row, or NULL without a match."""
    if guard is None:
        return expression
    is_match = call("IS NOT NULL", (FieldRef(field=guard),), BOOLEAN, 0)
    nothing = Literal(text=None, type=expression.type.as_nullable())
    return call("CASE", (is_match, expression, nothing), expression.type, 0)

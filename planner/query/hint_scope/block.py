"""Matches all hints of a query block with its inputs, and warns of hints that no operator of the block uses."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from hintplan.planner.context import Context, QueryEnvironment
from hintplan.planner.query.hint_scope.lookup import resolve_lookups
from hintplan.planner.query.hint_scope.state_ttl import BlockHints, explain_division, resolve_block
from hintplan.planner.query.sources.inputs import inputs_of_source, names_elsewhere, sources_of
from hintplan.planner.query.subquery_kinds import has_values, semi_join_inputs
from hintplan.planner.syntax.dialect import select_offset


def block_hints(context: Context, environment: QueryEnvironment, select: exp.Select, *, aggregates: bool) -> BlockHints:
    """Return the hints of ``select``, resolved to the inputs of the block."""
    offset = select_offset(select)
    if offset not in context.ledger.hints.after_select:
        return BlockHints()
    inputs = [i for node in sources_of(select) for i in inputs_of_source(context, environment, node)]
    elsewhere = names_elsewhere(context, environment, select)
    lookups = resolve_lookups(context, offset, tuple(inputs), elsewhere)
    in_from = tuple(inputs)
    joins = sum(not (i.looked_up or i.called) for i in inputs) > 1
    joins = joins or has_values(select)
    for name in semi_join_inputs(context, environment, select):
        joins = True
        if name is not None and all(name.name != i.name for i in inputs):
            inputs.append(name)
    advice = "put it after the SELECT of the block that joins or groups"
    if environment.set_operation.startswith(("INTERSECT", "EXCEPT")):
        advice = f"states of {environment.set_operation} cannot be hinted; set their TTLs in the plan, or for the job"
    elif environment.set_operation:
        advice = "UNION's removal of duplicates cannot be hinted; write SELECT DISTINCT over a UNION ALL sub-query"
    resolved = resolve_block(
        context,
        offset,
        tuple(inputs),
        stateful=joins or aggregates,
        advice=advice,
        elsewhere=elsewhere,
    )
    if joins and aggregates:
        explain_division(context, resolved, in_from)
    return replace(resolved, lookups=lookups)


def warn_of_unused(context: Context, hints: BlockHints, select: exp.Select) -> None:
    """Warn of hinted inputs whose rows no state keeps as they are, because a lookup or a call adds columns first."""
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

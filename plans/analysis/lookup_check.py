"""Whether the lookup joins of a plan can run as they are set, and whether their origins are in step with the plan.

>>> list(check_lookups(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator

from plans.analysis.changelog import output_kinds
from plans.connectors.table import can_lookup
from plans.declarations.row_kinds import INSERT_ONLY
from plans.errors import Diagnostic
from plans.model.plan import Plan
from plans.operators import LookupJoin
from plans.settings.lookup import CACHE, GROUPS
from plans.settings.lookup_cache import cache_problems
from plans.settings.lookup_layers import Contradiction, Resolved, config_layers, resolve, table_layer
from plans.settings.origins import origins_apart
from plans.settings.setting import Layers, shown

__all__ = ["asked_of", "check_lookups", "resolved"]


def check_lookups(plan: Plan) -> Iterator[Diagnostic]:
    """Every problem with the lookup joins of ``plan``, whose tables and edges must exist."""
    kinds = output_kinds(plan)
    for operator in plan.operators:
        if isinstance(operator, LookupJoin):
            insert_only = kinds[operator.inputs[0]] == INSERT_ONLY
            yield from _check_facts(operator)
            problems = list(_check_settings(operator, plan, insert_only=insert_only))
            yield from problems or _check_origins(operator, plan, insert_only=insert_only)


def asked_of(operator: LookupJoin, plan: Plan) -> dict[str, Layers]:
    """What each layer says of each group: config and table as the plan has them now, hints as the origins recorded."""
    config, options = config_layers(plan.config), plan.tables[operator.table].options
    groups = operator.settings
    asked: dict[str, Layers] = {}
    for group in GROUPS:
        recorded = groups[group].origin if group in groups else {}
        hint = {layer: recorded[layer] for layer in ("hint",) if layer in recorded}
        table = {"table": table_layer(options)} if group == "cache" else {}
        asked[group] = {"config": config.get(group, {}), **table, **hint}
    return asked


def resolved(operator: LookupJoin, plan: Plan, *, insert_only: bool, strict: bool = True) -> Resolved:
    """The settings that the layers amount to, without edits; Contradiction if ``strict``."""
    modes = can_lookup(plan.tables[operator.table])
    parks = plan.mode != "batch"
    return resolve(asked_of(operator, plan), modes, insert_only=insert_only, parks=parks, strict=strict)


def _check_facts(operator: LookupJoin) -> Iterator[Diagnostic]:
    path = f"operators.{operator.id}"
    if operator.pre_filter is not None and operator.join_type == "inner":
        message = "an inner lookup join has no pre-filter"
        yield Diagnostic(message=message, path=f"{path}.pre-filter", hint="filter the rows in a calc above it")


def _check_settings(operator: LookupJoin, plan: Plan, *, insert_only: bool) -> Iterator[Diagnostic]:
    path, modes = f"operators.{operator.id}", can_lookup(plan.tables[operator.table])
    connector = plan.tables[operator.table].options.get("connector", "")
    if not modes:
        message = f"table '{operator.table}' cannot be looked up: its connector is '{connector}'"
        yield Diagnostic(message=message, path=f"{path}.table")
        return
    for name, message, hint in cache_problems(operator.cache.values, modes):
        yield Diagnostic(message=message, path=f"{path}.cache.{name}", hint=hint)
    waits, retry = operator.async_, operator.retry
    full = operator.cache.values[CACHE] == "FULL"
    lookups = sorted(modes - {"full"})
    if full and waits.enabled:
        message = "a FULL cache answers every row at once from memory; there is nothing to wait for"
        yield Diagnostic(message=message, path=f"{path}.async.enabled", hint="write false")
    elif not full and lookups and ("async" if waits.enabled else "sync") not in lookups:
        message = f"the {connector} connector looks up in this mode only: {lookups[0]}"
        yield Diagnostic(message=message, path=f"{path}.async.enabled", hint=f"write {shown(not waits.enabled)}")
    if waits.output_mode == "allow_unordered" and not insert_only:
        message = "the input has updates and deletions, which must not overtake what they change"
        yield Diagnostic(message=message, path=f"{path}.async.output-mode", hint='write "ordered"')
    if retry is not None and full:
        message = "a FULL cache holds the whole table: what it lacks, another attempt would not find either"
        yield Diagnostic(message=message, path=f"{path}.retry", hint="write null")
    if retry is not None and retry.mode == "deferred" and plan.mode == "batch":
        message = "a batch job keeps no state to park a row in"
        yield Diagnostic(message=message, path=f"{path}.retry.mode", hint='write "inline"')
    elif retry is not None and retry.mode == "deferred" and waits.output_mode == "ordered":
        message = "a row that waits in state is overtaken, but the output-mode is 'ordered'"
        hint = """write "inline", or "output-mode": "allow_unordered\""""
        yield Diagnostic(message=message, path=f"{path}.retry.mode", hint=hint)


def _check_origins(operator: LookupJoin, plan: Plan, *, insert_only: bool) -> Iterator[Diagnostic]:
    """What the origins say was asked for must be what config and table ask for now; told once for each group."""
    path = f"operators.{operator.id}"
    try:
        expected = resolved(operator, plan, insert_only=insert_only).groups
    except Contradiction as error:
        yield Diagnostic(message=str(error), path=f"{path}.cache.{error.name}", hint=error.hint)
        return
    yield from origins_apart(operator.id, operator.settings, expected, f"table '{operator.table}'")

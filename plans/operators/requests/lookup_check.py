"""Checks that a lookup join can run with its settings, and that its origins agree with the plan."""

from __future__ import annotations

from collections.abc import Iterator

from hintplan.plans.connectors.table import can_lookup, why_no_lookup
from hintplan.plans.errors import Diagnostic
from hintplan.plans.operators.contract.declared import Declared
from hintplan.plans.operators.requests.lookup_settings import Lookup, resolved
from hintplan.plans.settings.lookup import CACHE
from hintplan.plans.settings.lookup_cache import cache_problems
from hintplan.plans.settings.lookup_layers import Contradiction
from hintplan.plans.settings.origin_checks import check_origins
from hintplan.plans.settings.setting import value_text


def check_settings(operator: Lookup, plan: Declared, insert_only: bool | None) -> Iterator[Diagnostic]:
    """Yield every problem with the settings of a lookup join.

    The settings cannot be checked while the plan has invalid edges or tables, so ``insert_only`` None yields nothing.
    """
    if insert_only is None:
        return
    yield from _check_facts(operator)
    problems = list(_check_modes(operator, plan, insert_only=insert_only))
    yield from problems or _check_origins(operator, plan, insert_only=insert_only)


def _check_facts(operator: Lookup) -> Iterator[Diagnostic]:
    path = f"operators.{operator.id}"
    if operator.pre_filter is not None and operator.join_type == "inner":
        message = "an inner lookup join has no pre-filter"
        yield Diagnostic(message=message, path=f"{path}.pre-filter", hint="filter the rows in a calc above it")


def _check_modes(operator: Lookup, plan: Declared, *, insert_only: bool) -> Iterator[Diagnostic]:
    path, modes = f"operators.{operator.id}", can_lookup(plan.tables[operator.table])
    connector = plan.tables[operator.table].options.get("connector", "")
    if not modes:
        message = f"table '{operator.table}' cannot be looked up: {why_no_lookup(plan.tables[operator.table])}"
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
        yield Diagnostic(message=message, path=f"{path}.async.enabled", hint=f"write {value_text(not waits.enabled)}")
    if waits.output_mode == "allow_unordered" and not insert_only:
        message = "the input has updates and deletions, which must not overtake the rows that they change"
        yield Diagnostic(message=message, path=f"{path}.async.output-mode", hint='write "ordered"')
    if retry is not None and full:
        message = "a FULL cache holds the whole table: another attempt would not find more"
        yield Diagnostic(message=message, path=f"{path}.retry", hint="write null")
    if retry is not None and retry.mode == "deferred" and plan.mode == "batch":
        message = "a batch job keeps no state to park a row in"
        yield Diagnostic(message=message, path=f"{path}.retry.mode", hint='write "inline"')
    elif retry is not None and retry.mode == "deferred" and waits.output_mode == "ordered":
        message = "a row that waits in state is overtaken, but the output-mode is 'ordered'"
        hint = """write "inline", or "output-mode": "allow_unordered\""""
        yield Diagnostic(message=message, path=f"{path}.retry.mode", hint=hint)


def _check_origins(operator: Lookup, plan: Declared, *, insert_only: bool) -> Iterator[Diagnostic]:
    """Yield a problem for each group whose origin differs from the current config and table."""
    path = f"operators.{operator.id}"
    try:
        expected = resolved(operator, plan, insert_only=insert_only).groups
    except Contradiction as error:
        yield Diagnostic(message=str(error), path=f"{path}.cache.{error.name}", hint=error.hint)
        return
    yield from check_origins(operator.id, operator.settings, expected, f"table '{operator.table}'")

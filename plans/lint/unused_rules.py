"""Rules on unused parts of a plan: tables, functions, options of tables, and configuration keys.

>>> found = list(unused_options(Plan(name="p", config={"table.exec.state.ttl": "1 h"})))
>>> found[0].path
'config.table.exec.state.ttl'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from hintplan.plans.lint.rule import Finding, Fix
from hintplan.plans.model.config import KEYS
from hintplan.plans.model.layered_groups import table_below
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import tables_used
from hintplan.plans.settings.lookup import CACHING
from hintplan.plans.settings.state import STATE_TTL
from hintplan.plans.settings.watermark import EMIT_STRATEGY, WATERMARK, WATERMARK_OPTIONS

T = TypeVar("T")

_FOR_SINKS, _FOR_SCANS, _FOR_LOOKUPS = "sink.", ("source.", "scan."), "lookup."


def unused_tables(plan: Plan) -> Iterator[Finding]:
    """Report tables that no operator reads, writes or looks up, and functions that none calls."""
    called = {name for operator in plan.operators for name in operator.functions}
    for name in plan.functions:
        if name not in called:
            yield Finding(
                path=f"functions.{name}",
                message=f"no operator calls function '{name}'",
                fix=Fix(change=lambda plan, name=name: _without_function(plan, name), facts=True),  # type: ignore[misc]
            )
    used = {operator.table for operator in plan.operators}
    for name in plan.tables:
        if name not in used:
            yield Finding(
                path=f"tables.{name}",
                message=f"no operator reads, writes or looks up table '{name}'",
                fix=Fix(change=lambda plan, name=name: _without_table(plan, name), facts=True),  # type: ignore[misc]
            )


def unused_options(plan: Plan) -> Iterator[Finding]:
    """Report configuration keys and table options for features that the plan does not use."""
    yield from _unused_config(plan)
    scanned = {table for _, table in tables_used(plan.operators, "reads")}
    written = {table for _, table in tables_used(plan.operators, "writes")}
    heeded: dict[str, set[str]] = {}
    for operator, table in tables_used(plan.operators, "looks up"):
        from_table = (settings.origin.get("table", {}) for settings in operator.settings.values())
        heeded.setdefault(table, set()).update(*from_table)
    watermarks = set(_watermark_options(plan))
    for name, declared in plan.tables.items():
        if name not in scanned | written | heeded.keys():
            continue  # unused_tables reports the whole table
        for option in declared.options:
            why = None
            if option.startswith(_FOR_SINKS) and name not in written:
                why = "nothing writes the table"
            elif option.startswith(_FOR_SCANS) and name not in scanned:
                why = "nothing scans the table"
            elif option.startswith(_FOR_LOOKUPS) and name not in heeded:
                why = "nothing looks the table up"
            elif option in WATERMARK_OPTIONS and (name, option) not in watermarks and option != EMIT_STRATEGY.name:
                why = "no operator above the table goes by its watermark"
            elif option in CACHING.settings and option not in heeded[name]:
                why = "no lookup of the table heeds it"
            if why is not None:
                change = lambda plan, name=name, option=option: _without_option(plan, name, option)  # noqa: E731
                yield Finding(
                    path=f"tables.{name}.options.{option}",
                    message=f"the option '{option}' has no effect: {why}",
                    fix=Fix(change=change),
                )


def _watermark_options(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the options that a watermark takes from a table, each with the name of its table."""
    for operator in plan.operators:
        settings = operator.settings.get(WATERMARK.name)
        table = table_below(plan, operator) if settings is not None else None
        if settings is not None and table is not None:
            options = (settings.specs[name].option for name in settings.origin.get("table", {}))
            yield from ((table, option) for option in options if option is not None)


def _unused_config(plan: Plan) -> Iterator[Finding]:
    heeded = {
        (operator.op, group, name)
        for operator in plan.operators
        for group, settings in operator.settings.items()
        for name in settings.origin.get("config", {})
    }
    for key in plan.config:
        why, spec = None, KEYS.get(key)
        if key == STATE_TTL and not any(operator.state for operator in plan.operators):
            why = "no operator keeps state"
        elif key == STATE_TTL and all(entry.ttl is None for operator in plan.operators for entry in operator.state):
            until = {operator.kept_until(entry.name) for operator in plan.operators for entry in operator.state}
            why = f"all states keep rows {', or '.join(sorted(until, reverse=True))}"
        elif spec is not None and spec.owners and spec.group is not None and not spec.places & heeded:
            why = f"no {spec.owners[0].title}{' of a stream' if spec.group.mode == 'streaming' else ''} takes it"
        if why is not None:
            yield Finding(
                path=f"config.{key}",
                message=f"'{key}' has no effect: {why}",
                fix=Fix(change=lambda plan, key=key: _without_key(plan, key)),  # type: ignore[misc]
            )


def _without_table(plan: Plan, name: str) -> Plan:
    return replace(plan, tables=_without(plan.tables, name))


def _without_function(plan: Plan, name: str) -> Plan:
    return replace(plan, functions=_without(plan.functions, name))


def _without_option(plan: Plan, name: str, option: str) -> Plan:
    table = plan.tables[name]
    return replace(plan, tables={**plan.tables, name: replace(table, options=_without(table.options, option))})


def _without_key(plan: Plan, key: str) -> Plan:
    return replace(plan, config=_without(plan.config, key))


def _without(mapping: Mapping[str, T], key: str) -> dict[str, T]:
    return {name: value for name, value in mapping.items() if name != key}

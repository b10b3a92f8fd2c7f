"""Rules on what gives data up: settings, of which each says itself what is lost, and sinks that overwrite.

>>> list(lossy_settings(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hintplan.plans.connectors.table import connector_of
from hintplan.plans.lint.rule import Finding
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators.sink import taken_away
from hintplan.plans.settings.setting import Setting, SettingError, Value, parse_value, shown


def lossy_settings(plan: Plan) -> Iterator[Finding]:
    """A setting of an operator, or an option of a table, with which data is lost that the default keeps."""
    for name, table in plan.tables.items():
        connector = connector_of(table)
        if connector is not None:
            known = connector.settings
            options = {option: _value(known[option], text) for option, text in table.options.items() if option in known}
            yield from _lossy(f"tables.{name}.options", known, options)
    for operator in plan.operators:
        for group, found in operator.settings.items():
            yield from _lossy(f"operators.{operator.id}.{group}", found.specs, found.values)


def overwriting_sinks(plan: Plan) -> Iterator[Finding]:
    """A sink whose rows take the place of those that are there."""
    for sink in plan.sinks:
        if sink.overwrite is not None:
            yield Finding(
                path=f"operators.{sink.id}.overwrite", message=f"{taken_away(sink)} are taken away by each run"
            )


def _lossy(path: str, specs: Mapping[str, Setting], values: Mapping[str, Value | None]) -> Iterator[Finding]:
    for name, value in values.items():
        setting = specs[name]
        if setting.loses and value is not None and (setting.default is None or shown(value) != shown(setting.default)):
            yield Finding(path=f"{path}.{name}", message=f"with {shown(value)}, {setting.loses}")


def _value(setting: Setting, text: str) -> Value | None:
    try:
        return parse_value(setting, text)
    except SettingError:
        return None  # which validation refuses

"""Rules on data loss: settings that describe the loss themselves, and sinks that overwrite rows.

>>> list(lossy_settings(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hintplan.plans.connectors.table import connector_of
from hintplan.plans.lint.rule import Finding
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators.sink import taken_away
from hintplan.plans.settings.setting import Setting, SettingError, Value, parse_value, value_text


def lossy_settings(plan: Plan) -> Iterator[Finding]:
    """Report settings of operators and options of tables that lose data which the default keeps."""
    for name, table in plan.tables.items():
        connector = connector_of(table)
        if connector is not None:
            specs = connector.settings
            options = {option: _value(specs[option], text) for option, text in table.options.items() if option in specs}
            yield from _lossy(f"tables.{name}.options", specs, options)
    for operator in plan.operators:
        for group, settings in operator.settings.items():
            yield from _lossy(f"operators.{operator.id}.{group}", settings.specs, settings.values)


def overwriting_sinks(plan: Plan) -> Iterator[Finding]:
    """Report sinks that replace existing rows of their table."""
    for sink in plan.sinks:
        if sink.overwrite is not None:
            yield Finding(path=f"operators.{sink.id}.overwrite", message=f"each run deletes {taken_away(sink)}")


def _lossy(path: str, specs: Mapping[str, Setting], values: Mapping[str, Value | None]) -> Iterator[Finding]:
    for name, value in values.items():
        setting = specs[name]
        if (
            setting.loses
            and value is not None
            and (setting.default is None or value_text(value) != value_text(setting.default))
        ):
            yield Finding(path=f"{path}.{name}", message=f"with {value_text(value)}, {setting.loses}")


def _value(setting: Setting, text: str) -> Value | None:
    try:
        return parse_value(setting, text)
    except SettingError:
        return None  # validation reports it

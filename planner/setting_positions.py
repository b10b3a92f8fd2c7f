"""The position in a script that set each setting of its plan: a hint's key, a table option, a WATERMARK, or a SET.

Values of ``-c`` on the command line and built-in defaults have no position.

>>> from hintplan.planner.compile import compile_script
>>> tables = "CREATE TABLE {} (a INT) WITH ('connector' = '{}');"
>>> script = tables.format("t", "datagen") + tables.format("s", "print")
>>> positions = compile_script(script + "\\nSET 'parallelism.default' = '4'; INSERT INTO s SELECT a FROM t").positions
>>> positions["", "config.parallelism.default", "config"].line
2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hintplan.planner.context import TableEntry
from hintplan.planner.hints.ledger import Ledger
from hintplan.planner.syntax.source import Source
from hintplan.plans.model.config import KEYS
from hintplan.plans.model.layered_groups import table_below
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import PlanSetting
from hintplan.plans.model.settings import operator_settings
from hintplan.plans.operators import Operator, Requesting
from hintplan.plans.settings.watermark import DELAY, WATERMARK


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A position in the script, or in the init ``file``. Lines and columns start at 1."""

    offset: int
    line: int
    column: int
    file: str | None = None


Positions = Mapping[tuple[str, str, str], Position]
"""The position of each setting, by operator id, path below the operator, and layer (config, table, hint, statement).

Some keys belong to no operator: ``("", "config.<key>", "config")`` for the configuration, ``("",
"tables.<table>.options.<option>", "table")`` for options of tables, and ``("", "name", "config")`` for the plan's name.
"""


def positions_of(
    source: Source, ledger: Ledger, config: Mapping[str, int], tables: Mapping[str, TableEntry], plan: Plan
) -> dict[tuple[str, str, str], Position]:
    """Return the positions of all settings of ``plan``. ``config`` has the offset of the last SET of each key."""
    options = {
        (t, o): offset_of_option for t in plan.tables for o, offset_of_option in tables[t].option_offsets.items()
    }
    hints = _hints(ledger, plan)
    offsets_of_settings = {
        ("", _config_path(key), "config"): offset for key, offset in config.items() if KEYS[key].in_plan
    }
    offsets_of_settings |= {
        ("", f"tables.{t}.options.{o}", "table"): offset_of_option for (t, o), offset_of_option in options.items()
    }
    for operator in plan.operators:
        for setting in operator_settings(operator):
            path = setting.path.removeprefix(f"{operator.id}.")
            table = operator.table or (table_below(plan, operator) if "table" in setting.layers else None)
            option = setting.setting.option if setting.setting is not None else None
            offsets = {
                "hint": hints.get((operator.id, path)),
                "table": _of_watermark(tables, table, setting) or options.get((table or "", option or setting.name)),
                "config": config.get(_config_key(setting, operator, plan)),
                "statement": ledger.statements.get((operator.id, path)),
            }
            for layer in setting.layers:
                offset = offsets.get(layer)
                if offset is not None:
                    offsets_of_settings[operator.id, path, layer] = offset
    return {key: _position(source, offset) for key, offset in offsets_of_settings.items()}


def _of_watermark(tables: Mapping[str, TableEntry], table: str | None, setting: PlanSetting) -> int | None:
    """Return the offset of the table's WATERMARK if it sets ``setting``, the delay."""
    if table is None or (setting.group, setting.name) != (WATERMARK.name, DELAY):
        return None
    declaration = tables[table].declaration
    return None if declaration is None or declaration.watermark is None else declaration.watermark[2]


def _config_path(key: str) -> str:
    field = KEYS[key].plan_field
    return f"config.{key}" if field is None else field


def _config_key(setting: PlanSetting, operator: Operator, plan: Plan) -> str:
    """Return the configuration key that sets this setting by default, or an empty text if there is none."""
    groups = operator.config_groups(plan) if isinstance(operator, Requesting) else {}
    if setting.group in groups:
        return groups[setting.group].settings[setting.name].config or ""
    return setting.setting.config or "" if setting.setting is not None else ""


def _hints(ledger: Ledger, plan: Plan) -> dict[tuple[str, str], int]:
    """Return the offset of the hint's key by operator id and path. If several keys set a path, the first counts."""
    operators = plan.by_id
    offsets: dict[tuple[str, str], int] = {}
    for offset in sorted(ledger.targets):
        for target in ledger.targets[offset]:
            head, _, path_below = target.partition(".")
            for path in _paths(operators[head], path_below) if head in operators else ():
                offsets.setdefault((head, path), offset)
    return offsets


def _paths(operator: Operator, target: str) -> Iterator[str]:
    if target in [entry.name for entry in operator.state]:
        yield f"state.{target}.ttl"
    elif target:
        yield target


def _position(source: Source, offset: int) -> Position:
    line, column = source.place(offset)
    return Position(offset=offset, line=line, column=column, file=source.included_at(offset))

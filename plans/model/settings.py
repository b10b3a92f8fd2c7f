"""Every setting of a plan under one path: its value, the value of each layer, and the layer in force.

    name     config.<key>     tables.<table>.options.<option>
    <operator>.state.<state>.ttl     <operator>.<group>.<setting>

``hintplan set``, reasons and reported differences use these paths. Other modules define the valid values of a setting
and the consequences of an edit.

>>> plan = Plan(name="p", config={"parallelism.default": "4"})
>>> [(setting.path, setting.value) for setting in plan_settings(plan)]
[('name', 'p'), ('config.parallelism.default', '4')]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from hintplan.plans.errors import PlanError
from hintplan.plans.frozen import frozen
from hintplan.plans.model.config import KEYS, NAME
from hintplan.plans.model.optional_groups import optional_groups
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator
from hintplan.plans.settings.effects import OPTION, UNKNOWN_KEY, Effect
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings, set_by
from hintplan.plans.settings.lookup import CACHING
from hintplan.plans.settings.setting import Setting, Value
from hintplan.plans.settings.state import TTL, entry_settings
from hintplan.plans.text.names import did_you_mean


@frozen
class PlanSetting:
    """One setting; ``layers`` has the values of default, config, table, hint and statement, weakest first.

    ``operator`` is None for a setting outside the operators, whose layers are not recorded; its ``set_by`` is ``plan``.
    Otherwise ``set_by`` is the strongest layer that sets it, or ``edit`` if the value differs. ``effect`` is the effect
    of a change on a running job. ``setting`` defines the valid values; it is None for options, which connectors define.
    """

    path: str
    operator: str | None = None
    group: str
    name: str
    value: Value
    layers: Mapping[str, Value]
    set_by: str
    effect: Effect
    setting: Setting | None = None


def plan_settings(plan: Plan) -> Iterator[PlanSetting]:
    """Yield all settings of ``plan``: name, config, options of tables, then settings of operators, in plan order."""
    yield _outside("name", "name", "name", plan.name, KEYS[NAME].effect)
    for key in sorted(plan.config):
        effect = KEYS[key].effect if key in KEYS else UNKNOWN_KEY
        yield _outside(f"config.{key}", "config", key, plan.config[key], effect)
    for table in sorted(plan.tables):
        for key, value in plan.tables[table].options.items():
            if key != "connector":
                yield _outside(f"tables.{table}.options.{key}", "options", key, value, option_effect(key))
    for operator in plan.operators:
        yield from operator_settings(operator)


def option_effect(option: str) -> Effect:
    """Return the effect of a change to an option of a table; cache options have the effect of the lookup's setting."""
    setting = CACHING.settings.get(option)
    return OPTION if setting is None else setting.effect


def operator_settings(operator: Operator) -> Iterator[PlanSetting]:
    """Yield the settings of one operator: the TTL of each state, then its groups of settings."""
    for entry in operator.state:
        settings = entry_settings(entry)
        yield PlanSetting(
            path=f"{operator.id}.state.{entry.name}.ttl",
            operator=operator.id,
            group="state",
            name=entry.name,
            value=entry.ttl,
            layers=entry.origin,
            set_by=set_by(settings, "ttl"),
            effect=TTL.effect,
            setting=TTL,
        )
    for group in operator.groups:
        if group.name in operator.settings:
            yield from _group(operator, group, operator.settings[group.name])


def _group(operator: Operator, group: Group, settings: Settings) -> Iterator[PlanSetting]:
    for name, value in settings.values.items():
        yield PlanSetting(
            path=f"{operator.id}.{group.name}.{name}",
            operator=operator.id,
            group=group.name,
            name=name,
            value=value,
            layers={layer: values[name] for layer, values in settings.origin.items() if name in values},
            set_by=set_by(settings, name),
            effect=settings.specs[name].effect,
            setting=settings.specs[name],
        )


def settings_by_name(operator: Operator) -> dict[tuple[str, str], PlanSetting]:
    """Return the settings of one operator by group and name, with defaults for optional groups that are not set."""
    by_name = {(setting.group, setting.name): setting for setting in operator_settings(operator)}
    for group in optional_groups(operator):
        # In a batch plan, operators have no state, and settings of stateful operators have no effect.
        if group.name not in operator.settings and (group.mode == "batch" or operator.state):
            by_name |= {
                (default.group, default.name): default for default in _group(operator, group, group.resolved({}))
            }
    return by_name


def setting_at(plan: Plan, path: str) -> PlanSetting | None:
    """Return the setting at ``path``, in any notation that ``set`` accepts, or None if there is none."""
    wanted = canonical_path(plan, path)
    head = wanted.partition(".")[0]
    operators = [operator for operator in plan.operators if operator.id == head]
    settings = operator_settings(operators[0]) if operators else plan_settings(plan)
    return next((setting for setting in settings if setting.path == wanted), None)


def paths_like(plan: Plan, pattern: str) -> tuple[str, ...]:
    """Return the paths of settings that ``pattern`` matches; raise PlanError if it matches none.

    ``*`` in the pattern matches any text. As in :func:`canonical_path`, ``operators.`` and ``state.`` may be left out.
    """
    wanted = pattern.removeprefix("operators.")
    paths = [setting.path for operator in plan.operators for setting in operator_settings(operator)]
    matching = [p for p in paths if fnmatchcase(p, wanted) or fnmatchcase(p.replace(".state.", ".", 1), wanted)]
    if not matching:
        ends = dict.fromkeys(path.partition(".")[2].removeprefix("state.") for path in paths)
        hint = did_you_mean(wanted.rpartition("*")[2].lstrip("."), [*ends], what="settings of operators")
        raise PlanError(f"no setting matches '{pattern}'", path=pattern, hint=hint)
    return tuple(matching)


def canonical_path(plan: Plan, path: str) -> str:
    """Return the canonical form of ``path``.

    It has no leading ``operators.``, it has ``state.`` before the name of a state, and the name of a group before a
    setting that may stand for the group.
    """
    path = path.removeprefix("operators.")
    head, _, tail = path.partition(".")
    operator = next((operator for operator in plan.operators if operator.id == head), None)
    if operator is not None and (group := group_called(operator, tail)) is not None:
        return f"{head}.{group.name}.{tail}"
    states = [entry.name for entry in operator.state] if operator is not None else []
    return f"{head}.state.{tail}" if tail.partition(".")[0] in states else path


def group_called(operator: Operator, name: str) -> Group | None:
    """Return the optional group whose only setting is called ``name``, which stands for the group in a path."""
    return next((group for group in optional_groups(operator) if [*group.settings] == [name]), None)


def _outside(path: str, group: str, name: str, value: str, effect: Effect) -> PlanSetting:
    return PlanSetting(path=path, group=group, name=name, value=value, layers={}, set_by="plan", effect=effect)

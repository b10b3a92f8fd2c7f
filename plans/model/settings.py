"""All settings of a plan, each under one path (:class:`hintplan.plans.model.plan_setting.PlanSetting`).

    name     config.<key>     tables.<table>.options.<option>
    <operator>.state.<state>.ttl     <operator>.<group>.<setting>

``hintplan set``, reasons and reported differences use these paths. Other modules define the valid values of a setting
and the consequences of an edit.

>>> plan = Plan(name="p", config={"parallelism.default": "4"})
>>> [(setting.path, setting.value) for setting in plan_settings(plan)]
[('name', 'p'), ('config.parallelism.default', '4')]
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from hintplan.plans.errors import PlanError
from hintplan.plans.model.config import KEYS, NAME
from hintplan.plans.model.layered_groups import layered_groups
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import ABSENT, STATE_GROUP, PlanSetting, outside_setting, setting_of
from hintplan.plans.operators import KINDS, Operator
from hintplan.plans.settings.effects import OPTION, UNKNOWN_KEY, Effect
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings
from hintplan.plans.text.names import did_you_mean

_SET_BY_OPTIONS = {
    setting.option: setting for kind in KINDS for group in kind.groups for setting in group.settings.values()
}
"""The settings of operators by the option of a table that sets them."""


def plan_settings(plan: Plan) -> Iterator[PlanSetting]:
    """Yield all settings of ``plan``: name, config, options of tables, then settings of operators, in plan order."""
    yield name_setting(plan)
    for key in sorted(plan.config):
        yield config_setting(plan, key)
    for table in sorted(plan.tables):
        for key in plan.tables[table].options:
            if key != "connector":
                yield option_setting(plan, table, key)
    for operator in plan.operators:
        yield from operator_settings(operator)


def name_setting(plan: Plan) -> PlanSetting:
    """Return the name of the plan as a setting."""
    return outside_setting("name", "name", "name", plan.name, KEYS[NAME].effect, plan.compiled.get("name"))


def config_setting(plan: Plan, key: str) -> PlanSetting:
    """Return the setting of a key of the configuration, even if only the script set it."""
    path, effect = f"config.{key}", KEYS[key].effect if key in KEYS else UNKNOWN_KEY
    return outside_setting(path, "config", key, plan.config.get(key, ABSENT), effect, plan.compiled.get(path))


def option_setting(plan: Plan, table: str, option: str) -> PlanSetting:
    """Return the setting of an option of a table, even if only the script set it."""
    path, value = f"tables.{table}.options.{option}", plan.tables[table].options.get(option, ABSENT)
    return outside_setting(path, "options", option, value, option_effect(option), plan.compiled.get(path))


def option_effect(option: str) -> Effect:
    """Return the effect of a change to an option of a table; an option that sets a setting has the setting's effect."""
    setting = _SET_BY_OPTIONS.get(option)
    return OPTION if setting is None else setting.effect


def operator_settings(operator: Operator) -> Iterator[PlanSetting]:
    """Yield the settings of one operator: the TTL of each state, then its groups of settings."""
    for group, settings in setting_groups(operator):
        for name in settings.values:
            yield setting_of(operator.id, group, name, settings)


def setting_groups(operator: Operator) -> Iterator[tuple[str, Settings]]:
    """Yield each group of settings of ``operator`` with its path below it: of each state, then the others."""
    for entry in operator.state:
        if entry.settings is not None:
            yield f"{STATE_GROUP}{entry.name}", entry.settings
    for group in operator.groups:
        if group.name in operator.settings:
            yield group.name, operator.settings[group.name]


def settings_by_name(operator: Operator) -> dict[tuple[str, str], PlanSetting]:
    """Return the settings of one operator by group and name, with defaults for optional groups that are not set."""
    by_name = {(setting.group, setting.name): setting for setting in operator_settings(operator)}
    for group in layered_groups(operator):
        # In a batch plan, operators have no state, and settings of stateful operators have no effect.
        if group.name not in operator.settings and (group.mode == "batch" or operator.state):
            defaults = group.resolved({})
            by_name |= {
                (group.name, name): setting_of(operator.id, group.name, name, defaults) for name in defaults.values
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
    """Return the optional group whose only setting is called ``name``, which stands for the group in a path.

    An operator always has its groups that are not optional, so any of their settings stands for the group.
    """
    groups = layered_groups(operator)
    return next((g for g in groups if name in g.settings and (len(g.settings) == 1 or not g.optional)), None)

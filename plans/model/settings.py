"""Every setting of a plan under one path: its value, what each layer said of it, and who set it.

    name     config.<key>     tables.<table>.options.<option>
    <operator>.state.<state>.ttl     <operator>.<group>.<setting>

These are the paths that ``set`` takes, that reasons are kept under, and that a difference is reported for. What values
a setting takes, and what follows from an edit, is not known here.

>>> plan = Plan(name="p", config={"parallelism.default": "4"})
>>> [(setting.path, setting.value) for setting in plan_settings(plan)]
[('name', 'p'), ('config.parallelism.default', '4')]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hintplan.plans.errors import PlanError
from hintplan.plans.model.config import KEYS, NAME
from hintplan.plans.model.optional_groups import optional_groups
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, kind_of, state_of
from hintplan.plans.settings.effects import OPTION, UNKNOWN_KEY, Effect
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings, set_by
from hintplan.plans.settings.lookup import CACHING
from hintplan.plans.settings.setting import Setting, Value
from hintplan.plans.settings.state import TTL, entry_settings
from hintplan.plans.text.names import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSetting:
    """One setting. ``layers`` are what default, config, table, hint and statement said, weakest first.

    ``operator`` is None for what stands outside the operators; nobody records who set that, so ``set_by`` is ``plan``.
    Else ``set_by`` is the strongest layer that spoke, or ``edit`` if the value differs from it. ``effect`` is what
    another value does to a running job, ``setting`` what values it takes, which of options the connectors know.
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
    """All settings of ``plan``: name, config, options of tables, then those of the operators in their order."""
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
    """What another value of an option of a table does to a running job; that of a cache is a lookup's setting."""
    setting = CACHING.settings.get(option)
    return OPTION if setting is None else setting.effect


def operator_settings(operator: Operator) -> Iterator[PlanSetting]:
    """The settings of one operator: the TTL of each state, then its groups of settings."""
    for entry in state_of(operator):
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
    for group in kind_of(operator).groups:
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
            layers={layer: said[name] for layer, said in settings.origin.items() if name in said},
            set_by=set_by(settings, name),
            effect=settings.specs[name].effect,
            setting=settings.specs[name],
        )


def settings_by_name(operator: Operator) -> dict[tuple[str, str], PlanSetting]:
    """The settings of one operator by group and name; the defaults of optional groups where nobody spoke."""
    found = {(setting.group, setting.name): setting for setting in operator_settings(operator)}
    for group in optional_groups(operator):
        # An operator of a batch plan has no state, and what belongs to that has no effect.
        if group.name not in operator.settings and (group.mode == "batch" or state_of(operator)):
            found |= {(each.group, each.name): each for each in _group(operator, group, group.resolved({}))}
    return found


def setting_at(plan: Plan, path: str) -> PlanSetting | None:
    """The setting at ``path``, in any spelling that ``set`` takes; None if there is none."""
    wanted = canonical_path(plan, path)
    head = wanted.partition(".")[0]
    operators = [operator for operator in plan.operators if operator.id == head]
    settings = operator_settings(operators[0]) if operators else plan_settings(plan)
    return next((setting for setting in settings if setting.path == wanted), None)


def paths_like(plan: Plan, pattern: str) -> tuple[str, ...]:
    """The paths of settings that ``pattern`` matches, in which ``*`` stands for anything; PlanError if it matches none.

    As in :func:`canonical_path`, ``operators.`` and ``state.`` may be left out.
    """
    wanted = pattern.removeprefix("operators.")
    paths = [setting.path for operator in plan.operators for setting in operator_settings(operator)]
    found = [p for p in paths if fnmatchcase(p, wanted) or fnmatchcase(p.replace(".state.", ".", 1), wanted)]
    if not found:
        ends = dict.fromkeys(path.partition(".")[2].removeprefix("state.") for path in paths)
        hint = did_you_mean(wanted.rpartition("*")[2].lstrip("."), [*ends], what="settings of operators")
        raise PlanError(f"no setting matches '{pattern}'", path=pattern, hint=hint)
    return tuple(found)


def canonical_path(plan: Plan, path: str) -> str:
    """The one spelling of ``path``: without ``operators.`` in front, with ``state.`` before the name of a state, and
    with the name of its group before a setting that stands for it.
    """
    path = path.removeprefix("operators.")
    head, _, rest = path.partition(".")
    operator = next((operator for operator in plan.operators if operator.id == head), None)
    if operator is not None and (group := group_called(operator, rest)) is not None:
        return f"{head}.{group.name}.{rest}"
    states = [entry.name for entry in state_of(operator)] if operator is not None else []
    return f"{head}.state.{rest}" if rest.partition(".")[0] in states else path


def group_called(operator: Operator, name: str) -> Group | None:
    """The optional group whose only setting is called ``name``, which then stands for it in a path."""
    return next((group for group in optional_groups(operator) if [*group.settings] == [name]), None)


def _outside(path: str, group: str, name: str, value: str, effect: Effect) -> PlanSetting:
    return PlanSetting(path=path, group=group, name=name, value=value, layers={}, set_by="plan", effect=effect)

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

from plans.analysis.states import source, state_of
from plans.errors import PlanError
from plans.format.document import operator_document
from plans.model.operator_settings import settings_of
from plans.model.plan import Plan
from plans.operators import Aggregate, Operator, Sink
from plans.settings.cached import SETTINGS as CACHED
from plans.settings.groups import Value
from plans.settings.layers import EDIT, Specs, set_by
from plans.settings.phases import PHASES, STRATEGY
from plans.settings.phases import SPECS as PHASE_SPECS
from plans.text.names import did_you_mean

__all__ = [
    "Setting",
    "canonical_path",
    "operator_settings",
    "paths_like",
    "plan_settings",
    "setting_at",
    "settings_by_name",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting. ``layers`` are what default, config, table, hint and statement said, weakest first.

    ``operator`` is None for what stands outside the operators; nobody records who set that, so ``set_by`` is ``plan``.
    Else ``set_by`` is the strongest layer that spoke, or ``edit`` if the value differs from it.
    """

    path: str
    operator: str | None = None
    group: str
    name: str
    value: Value
    layers: Mapping[str, Value]
    set_by: str


def plan_settings(plan: Plan) -> Iterator[Setting]:
    """All settings of ``plan``: name, config, options of tables, then those of the operators in their order."""
    yield _outside("name", "name", "name", plan.name)
    for key in sorted(plan.config):
        yield _outside(f"config.{key}", "config", key, plan.config[key])
    for table in sorted(plan.tables):
        for key, value in plan.tables[table].options.items():
            if key != "connector":
                yield _outside(f"tables.{table}.options.{key}", "options", key, value)
    for operator in plan.operators:
        yield from operator_settings(operator)


def operator_settings(operator: Operator) -> Iterator[Setting]:
    """The settings of one operator: the TTL of each state, then its groups of settings."""
    for entry in state_of(operator):
        yield Setting(
            path=f"{operator.id}.state.{entry.name}.ttl",
            operator=operator.id,
            group="state",
            name=entry.name,
            value=entry.ttl,
            layers=entry.origin,
            set_by=source(entry),
        )
    groups = settings_of(operator)
    for group, document in operator_document(operator).items():
        # A group of settings is what says who asked for them; no fact does.
        if not isinstance(document, dict) or "origin" not in document:
            continue
        for name, value in document.items():
            if name == "origin":
                continue
            origin = document["origin"]
            # The document has its layers in their order, whatever layers the group knows.
            layers = {layer: said[name] for layer, said in origin.items() if name in said}
            known = groups.get(group)
            yield Setting(
                path=f"{operator.id}.{group}.{name}",
                operator=operator.id,
                group=group,
                name=name,
                value=value,
                layers=layers,
                set_by=_who(layers, value) if known is None else set_by(known, name),
            )


def settings_by_name(operator: Operator) -> dict[tuple[str, str], Setting]:
    """The settings of one operator by group and name; the defaults of phases and cached results where nobody spoke."""
    found = {(setting.group, setting.name): setting for setting in operator_settings(operator)}
    # An aggregate of a batch plan has no state, and Spark decides on its phases.
    if isinstance(operator, Aggregate) and operator.state and (PHASES, STRATEGY) not in found:
        found |= _defaults(operator, PHASES, PHASE_SPECS)
    if ("cached", "enabled") not in found and not isinstance(operator, Sink):
        found |= _defaults(operator, "cached", CACHED)
    return found


def _defaults(operator: Operator, group: str, specs: Specs) -> dict[tuple[str, str], Setting]:
    return {
        (group, name): Setting(
            path=f"{operator.id}.{group}.{name}",
            operator=operator.id,
            group=group,
            name=name,
            value=spec.default,
            layers={"default": spec.default},
            set_by="default",
        )
        for name, spec in specs.items()
        if spec.default is not None
    }


def setting_at(plan: Plan, path: str) -> Setting | None:
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
    with the group of phases before its setting.
    """
    path = path.removeprefix("operators.")
    head, _, rest = path.partition(".")
    operator = next((operator for operator in plan.operators if operator.id == head), None)
    if isinstance(operator, Aggregate) and rest == STRATEGY:
        return f"{head}.{PHASES}.{rest}"
    states = [entry.name for entry in state_of(operator)] if operator is not None else []
    return f"{head}.state.{rest}" if rest.partition(".")[0] in states else path


def _outside(path: str, group: str, name: str, value: str) -> Setting:
    return Setting(path=path, group=group, name=name, value=value, layers={}, set_by="plan")


def _who(layers: Mapping[str, Value], value: Value) -> str:
    top = next(reversed([*layers]), None)
    return top if top is not None and layers[top] == value else EDIT

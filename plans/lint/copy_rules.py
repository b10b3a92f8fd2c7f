"""A rule that finds state which keeps rows of an input longer than the input's own TTL allows.

A join keeps each row of its inputs, and the next operator keeps copies of these rows in what the join makes of them. A
hint for the input bounds only the state of the first join.

>>> list(outlived_ttls(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.format.digest import operator_facts
from hintplan.plans.lint.rule import Finding
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import PlanSetting
from hintplan.plans.model.settings import operator_settings
from hintplan.plans.operators import Operator, Stateful
from hintplan.plans.operators.contract.stateful import FOREVER
from hintplan.plans.settings.layers import EDIT

_MEANT = ("hint", EDIT)
_ONE_SIDED = ("semi", "anti")


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """An input whose rows are in the output of an operator, and the TTL that a hint or an edit gives it."""

    input: str
    setting: PlanSetting


def outlived_ttls(plan: Plan) -> Iterator[Finding]:
    """Report states with the TTL of config that keep copies of rows longer than a hint or an edit keeps the rows."""
    inside: dict[str, tuple[_Kept, ...]] = {}
    for operator in plan.operators:
        below = [inside.get(name, ()) for name in operator.inputs]
        if not isinstance(operator, Stateful) or not operator.state_names:
            inside[operator.id] = tuple(dict.fromkeys(one for each in below for one in each))
        elif operator.state_holds == "groups":
            inside[operator.id] = ()  # a group has no rows of its input
        else:
            settings = {setting.state: setting for setting in operator_settings(operator) if setting.state is not None}
            for entry in operator.state:
                copies = below[entry.index] if entry.index < len(below) else ()
                if entry.name in settings:
                    yield from _outlived(operator, settings[entry.name], copies)
            inside[operator.id] = tuple(_inside(operator, settings, below))


def _outlived(operator: Operator, state: PlanSetting, copies: tuple[_Kept, ...]) -> Iterator[Finding]:
    """Report the input of the shortest TTL among ``copies``, if ``state`` keeps it longer, by no TTL of its own."""
    shortest = min(copies, key=lambda one: _lasts(one.setting), default=None)
    if shortest is None or state.set_by in _MEANT or _lasts(state) <= _lasts(shortest.setting):
        return
    ttl = state.spoken(state.value)
    lasting = "forever" if ttl == "never" else f"for {ttl}"
    yield Finding(
        path=f"operators.{state.path}",
        message=f"it keeps copies of rows of '{shortest.input}' {lasting}, by {state.set_by}, although the "
        f"{shortest.setting.set_by} for {shortest.setting.path.removesuffix('.ttl')} keeps the rows themselves for "
        f"{shortest.setting.value}",
    )


def _inside(operator: Operator, settings: dict[str, PlanSetting], below: list[tuple[_Kept, ...]]) -> Iterator[_Kept]:
    """Yield the inputs whose rows are in the output of an operator that keeps rows."""
    is_one_sided = operator_facts(operator).get("join-type") in _ONE_SIDED
    for entry in operator.state:
        if is_one_sided and entry.index > 0:
            continue
        setting = settings.get(entry.name)
        if setting is not None and setting.set_by in _MEANT and entry.input is not None:
            yield _Kept(entry.input, setting)
        elif entry.index < len(below):
            yield from below[entry.index]


def _lasts(setting: PlanSetting) -> float:
    """Return the milliseconds of a TTL; 0 ms means forever."""
    return parse_duration(str(setting.value)) or FOREVER

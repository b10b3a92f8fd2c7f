"""Decide which edits of a plan a running job may apply, and which plan a batch that has begun is repeated with.

Each setting declares in its effect when a running job can use a new value
(:class:`hintplan.plans.settings.effects.Effect`). Everything else in a plan needs a new start, or a new checkpoint.

>>> before = Plan(name="paid")
>>> [change.path for change in needing_start(compare_plans(before, Plan(name="sold")))]
['name']
"""

from __future__ import annotations

from collections.abc import Sequence

from hintplan.plans.checkpoint.continuation import continuation
from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.checkpoint.report import check_text
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.report import change_values
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.settings import setting_at
from hintplan.plans.settings.setting import value_text
from hintplan.plans.text.counts import first_of

_SAID = 3


def needing_start(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the ``changes`` that a running job cannot apply."""
    return tuple(change for change in changes if change.effect.live == "at start")


def plan_of_begun_batch(before: Plan, plan: Plan) -> Plan:
    """Return the plan that repeats a batch which has begun under ``before``, in a run of ``plan``.

    It is ``plan`` with the settings of ``before`` that decide what a batch computes, such as TTLs. The others, such as
    the timeout of a lookup, are the new ones, because the edit may repair what stopped the batch.
    """
    repeated = plan
    for change in compare_plans(before, plan):
        if change.effect.live != "next batch" or change.operator is None or change.setting is None:
            continue
        setting = setting_at(before, change.setting)
        value = change.before if setting is None else value_text(setting.value)
        if value is not None:
            repeated, _ = set_value(repeated, change.setting, value)
    return repeated


def changes_texts(changes: Sequence[Change]) -> tuple[str, ...]:
    """Return the path and the values of each change in force, or of the notes and layers if nothing else changes."""
    in_force = [change for change in changes if change.effect.level != "none"]
    paths = [(change.setting or change.path, change) for change in in_force] or [(each.path, each) for each in changes]
    return tuple(f"{path} {change_values(change) or change.note}".rstrip() for path, change in paths)


def refusal_text(record: CheckpointRecord, plan: Plan, refused: Sequence[Change], *, share: bool = True) -> str:
    """Return why a running job does not apply an edit that has ``refused`` changes, with the report of ``check``."""
    paths = first_of([change.setting or change.path for change in refused], _SAID)
    head = f"{paths} cannot change while the job runs:"
    if plan.mode == "batch":
        return f"{head}\n{plan.name} is a batch plan: it keeps no state, so it has no checkpoint"
    report = check_text(continuation(record, plan, share=share, partitions=record.partitions), record, plan)
    return f"{head}\n{report}"

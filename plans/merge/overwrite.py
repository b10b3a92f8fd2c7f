"""Decides whether a compiled plan may replace a file: only a plan without edits may be overwritten.

>>> refuse_overwrite("there is no such file.json")
"""

from __future__ import annotations

from pathlib import Path

from hintplan.plans.errors import PlanError
from hintplan.plans.files.codec import loads, read_document, read_plan_bytes
from hintplan.plans.format.digest import changed_facts
from hintplan.plans.merge.decompose import GroupPart, decompose, settings_by_key
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.counts import first_of
from hintplan.plans.text.links import refuse_symlinks

_SHOWN = 10


def edits_in(plan: Plan) -> tuple[str, ...]:
    """Return the paths of settings, then of whole groups of settings, that edits have set or removed."""
    units = decompose(plan).units
    edited = [key for key, setting in settings_by_key(units).items() if setting.edited]
    edited += [key for key, unit in units.items() if isinstance(unit, GroupPart) and unit.edited]
    return tuple(dict.fromkeys(".".join(key).removeprefix("operators.") for key in edited))


def refuse_overwrite(path: str) -> None:
    """Raise PlanError unless there is no file at ``path``, or the file is a plan without edits and changed facts.

    A link at ``path`` is refused, too.
    """
    refuse_symlinks(Path(path))
    if not Path(path).is_file():
        return
    data = read_plan_bytes(path)
    try:
        plan = loads(data, file=path, allow_fact_edits=True, check_meaning=False)
    except PlanError as error:
        raise PlanError(
            "this file exists and is no plan that this version reads, so it is not replaced",
            file=path,
            hint="write elsewhere, or give --overwrite",
        ) from error
    at_stake = [*edits_in(plan), *(f"facts of {name}" for name in changed_facts(plan, read_document(data)))]
    if at_stake:
        raise PlanError(
            f"this plan has edits, which a recompilation of the script would lose: {first_of(at_stake, _SHOWN)}",
            file=path,
            hint=f"--keep-edits {path} carries them over, --overwrite drops them",
        )

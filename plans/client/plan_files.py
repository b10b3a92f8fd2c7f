"""COMPILE PLAN and EXECUTE PLAN, and their handling of existing plan files.

As in Flink, an existing file is replaced only if ``table.plan.force-recompile`` is set. Unlike Flink, COMPILE AND
EXECUTE PLAN executes an existing file only if it belongs to the statement.

>>> local_path("file:///data/plan.json")
'/data/plan.json'
"""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from hintplan.plans.client.actions import WritePlan
from hintplan.plans.connectors.policy import Policy, refusal
from hintplan.plans.connectors.reach import file_place
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.files.codec import dumps, load, read_plan_bytes, write_plan_bytes
from hintplan.plans.format.digest import plan_digests
from hintplan.plans.model.plan import Plan

_FORCE = "SET 'table.plan.force-recompile' = 'true'"


def local_path(path: str) -> str:
    """Convert a path or ``file:`` URL to a path; raise PlanError for other URLs and for an empty path."""
    if not path.strip():
        raise PlanError("the path of the plan file is empty", hint="write the path of a file, such as 'plan.json'")
    parts = urlsplit(path)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return unquote(parts.path)
    if "://" in path:
        raise PlanError(f"'{path}' is not a local file", hint="plan files are read and written where the client runs")
    return path


def read_plan_file(text: str, policy: Policy, *, allow_fact_edits: bool, check_meaning: bool = True) -> Plan:
    """Return the plan in the file that a statement names.

    Raise RunError if ``policy`` does not allow the file, and PlanError if the plan is wrong. For a file that is no plan
    at all, the error reveals nothing of its content.
    """
    path = _reached(text, policy)
    if not _looks_like_plan(path):
        raise PlanError(f"'{path}' is no plan", hint="name a file that COMPILE PLAN or hintplan compile has written")
    return load(path, allow_fact_edits=allow_fact_edits, check_meaning=check_meaning)


def _reached(text: str, policy: Policy) -> str:
    path = local_path(text)
    place = file_place("", path)
    if not policy.allows(place):
        raise RunError(diagnostics=(refusal(place, None),))
    return path


def _looks_like_plan(path: str) -> bool:
    """Return True if a file has two keys of a plan, even if it cannot be read as a plan."""
    data = read_plan_bytes(path)
    return b'"format"' in data and b'"operators"' in data


def write_plan_file(action: WritePlan, policy: Policy) -> str:
    """Write the plan unless an existing file must stay, and return a message.

    Raise PlanError if the file exists and the statement does not state what to do then.
    """
    path = _reached(action.path, policy)
    if os.path.exists(path) and not action.force:
        if not action.if_not_exists:
            advice = f"remove it, write COMPILE PLAN ... IF NOT EXISTS FOR, or {_FORCE}"
            raise PlanError(f"the plan file '{path}' already exists", hint=advice)
        return f"{path} already exists, and is kept{_note(path, action.plan)}"
    _write(action.plan, path)
    stateful = sum(1 for operator in action.plan.operators if operator.state)
    return f"{path} written: {len(action.plan.operators)} operators, {stateful} with state"


def plan_to_run(action: WritePlan, policy: Policy, *, allow_fact_edits: bool) -> tuple[Plan, str]:
    """Return the plan that COMPILE AND EXECUTE PLAN executes, and a message about the file.

    An existing file is executed, with its edits, if it belongs to the statement; otherwise raise PlanError.
    """
    path = _reached(action.path, policy)
    if os.path.exists(path) and not action.force:
        existing = read_plan_file(action.path, policy, allow_fact_edits=allow_fact_edits)
        if other := difference(existing, action.plan):
            raise PlanError(
                f"the plan file '{path}' belongs to other SQL: {other}",
                hint=f"EXECUTE PLAN executes it as it is; to compile it again, remove it or {_FORCE}",
            )
        return existing, f"{path} already exists, and is executed"
    return action.plan, write_plan_file(action, policy)


def difference(found: Plan, compiled: Plan) -> str:
    """Describe the differences in facts; return an empty text for plans that differ at most in settings.

    >>> difference(Plan(name="a"), Plan(name="b"))
    ''
    """
    old, new = plan_digests(found), plan_digests(compiled)
    differences: list[str] = []
    if found.mode != compiled.mode:
        differences.append(f"it is a {found.mode} plan")
    for kind, noun in (("operators", "operator"), ("tables", "table")):
        before, after = old[kind], new[kind]
        differences += [f"{noun} {name} differs" for name in before if name in after and before[name] != after[name]]
        differences += [f"{noun} {name} is in the file only" for name in before if name not in after]
        differences += [f"{noun} {name} is in the statement only" for name in after if name not in before]
    shown = differences[:3] + ["..."] * (len(differences) > 3)
    return ", ".join(shown)


def _note(path: str, plan: Plan) -> str:
    try:
        other = difference(load(path, allow_fact_edits=True, check_meaning=False), plan)
    except PlanError:
        return "; it is no plan that can be read"
    return f"; it belongs to other SQL: {other}" if other else ""


def _write(plan: Plan, path: str) -> None:
    if os.path.exists(path) and not _looks_like_plan(path):
        raise PlanError(
            f"'{path}' already exists and is not a plan, so it is not overwritten", hint="write another path"
        )
    folder = os.path.dirname(path)
    try:
        if folder:
            os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise PlanError(f"the folder '{folder}' cannot be made: {error.strerror}") from error
    write_plan_bytes(dumps(plan), path)

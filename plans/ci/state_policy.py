"""The policy of a project for its states: limits that an edit of a TTL must keep, in ``hintplan.toml``.

    [policy."join_*.leftState"]     # a pattern of paths: * stands for anything
    keep = "99.9 %"                 # an edit keeps at least this share of the observed matches
    most-bytes = "2 GiB"            # the state takes at most these bytes
    reason = true                   # an edit has a reason

Every pattern that matches a state applies to it. ``hintplan ci`` fails if a change breaks the policy, and if there is
no evidence to judge the change.

>>> StatePolicy(pattern="join_*.leftState").covers("join_o_c.leftState")
True
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hintplan.plans.ci.checks import CheckedFile
from hintplan.plans.compare.change import Change
from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.evidence.advice import advice_on
from hintplan.plans.evidence.ages import ENDS
from hintplan.plans.evidence.document import Evidence, StateEvidence
from hintplan.plans.evidence.kept import percent, share_kept, size_kept
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.review.annotations import remark_of_diagnostic
from hintplan.plans.settings.layers import EDIT, set_by
from hintplan.plans.settings.state import readable_ttl
from hintplan.plans.text.counts import human_bytes, parse_bytes, parse_share
from hintplan.plans.text.names import did_you_mean
from hintplan.plans.text.project import project_for, read_project

RULE = "policy"

_KEYS = ("keep", "most-bytes", "reason")
_GIVE = "give --evidence FILE; where the job runs, hintplan state PLAN --checkpoint DIR --evidence FILE writes it"


@frozen
class StatePolicy:
    """The limits for the states whose path matches ``pattern``, such as ``join_*.leftState``.

    ``keep`` is the least share (0 to 1) of matches that an edit keeps, ``most_bytes`` the largest size of the state.
    With ``reason``, an edit must have a reason.
    """

    pattern: str
    keep: float | None = None
    most_bytes: int | None = None
    reason: bool = False

    def covers(self, path: str) -> bool:
        """Return True if the policy applies to the state at ``path``, such as ``join_o_p.leftState``."""
        return fnmatch.fnmatchcase(path, self.pattern)


def policies_for(plan: Path) -> tuple[StatePolicy, ...]:
    """Return the policies in the project of a plan file; raise PlanError for an invalid one."""
    file = project_for(plan)
    if file is None:
        return ()
    return tuple(_policy(pattern, table, str(file)) for pattern, table in read_project(file).get("policy", {}).items())


def _policy(pattern: str, table: object, file: str) -> StatePolicy:
    if not isinstance(table, dict):
        hint = 'write [policy."*"] for all states, or [policy."join_o_c.leftState"] for one'
        raise PlanError(f"'policy.{pattern}' must be a table", file=file, hint=hint)
    here = f'policy."{pattern}"'
    for key in table:
        if key not in _KEYS:
            raise PlanError(f"unknown key '{key}' in {here}", file=file, hint=did_you_mean(key, _KEYS, what="keys"))
    keep, most, reason = table.get("keep"), table.get("most-bytes"), table.get("reason", False)
    if not isinstance(reason, bool):
        raise PlanError(f"'reason' in {here} must be true or false", file=file)
    try:
        return StatePolicy(
            pattern=pattern.removeprefix("operators.").removesuffix(".ttl").replace(".state.", "."),
            keep=None if keep is None else parse_share(str(keep)),
            most_bytes=None if most is None else parse_bytes(str(most)),
            reason=reason,
        )
    except ValueError as error:
        raise PlanError(f"{here}: {error}", file=file) from error


def with_policy(checked: CheckedFile, policies: Sequence[StatePolicy], evidence: Evidence | None) -> CheckedFile:
    """Return the result with an error for each limit of ``policies`` that the plan or a change of it breaks.

    Without policies, the result is unchanged.
    """
    plan = checked.plan
    if not policies or plan is None:
        return checked
    problems = [*_sizes(plan, policies, evidence)]
    for change, place in zip(checked.changes, checked.places, strict=True):
        if (state := _state_of(change, plan)) is None:
            continue
        for policy in policies:
            if policy.covers(state):
                found = _change(change, state, policy, plan, evidence)
                problems += [replace(problem, line=place.line, column=place.column) for problem in found]
    remarks = [remark_of_diagnostic(replace(problem, file=checked.file), RULE) for problem in problems]
    marks = {**checked.marks, RULE: "failed" if remarks else "ok"}
    return replace(checked, remarks=(*checked.remarks, *remarks), marks=marks)


def _state_of(change: Change, plan: Plan) -> str | None:
    """Return the path of the state whose TTL a change sets, or None."""
    if change.subject != "setting" or change.after is None or not (change.setting or "").endswith(".ttl"):
        return None
    path = change.path.removesuffix(".ttl")
    return path if path in _ttls(plan) else None


def _ttls(plan: Plan) -> dict[str, str]:
    return {
        f"{operator.id}.{e.name}": e.ttl for operator in plan.operators for e in operator.state if e.ttl is not None
    }


def _sizes(plan: Plan, policies: Sequence[StatePolicy], evidence: Evidence | None) -> Iterator[Diagnostic]:
    """Yield a problem for each observed state that takes more bytes than a policy allows."""
    ttls = _ttls(plan)
    for state in evidence.states if evidence is not None else ():
        most = min((p.most_bytes for p in policies if p.most_bytes is not None and p.covers(state.path)), default=None)
        ttl = ttls.get(state.path)
        if most is None or ttl is None:
            continue
        size = size_kept(state, parse_duration(ttl))
        if size.bytes > most:
            least = "at least " * size.at_least
            yield Diagnostic(
                message=f"{state.path} takes {least}{human_bytes(size.bytes)} with the TTL {readable_ttl(ttl)}; "
                f"the policy allows {human_bytes(most)}",
                hint=_fitting(state, most),
                path=f"{state.path}.ttl",
            )


def _fitting(state: StateEvidence, most: int) -> str:
    fits = [end for end in ENDS if (not state.ttl or end <= state.ttl) and size_kept(state, end).bytes <= most]
    if not fits:
        return "filter rows or columns before this operator: no TTL makes the state so small"
    return f"a TTL of {format_duration(fits[-1])} would take {human_bytes(size_kept(state, fits[-1]).bytes)}"


def _change(
    change: Change, state: str, policy: StatePolicy, plan: Plan, evidence: Evidence | None
) -> Iterator[Diagnostic]:
    """Yield the problems of a change of a TTL."""
    if policy.reason and _is_edit(plan, state) and (not change.reason or change.reason_for is not None):
        yield Diagnostic(
            message=f"{state}: the policy requires a reason for the TTL {change.after}",
            hint=f"hintplan set PLAN {change.setting}='{change.after}' --reason TEXT",
            path=change.path,
        )
    if policy.keep is not None and _shortens(change):
        yield from _kept(change, state, policy.keep, evidence)


def _kept(change: Change, state: str, keep: float, evidence: Evidence | None) -> Iterator[Diagnostic]:
    """Yield a problem if a shorter TTL keeps too few matches, or if that is not known."""
    wanted = f"the policy wants at least {percent(keep)}"
    found = None if evidence is None else evidence.state(state)
    share = None if change.cost is None else change.cost.share
    if found is None or share is None:
        why = "no evidence was given" if found is None else "no match of so long a TTL was observed"
        message = f"{state}: the share of matches that the TTL {change.after} keeps is not known, {why}; {wanted}"
        yield Diagnostic(message=message, hint=_GIVE if found is None else "keep the TTL before", path=change.path)
    elif share.least < keep:
        proposed = advice_on(found, keep).proposed
        kept = None if proposed is None else share_kept(found, proposed)
        hint = f"keep the TTL before, {readable_ttl(change.before or '')}"
        if proposed is not None and kept is not None:
            hint = f"the shortest TTL that does so is {format_duration(proposed)}: it keeps {percent(kept.least)}"
        message = f"{state}: the TTL {change.after} keeps {percent(share.least)} of matches; {wanted}"
        yield Diagnostic(message=message, hint=hint, path=change.path)


def _shortens(change: Change) -> bool:
    before, after = parse_duration(change.before or "0 ms"), parse_duration(change.after or "0 ms")
    return after > 0 and (before == 0 or after < before)


def _is_edit(plan: Plan, state: str) -> bool:
    operator, _, name = state.rpartition(".")
    entry = next(entry for entry in plan.operator(operator).state if entry.name == name)
    return entry.settings is not None and set_by(entry.settings, "ttl") == EDIT

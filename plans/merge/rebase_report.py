"""Words the result of a rebase: a list of the edits that remain, and the obstacles of the others.

>>> print(rebase_text(RebasedPlan(plan=None)))
no edits to keep
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.merge.merge_text import CarriedEdit
from hintplan.plans.merge.rebase import Orphan, RebasedPlan
from hintplan.plans.text.counts import count
from hintplan.plans.text.escapes import clean


def rebase_text(rebased: RebasedPlan) -> str:
    """Return the edits grouped by result, one per line."""
    sections = (
        (rebased.kept, "kept", lambda e: f"over {e.after}"),
        (rebased.changed_underneath, "kept, changed underneath", lambda e: f"over {e.after}; it was over {e.before}"),
        (rebased.same, "no longer needed: the SQL has the same value", lambda e: e.after),
        (rebased.dropped, "dropped with --drop-orphans", lambda e: f"over {e.before}"),
    )
    width = max((len(clean(e.path)) for edits, _, _ in sections for e in edits), default=0)
    lines = [f"{old} is called {new} now, and keeps its edits" for old, new in rebased.renamed.items()]
    for edits, title, words in sections:
        if edits:
            lines.append(f"{count(len(edits), 'edit')} {title}")
            lines += [_line(edit, words(edit), min(width, 60)) for edit in edits]
    return "\n".join(lines) or "no edits to keep"


def _line(edit: CarriedEdit, words: str, width: int) -> str:
    note = f"; {edit.note}" if edit.note else ""
    return f"  {edit.path:<{width}}   {edit.value}   {words}{note}".replace("\n", "\\n")


def obstacles(rebased: RebasedPlan, file: str) -> Iterator[Diagnostic]:
    """Yield the obstacles to a result: orphans, then settings that both plans edit, then problems of the plan."""
    for orphan in rebased.orphans:
        yield _orphan(orphan, file)
    for edit in rebased.conflicts:
        message = f"the old plan has {edit.value} (edit over {edit.before}), the new one {edit.after}"
        hint = "take back one of the two edits with 'hintplan set'"
        yield Diagnostic(message=message, path=edit.path, file=file, hint=hint)
    for problem in rebased.problems:
        message = f"with the edits carried over: {problem.message}"
        yield Diagnostic(message=message, path=problem.path, file=file, hint=problem.hint)


def _orphan(orphan: Orphan, file: str) -> Diagnostic:
    edits = "".join(f"\n  {edit.path} {edit.value}, over {edit.before}" for edit in orphan.edits)
    if orphan.why:
        message = f"'{orphan.name}': {orphan.why}{edits}"
        return Diagnostic(message=message, file=file, hint="set it in the SQL, or drop the edits with --drop-orphans")
    noun = "table" if orphan.name.startswith("tables.") else "operator"
    message = f"the new plan has no {noun} '{orphan.name.removeprefix('tables.')}', which has edits:{edits}"
    likely = orphan.successor
    if likely is None:
        hint = f"no new {noun} is like it; --map {orphan.name}=... names its successor, --drop-orphans drops its edits"
        return Diagnostic(message=message, file=file, hint=hint)
    message += f"\n  '{likely.id}' may have taken its place: {likely.why}"
    hint = f"--map {orphan.name}={likely.id} carries the edits over, --drop-orphans drops them"
    return Diagnostic(message=message, file=file, hint=hint)


def raise_obstacles(rebased: RebasedPlan, file: str) -> None:
    """Raise PlanError if there is no result; ``file`` is the file of the old plan."""
    problems = tuple(obstacles(rebased, file))
    if problems:
        raise PlanError(diagnostics=problems)


def rebase_json(rebased: RebasedPlan, file: str) -> dict[str, Any]:
    """Return the report as JSON values; ``done`` is true if there is a result."""
    return {
        "done": rebased.plan is not None,
        "renamed": dict(rebased.renamed),
        "kept": [_json(edit) for edit in rebased.kept],
        "changed-underneath": [_json(edit) for edit in rebased.changed_underneath],
        "same": [_json(edit) for edit in rebased.same],
        "dropped": [_json(edit) for edit in rebased.dropped],
        "orphans": [{**asdict(orphan), "edits": [_json(edit) for edit in orphan.edits]} for orphan in rebased.orphans],
        "conflicts": [_json(edit) for edit in rebased.conflicts],
        "problems": [asdict(problem) for problem in rebased.problems],
        "message": "\n".join(str(problem) for problem in obstacles(rebased, file)),
    }


def _json(edit: CarriedEdit) -> dict[str, str]:
    """Return an edit; ``was-over`` is the value that it overrode, ``over`` the value that it overrides now."""
    return {"path": edit.path, "value": edit.value, "was-over": edit.before, "over": edit.after, "note": edit.note}

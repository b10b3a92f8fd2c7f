"""The report of the checks of a change: as lines, and as a comment for its pull request.

>>> ci_text([], base="main")
'no plans'
"""

from __future__ import annotations

from collections.abc import Sequence

from hintplan.plans.ci.checks import NEVER, CheckedFile
from hintplan.plans.compare.report import changes_summary, changes_text, worst_level
from hintplan.plans.errors import on_one_line
from hintplan.plans.review.annotations import Remark
from hintplan.plans.review.diff_markdown import LIMIT, mermaid_of, report_markdown
from hintplan.plans.settings.effects import LEVELS, MEANING
from hintplan.plans.text.counts import count
from hintplan.plans.text.escapes import clean
from hintplan.plans.text.markdown import code
from hintplan.plans.text.terminal import one_line

MARKER = "<!-- hintplan ci -->"
"""The first line of a comment, by which a script finds the comment to replace."""

_SHOWN_REMARKS = 20


def ci_text(checked: Sequence[CheckedFile], *, base: str) -> str:
    """Return a paragraph per plan: its errors and warnings, then its differences from the base."""
    if not checked:
        return "no plans"
    blocks = []
    for plan in checked:
        lines = [clean(f"{on_one_line(plan.file)}: {_verdict(plan, base)}")]
        lines += [f"  {remark.level}: {one_line(_place(remark.line) + remark.message)}" for remark in _wrong(plan)]
        if plan.changes:
            lines += [f"  {line}" for line in changes_text(plan.changes).split("\n")[:-1]]
        lines += [f"  error: {line}" for line in _failed_by_effect(plan)]
        blocks.append("\n".join(lines))
    failed = sum(plan.failed for plan in checked)
    blocks.append(f"{count(len(checked), 'plan')} checked · {_failed(failed)}")
    return "\n\n".join(blocks)


def ci_markdown(checked: Sequence[CheckedFile], *, base: str) -> str:
    """Return the comment: a table of all plans, then the changes of each, within the size limit of comments."""
    failed = sum(plan.failed for plan in checked)
    changed = [plan for plan in checked if plan.changes]
    parts = [
        MARKER,
        f"### hintplan: {count(len(checked), 'plan')}, {len(changed)} changed, {_failed(failed)}",
        _table(checked, base),
    ]
    room = LIMIT - sum(map(len, parts))
    for plan in checked:
        if not plan.changes and not plan.failed and plan.before is not None:
            continue  # its warnings are not new
        share = max(room // 2, 4000) if plan is not checked[-1] else room
        block = "\n\n".join([f"#### {code(plan.file)}", *_details(plan, share)])
        if len(block) > room:
            parts.append("More changes do not fit into a comment; `hintplan ci` prints them all.")
            break
        parts.append(block)
        room -= len(block) + 2
    return "\n\n".join(parts) + "\n"


def _failed_by_effect(one: CheckedFile) -> list[str]:
    """Return the effect that made a plan fail, and the option that accepts it."""
    if not one.failed_by_effect:
        return []
    level = worst_level(one.changes)
    worse = LEVELS[LEVELS.index(level) + 1 :]
    accepted = worse[0] if worse else NEVER
    return [f"fails by its effect on running jobs, {level}: {MEANING[level]}; --fail-on {accepted} accepts it"]


def _details(one: CheckedFile, limit: int) -> list[str]:
    blocks = [f"- **error** {code(line)}" for line in _failed_by_effect(one)]
    wrong = _wrong(one)
    if wrong:
        lines = [
            f"- **{remark.level}** {remark.rule}: {_place(remark.line)}{code(remark.message)}"
            for remark in wrong[:_SHOWN_REMARKS]
        ]
        if len(wrong) > _SHOWN_REMARKS:
            lines.append(f"- {len(wrong) - _SHOWN_REMARKS} more")
        blocks.append("\n".join(lines))
    if one.changes and one.plan is not None and one.before is not None:
        graph = mermaid_of(one.before, one.plan, one.changes)
        blocks.append(report_markdown(one.changes, graph=graph, limit=limit))
    return blocks


def _table(checked: Sequence[CheckedFile], base: str) -> str:
    kinds = list(dict.fromkeys(kind for plan in checked for kind in plan.marks))
    head = ["plan", *kinds, f"compared with {code(base)}", "effect"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for plan in checked:
        effect = worst_level(plan.changes) if plan.changes else ""
        cells = [code(plan.file), *(plan.marks.get(kind, "") for kind in kinds), _difference(plan), effect]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _verdict(one: CheckedFile, base: str) -> str:
    if one.removed:
        return "removed"
    if one.plan is None:
        return "no valid plan"
    return f"{'failed' if one.failed else 'ok'} · {_difference(one)} · compared with {base}"


def _difference(one: CheckedFile) -> str:
    if one.removed:
        return "removed"
    if one.plan is None:
        return ""
    if one.before is None:
        return f"new, {count(len(one.plan.operators), 'operator')}"
    return changes_summary(one.changes)


def _wrong(one: CheckedFile) -> list[Remark]:
    return [remark for remark in one.remarks if not remark.rule.startswith("diff-")]


def _place(line: int | None) -> str:
    return f"line {line}: " if line is not None else ""


def _failed(number: int) -> str:
    return f"{number} failed" if number else "none failed"

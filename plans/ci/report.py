"""What the checks of a change found: as lines, and as a comment for its pull request.

>>> ci_text([], base="main")
'no plans'
"""

from __future__ import annotations

from collections.abc import Sequence

from hintplan.plans.ci.checks import Checked
from hintplan.plans.compare.report import report_text, summary, worst_level
from hintplan.plans.errors import on_one_line
from hintplan.plans.review.annotations import Remark
from hintplan.plans.review.diff_markdown import LIMIT, mermaid_of, report_markdown
from hintplan.plans.text.counts import count
from hintplan.plans.text.markdown import code
from hintplan.plans.text.terminal import one_line
from hintplan.plans.text.unprintable import clean

MARKER = "<!-- hintplan ci -->"
"""The first line of a comment, by which a script finds the one to replace."""

_SHOWN_REMARKS = 20


def ci_text(checked: Sequence[Checked], *, base: str) -> str:
    """A paragraph a plan: what is wrong with it, then how it differs from the base."""
    if not checked:
        return "no plans"
    blocks = []
    for one in checked:
        lines = [clean(f"{on_one_line(one.file)}: {_verdict(one, base)}")]
        lines += [f"  {remark.level}: {one_line(_place(remark.line) + remark.message)}" for remark in _wrong(one)]
        if one.changes:
            lines += [f"  {line}" for line in report_text(one.changes).split("\n")[:-1]]
        blocks.append("\n".join(lines))
    failed = sum(one.failed for one in checked)
    blocks.append(f"{count(len(checked), 'plan')} checked · {_failed(failed)}")
    return "\n\n".join(blocks)


def ci_markdown(checked: Sequence[Checked], *, base: str) -> str:
    """The comment: a table of all plans, then what changed in each, below the limit of such comments."""
    failed = sum(one.failed for one in checked)
    changed = [one for one in checked if one.changes]
    parts = [
        MARKER,
        f"### hintplan: {count(len(checked), 'plan')}, {len(changed)} changed, {_failed(failed)}",
        _table(checked, base),
    ]
    room = LIMIT - sum(map(len, parts))
    for one in checked:
        if not one.changes and not one.failed and one.before is not None:
            continue  # what rules warn of was there before
        share = max(room // 2, 4000) if one is not checked[-1] else room
        block = "\n\n".join([f"#### {code(one.file)}", *_details(one, share)])
        if len(block) > room:
            parts.append("More changes do not fit into a comment; `hintplan ci` prints them all.")
            break
        parts.append(block)
        room -= len(block) + 2
    return "\n\n".join(parts) + "\n"


def _details(one: Checked, limit: int) -> list[str]:
    blocks = []
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


def _table(checked: Sequence[Checked], base: str) -> str:
    kinds = list(dict.fromkeys(kind for one in checked for kind in one.marks))
    head = ["plan", *kinds, f"compared with {code(base)}", "effect"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for one in checked:
        effect = worst_level(one.changes) if one.changes else ""
        cells = [code(one.file), *(one.marks.get(kind, "") for kind in kinds), _difference(one), effect]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _verdict(one: Checked, base: str) -> str:
    if one.removed:
        return "removed"
    if one.plan is None:
        return "no valid plan"
    return f"{'failed' if one.failed else 'ok'} · {_difference(one)} · compared with {base}"


def _difference(one: Checked) -> str:
    if one.removed:
        return "removed"
    if one.plan is None:
        return ""
    if one.before is None:
        return f"new, {count(len(one.plan.operators), 'operator')}"
    return summary(one.changes)


def _wrong(one: Checked) -> list[Remark]:
    return [remark for remark in one.remarks if not remark.rule.startswith("diff-")]


def _place(line: int | None) -> str:
    return f"line {line}: " if line is not None else ""


def _failed(number: int) -> str:
    return f"{number} failed" if number else "none failed"

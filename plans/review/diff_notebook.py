"""A list of changes as the value of a notebook cell: a summary, a picture of the changes, and a table.

As for a plan (:mod:`hintplan.plans.show.notebook`), no style, script or name in it becomes part of the notebook.

>>> diff_cell(Plan(name="a"), Plan(name="a"), ())
'<p><strong>no differences</strong></p>'
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hintplan.plans.compare.change import Change
from hintplan.plans.compare.report import change_values, changes_summary, cost_lines, shown_changes
from hintplan.plans.model.plan import Plan
from hintplan.plans.review.diff_html import drawing_of
from hintplan.plans.show.notebook import MOST, embedded
from hintplan.plans.text.escapes import clean

_HEAD = "<tr><th></th><th>what</th><th>change</th><th>note</th><th>effect on a running job</th></tr>"


def diff_cell(before: Plan, after: Plan, changes: Sequence[Change]) -> str:
    """Return HTML without scripts, styles and external links."""
    parts = [f"<p><strong>{_text(changes_summary(changes))}</strong></p>"]
    drawing = drawing_of(before, after, changes)
    if drawing:
        parts.append(embedded(drawing, "what changed"))
    shown = shown_changes(changes, "normal")
    if shown:
        rows = "".join(_row(change, alike) for change, alike in shown[:MOST])
        parts.append(f"<table><thead>{_HEAD}</thead><tbody>{rows}</tbody></table>")
    if len(shown) > MOST:
        parts.append(f"<p>{len(shown) - MOST:,} more changes: <code>print</code> shows all of them.</p>")
    return "\n".join(parts)


def _row(change: Change, alike: Sequence[Change]) -> str:
    subject = f"{len(alike)} states that follow config" if alike else _text(change.path)
    reason = change.reason and f"{change.reason_label}: {change.reason}"
    note = " · ".join(_text(part) for part in (change.note, reason, *cost_lines(change, alike)) if part)
    cells = (escape(change.kind), subject, change_values(change, _text), note, _text(change.effect.text))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _text(text: str) -> str:
    return escape(clean(text))

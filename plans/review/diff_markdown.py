"""A list of changes as Markdown for a review comment: a summary, a table, folded details, and a picture.

>>> report_markdown(())
'no differences'
"""

from __future__ import annotations

from collections.abc import Sequence

from hintplan.plans.compare.change import Change
from hintplan.plans.compare.report import Detail, change_values, changes_summary, cost_lines, legend, shown_changes
from hintplan.plans.model.plan import Plan
from hintplan.plans.show.graph_text import MERMAID_EDGES, MERMAID_TEXT, mermaid
from hintplan.plans.show.picture import changed_part
from hintplan.plans.text.markdown import code, fence

LIMIT = 60_000
"""Maximum characters of a comment; review pages accept 65,536."""

_FOLD_ABOVE = 30
_HEAD = "| | what | change | note | effect |\n|---|---|---|---|---|"


def report_markdown(
    changes: Sequence[Change], *, detail: Detail = "normal", graph: str = "", limit: int = LIMIT
) -> str:
    """Return at most ``limit`` characters; ``graph`` is the text of :func:`mermaid_of`, left out if too large."""
    if not changes:
        return "no differences"
    parts = [f"**{changes_summary(changes)}**"]
    shown = shown_changes(changes, detail)
    rows = [row for row in shown if detail == "full" or row[0].effect.level != "none"]
    idle = [row for row in shown if detail != "full" and row[0].effect.level == "none"]
    parts.append("Effects: " + " · ".join(f"{level} {number}" for level, number, _ in legend(changes)))
    if detail != "concise":
        picture_text = f"\n\n{_folded('Picture', fence(graph, 'mermaid'))}" if graph else ""
        if len(picture_text) > limit // 2:
            picture_text = ""
        room = limit - len(picture_text) - 4000
        table, left = _table(rows, room)
        parts.append(_folded(f"{len(changes)} changes", table) if len(rows) > _FOLD_ABOVE else table)
        if idle and not left:
            text, _ = _table(idle, room - len(table))
            parts.append(_folded(f"{len(idle)} without effect on a running job", text))
        meanings = "\n".join(f"- {level}: {meaning}" for level, _, meaning in legend(changes))
        parts.append(_folded("The meaning of the effects", meanings))
        return "\n\n".join(part for part in parts if part) + picture_text
    return "\n\n".join(parts)


def mermaid_of(before: Plan, after: Plan, changes: Sequence[Change]) -> str:
    """Draw the changed operators and their neighbours as Mermaid.

    Return an empty text if there are none, or if the picture is too large.
    """
    shown = changed_part(before, after, changes)
    text = mermaid(shown) if shown is not None else ""
    return text if len(text) <= MERMAID_TEXT and text.count("\n") <= 2 * MERMAID_EDGES else ""


def _table(rows: Sequence[tuple[Change, list[Change]]], room: int) -> tuple[str, int]:
    """Return the table, and the number of changes that did not fit."""
    lines = [_HEAD]
    size = len(_HEAD)
    for number, (change, alike) in enumerate(rows):
        line = _row(change, alike)
        size += len(line) + 1
        if size > room:
            omitted = len(rows) - number
            return "\n".join([*lines, f"| | {omitted} more changes | | | |"]), omitted
        lines.append(line)
    return ("\n".join(lines) if rows else ""), 0


def _row(change: Change, alike: list[Change]) -> str:
    subject = f"{len(alike)} states that follow config" if alike else code(change.path)
    note = code(change.note)
    if change.reason:
        note += f"{'<br>' if note else ''}{change.reason_label}: {code(change.reason)}"
    note = "<br>".join(part for part in (note, *cost_lines(change, alike, code)) if part)
    cells = (change.kind.replace("-/+", "−/+"), subject, change_values(change, code), note, change.effect.text)
    return "| " + " | ".join(cells) + " |"


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"

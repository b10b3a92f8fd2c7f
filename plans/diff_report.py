"""Words a list of changes: as aligned text, as Markdown for a review, as JSON for a script.

>>> report_text(())
'no differences'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from plans.diff import Change
from plans.terminal import clean

__all__ = ["report_json", "report_markdown", "report_text", "summary"]

_GAP = "     "
_FOLD_ABOVE = 30
_MARKDOWN_LIMIT = 60_000
"""Characters; review pages take 65,536 in one comment."""


def report_text(changes: Sequence[Change]) -> str:
    """One line a change in aligned columns, then the summary."""
    if not changes:
        return "no differences"
    cells = [(f"{change.kind} {change.path}", _values(change), change.note, change.effect) for change in changes]
    rows = [[_one_line(cell) for cell in row] for row in cells]
    # One absurdly long name must not push all the others off the screen.
    widths = [min(max(len(row[i]) for row in rows), limit) for i, limit in enumerate((50, 40, 60))]
    widths[0] = max(widths[0], 34)
    lines = []
    for row in rows:
        aligned = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False) if width]
        lines.append(_GAP.join([*aligned, row[-1]]).rstrip())
    return "\n".join([*lines, summary(changes)])


def report_markdown(changes: Sequence[Change]) -> str:
    """A table for a review comment, folded when it is long and cut below the limit of such comments."""
    if not changes:
        return "no differences"
    rows: list[str] = []
    size = 0
    for change in changes:
        cells = (change.kind, _code(change.path), _values(change, _code), _escape(change.note), _escape(change.effect))
        row = "| " + " | ".join(cells) + " |"
        size += len(row) + 1
        if size > _MARKDOWN_LIMIT:
            rows.append(f"| | {len(changes) - len(rows)} more changes | | | |")
            break
        rows.append(row)
    table = "\n".join(["| | what | change | note | effect |", "|---|---|---|---|---|", *rows])
    if len(changes) > _FOLD_ABOVE:
        table = f"<details><summary>{len(changes)} changes</summary>\n\n{table}\n\n</details>"
    return f"**{summary(changes)}**\n\n{table}"


def report_json(changes: Sequence[Change]) -> dict[str, Any]:
    """The changes and their summary as JSON values."""
    return {
        "different": bool(changes),
        "keeps-state": all(change.keeps_state for change in changes),
        "summary": summary(changes) if changes else "no differences",
        "changes": [
            {
                "kind": {"~": "changed", "+": "added", "-": "removed"}[change.kind],
                "subject": change.subject,
                "path": change.path,
                "before": change.before,
                "after": change.after,
                "note": change.note,
                "effect": change.effect,
                "keeps-state": change.keeps_state,
            }
            for change in changes
        ],
    }


def summary(changes: Sequence[Change]) -> str:
    """What changed, counted, and whether running state stays readable."""
    settings = len({change.name for change in changes if change.subject == "setting"})
    parts = [f"{_count(settings, 'setting')} changed"]
    tables = len({change.name for change in changes if change.subject == "table"})
    if tables:
        parts.append(f"{_count(tables, 'table')} changed")
    operators = {change.name: change.kind for change in changes if change.subject == "operator"}
    counted = [
        f"{_count(number, 'operator')} {verb}"
        for kind, verb in (("~", "changed"), ("+", "added"), ("-", "removed"))
        if (number := sum(1 for found in operators.values() if found == kind))
    ]
    parts.append(", ".join(counted) or "no operator changed")
    readable = all(change.keeps_state for change in changes)
    parts.append("running state stays readable" if readable else "running state cannot be used")
    return " · ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number <= 1 else 's'}"


def _values(change: Change, mark: Any = str) -> str:
    if change.before is None and change.after is None:
        return ""
    if change.before is None or change.after is None:
        return str(mark(change.before if change.after is None else change.after))
    return f"{mark(change.before)} → {mark(change.after)}"


def _one_line(text: str) -> str:
    return clean(text.replace("\n", " "))


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|@#~])", r"\\\1", _one_line(text))


def _code(text: str) -> str:
    text = _one_line(text).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{blank}{text}{blank}{fence}"

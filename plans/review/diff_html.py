"""A list of changes as a standalone HTML page without scripts, for light and dark screens and for paper.

>>> report_html((), title="a to b").startswith("<!doctype html>")
True
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hintplan.plans.compare.change import Change
from hintplan.plans.compare.report import Detail, change_values, changes_summary, cost_lines, legend, shown_changes
from hintplan.plans.model.plan import Plan
from hintplan.plans.show.picture import changed_part
from hintplan.plans.show.svg import standalone
from hintplan.plans.text.escapes import clean

_MAX_BOXES = 300

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --add: #1a7f37; --del: #c23b3b; --mod: #9a6700; --quiet: #6e7781; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; } code { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; vertical-align: top; }
td.sign { font-family: ui-monospace, monospace; white-space: pre; }
tr.added td.sign { color: var(--add); } tr.removed td.sign, tr.incompatible td.effect { color: var(--del); }
tr.changed td.sign { color: var(--mod); } .quiet { color: var(--quiet); font-size: 13px; }
.badge { border: 1px solid var(--line); border-radius: 1rem; padding: .1rem .6rem; margin-right: .4rem; }
figure { margin: 1rem 0; overflow: auto; }
@media print { details { display: block; } }
"""
_CLASSES = {"+": "added", "-": "removed", "~": "changed", "-/+": "removed"}


def report_html(changes: Sequence[Change], *, title: str, detail: Detail = "normal", drawing: str = "") -> str:
    """Return the page; ``drawing`` is SVG in which all text of a plan is escaped."""
    rows = [_row(change, alike) for change, alike in shown_changes(changes, detail)]
    badges = [f'<span class="badge">{level} {number}</span>' for level, number, _ in legend(changes)]
    meanings = [f"<dt>{level}</dt><dd>{escape(meaning)}</dd>" for level, _, meaning in legend(changes)]
    head = "<tr><th></th><th>what</th><th>change</th><th>note</th><th>effect on a running job</th></tr>"
    parts = [
        f"<h1>{_text(title)}</h1>",
        f"<p><strong>{_text(changes_summary(changes))}</strong></p>",
        f"<p>{''.join(badges)}</p>" if badges else "",
        f"<figure>{drawing}</figure>" if drawing else "",
        f"<table><thead>{head}</thead><tbody>\n{chr(10).join(rows)}\n</tbody></table>" if rows else "",
        f"<h2>Effects</h2><dl>{''.join(meanings)}</dl>" if meanings else "",
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>",
            *(part for part in parts if part),
            "</body></html>",
        ]
    )


def drawing_of(before: Plan, after: Plan, changes: Sequence[Change]) -> str:
    """Draw the changed operators and their neighbours as SVG.

    Return an empty text if there are none, or too many for a page.
    """
    shown = changed_part(before, after, changes)
    return standalone(shown) if shown is not None and len(shown.boxes) <= _MAX_BOXES else ""


def _row(change: Change, alike: list[Change]) -> str:
    classes = f"{_CLASSES[change.kind]} {change.effect.level}"
    subject = f"{len(alike)} states that follow config" if alike else f"<code>{_text(change.path)}</code>"
    if alike:
        subject += f"<div class=quiet>{', '.join(_text(c.path) for c in alike)}</div>"
    note = _text(change.note)
    if change.layers:
        layers = " · ".join(f"{layer} {value}" for layer, value in change.layers.items())
        note += f"<div class=quiet>layers: {_text(layers)}</div>"
    if change.reason:
        note += f"<div>{_text(change.reason_label)}: {_text(change.reason)}</div>"
    note += "".join(f"<div>{_text(line)}</div>" for line in cost_lines(change, alike))
    effect = f"{_text(change.effect.text)}<div class=quiet>{_text(change.effect.because)}</div>"
    cells = [
        f'<td class="sign">{escape(change.kind)}</td>',
        f"<td>{subject}</td>",
        f"<td>{change_values(change, lambda text: f'<code>{_text(text)}</code>')}</td>",
        f"<td>{note}</td>",
        f'<td class="effect">{effect}</td>',
    ]
    return f'<tr class="{classes}">{"".join(cells)}</tr>'


def _text(text: str) -> str:
    return escape(clean(text))

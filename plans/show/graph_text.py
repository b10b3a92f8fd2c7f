"""The picture of a plan as text for other tools: Mermaid flowcharts, and Graphviz's dot.

Ids of nodes are numbers, and every name is a quoted, escaped label, so a name can neither end a label nor add markup.

>>> from hintplan.plans.model.plan import Plan
>>> from hintplan.plans.operators import Scan
>>> from hintplan.plans.show.picture import picture
>>> print(mermaid(picture(Plan(name="p", operators=(Scan(id="scan_o", table="o", columns=()),)))))
flowchart LR
  n0[("scan_o<br/>unknown table · 0 of 0 columns")]
"""

from __future__ import annotations

import re

from hintplan.plans.show.palette import GRAPH_FACE, GRAPH_LINE, HIGHLIGHTS
from hintplan.plans.show.picture import Box, Picture, Row, without_pass_through
from hintplan.plans.text.counts import shortened
from hintplan.plans.text.terminal import one_line

MERMAID_EDGES, MERMAID_TEXT = 500, 50_000
"""The limits of Mermaid on GitHub: its defaults for ``maxEdges`` and ``maxTextSize``."""

_LONGEST = 60
_SHAPES = {"scan": ('[("', '")]'), "sink": ('[("', '")]')}


def mermaid(shown: Picture) -> str:
    """Return a flowchart from left to right; above Mermaid's limits, pass-through boxes are folded."""
    text = _mermaid(shown)
    if len(shown.arrows) > MERMAID_EDGES or len(text) > MERMAID_TEXT:
        small = without_pass_through(shown)
        note = f"  %% {len(shown.boxes) - len(small.boxes)} operators that only pass rows on are not shown\n"
        head, _, body = _mermaid(small).partition("\n")
        text = f"{head}\n{note}{body}"
    return text


def dot(shown: Picture) -> str:
    """Return a digraph from left to right in the dot language."""
    lines = [
        f"digraph {_quoted(shown.title)} {{",
        "  rankdir=LR;",
        f'  node [shape=box, style="rounded,filled", fillcolor="{GRAPH_FACE}", color="{GRAPH_LINE}"];',
        '  node [fontname="Helvetica", fontsize=11];',
        f'  edge [color="{GRAPH_LINE}", arrowsize=0.7];',
    ]
    numbers = _numbers(shown)
    for box in shown.boxes:
        label = "\\n".join(_dot_text(line) for line in _lines(box))
        style = _class_of(box)
        colours = ""
        if style:
            shades = HIGHLIGHTS[style]
            colours = f', fillcolor="{shades.fill}", color="{shades.border}", fontcolor="{shades.text}"'
        dashed = ', style="rounded,filled,dashed"' if box.mark == "removed" else ""
        lines.append(f'  {numbers[box.id]} [label="{label}"{colours}{dashed}];')
    for arrow in shown.arrows:
        marks = {
            "added": f' [color="{HIGHLIGHTS["added"].border}"]',
            "removed": f' [color="{HIGHLIGHTS["removed"].border}", style=dashed]',
        }
        lines.append(f"  {numbers[arrow.source]} -> {numbers[arrow.target]}{marks.get(arrow.mark, '')};")
    return "\n".join([*lines, "}"])


def _mermaid(shown: Picture) -> str:
    numbers = _numbers(shown)
    lines = ["flowchart LR"]
    classes: dict[str, list[str]] = {}
    for box in shown.boxes:
        opening, closing = _SHAPES.get(box.op, ('["', '"]'))
        label = "<br/>".join(_mermaid_text(line) for line in _lines(box))
        lines.append(f"  {numbers[box.id]}{opening}{label}{closing}")
        if style := _class_of(box):
            classes.setdefault(style, []).append(numbers[box.id])
    for arrow in shown.arrows:
        line = "-.->" if arrow.mark == "removed" else "==>" if arrow.mark == "added" else "-->"
        lines.append(f"  {numbers[arrow.source]} {line} {numbers[arrow.target]}")
    for style, nodes in classes.items():
        shades = HIGHLIGHTS[style]
        dashed = ",stroke-dasharray:4 3" if style == "removed" else ""
        lines.append(f"  classDef {style} fill:{shades.fill},stroke:{shades.border},color:{shades.text}{dashed}")
        lines.append(f"  class {','.join(nodes)} {style}")
    return "\n".join(lines)


def _numbers(shown: Picture) -> dict[str, str]:
    return {box.id: f"n{index}" for index, box in enumerate(shown.boxes)}


def _class_of(box: Box) -> str:
    return box.mark or ("edit" if box.edited else "state" if box.states else "")


def _lines(box: Box) -> list[str]:
    sign = {"added": "+ ", "removed": "- ", "changed": "~ ", "moved": "> "}.get(box.mark, "")
    return [sign + one_line(box.id), *(shortened(text, _LONGEST) for text in (box.text, *map(_row, box.rows)))]


def _row(row: Row) -> str:
    value = f"{row.before} → {row.value}" if row.before is not None else row.value
    return f"{row.label}: {value}" + (f" ({row.set_by})" if row.set_by != "default" else "")


def _mermaid_text(text: str) -> str:
    # Mermaid's decimal entity codes, for all characters that could end a label, or start markup or a code.
    return re.sub(r"[^\w .,:;()=+*/·→…'-]", lambda match: f"#{ord(match[0])};", text)


def _dot_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _quoted(text: str) -> str:
    return f'"{_dot_text(text)}"'

"""A plan as the value of a notebook cell: its picture and its states.

The picture is an image with embedded data, so no name or style in it becomes part of the notebook. Notebooks that are
not trusted show it, too.

>>> plan_html(Plan(name="<b>")).startswith("<p><strong>&lt;b&gt;</strong>")
True
"""

from __future__ import annotations

import base64
from html import escape

from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.text import layers_text
from hintplan.plans.show.explain import plan_tree
from hintplan.plans.show.page_data import row_kinds
from hintplan.plans.show.picture import picture
from hintplan.plans.show.svg import standalone
from hintplan.plans.text.terminal import one_line

MOST = 300
"""Maximum operators in a picture, rows of a table, and lines of text; a larger plan needs the page."""


def plan_html(plan: Plan) -> str:
    """Return HTML without scripts, styles and external links."""
    stateful = [(operator, entry) for operator in plan.operators for entry in operator.state]
    head = f"{plan.mode} · {len(plan.operators)} operators, {len(stateful)} states"
    parts = [f"<p><strong>{escape(one_line(plan.name))}</strong> {escape(head)}</p>"]
    if 0 < len(plan.operators) <= MOST:
        parts.append(embedded(standalone(picture(plan), kinds=row_kinds(plan)), plan.name))
    if stateful:
        rows = [
            f"<tr><td>{escape(one_line(operator.id))}</td><td>{escape(one_line(f'{entry.name} {entry.input}'))}</td>"
            f"<td>{escape(one_line(entry.ttl or operator.kept_until(entry.name)))}</td>"
            f"<td>{escape('' if entry.settings is None else layers_text(entry.settings, 'ttl'))}</td></tr>"
            for operator, entry in stateful[:MOST]
        ]
        header = "<tr><th>operator</th><th>state</th><th>TTL</th><th>set by</th></tr>"
        parts.append(f"<table><thead>{header}</thead><tbody>{''.join(rows)}</tbody></table>")
    if len(plan.operators) > MOST:
        parts.append("<p>For all of it: <code>hintplan show plan.json -o plan.html</code></p>")
    return "\n".join(parts)


def plan_text(plan: Plan) -> str:
    """Return the text for a prompt without pictures: the tree, or its beginning for a large plan."""
    lines = plan_tree(plan).split("\n")
    omitted = len(lines) - MOST
    return "\n".join(lines[:MOST] + ([f"... and {omitted:,} more lines"] if omitted > 0 else []))


def embedded(drawing: str, title: str) -> str:
    """Return an SVG file as an image with embedded data."""
    data = base64.b64encode(drawing.encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(one_line(title))}">'

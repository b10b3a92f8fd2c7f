"""The page of a plan: one HTML file with the graph, every setting and its layers, the SQL, and the differences.

It works as a local file, without a network: style and script are in the file, and its security policy allows only
these, by their digests. All text of a plan is escaped, in markup and in the data of the script. The files of the page
that are not Python are in ``plans/show/page``.

>>> from hintplan.plans.operators import Scan
>>> page = plan_page(Plan(name="</title><script>", operators=(Scan(id="scan_o", table="o", columns=()),)))
>>> "</title><script>" in page
False
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection, Sequence
from html import escape
from typing import Any

from hintplan.plans.compare.change import Change
from hintplan.plans.compare.costs import with_costs
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.report import changes_summary
from hintplan.plans.evidence.document import Evidence
from hintplan.plans.model.plan import Plan
from hintplan.plans.show.live_rows import LiveRun, live_rows, with_live_rows
from hintplan.plans.show.page_data import box_data, change_data, facts_of_both, function_data, row_kinds, table_data
from hintplan.plans.show.page_overview import overview
from hintplan.plans.show.page_script import Script
from hintplan.plans.show.palette import variables
from hintplan.plans.show.picture import Picture, around, picture, without_pass_through
from hintplan.plans.show.sql_lines import sql_lines
from hintplan.plans.show.svg import SvgDrawing, asset, draw
from hintplan.plans.text.counts import count
from hintplan.plans.text.terminal import one_line

_SCRIPTS = ("panel.js", "view.js", "search.js", "page.js")
_SHOWN_AT_ONCE = 600
_FOLD_AT_MOST = 3000
"""The maximum number of operators for a second, folded drawing."""

_STATUS = '<p id="status"><b id="phase" role="status">connecting</b> <span id="heard"></span></p>\n'
_SIGNS = (
    ("warn", "▲", "slow, large or late"),
    ("bad", "■", "stuck or failing"),
    ("hold", "◆", "holds the watermark back"),
)
"""The signs of numbers that need attention; ``live.js`` puts them in front of the numbers."""


def plan_page(
    plan: Plan,
    *,
    before: Plan | None = None,
    script: Script | None = None,
    file: str = "plan.json",
    centre: Collection[str] = (),
    hops: int = 1,
    evidence: Evidence | None = None,
    live: LiveRun | None = None,
) -> str:
    """Return the page as text; ``before`` is an older plan to compare with, ``file`` the plan's name in commands.

    With ``centre``, the page shows only these operators, and operators at most ``hops`` arrows away. With ``evidence``,
    it shows the curve of each state, and the costs of changed TTLs. With ``live``, it shows the numbers of a run of the
    plan, which its script reads repeatedly.
    """
    changes: Sequence[Change] = compare_plans(before, plan) if before is not None else ()
    changes = with_costs(changes, evidence) if evidence is not None else changes
    whole = picture(plan, before=before, changes=changes)
    whole = around(whole, centre, hops=hops) if centre else whole
    whole = with_live_rows(whole, live_rows(plan)) if live is not None else whole
    kinds = facts_of_both(row_kinds, plan, before)
    drawing = draw(whole, kinds=kinds)
    small = without_pass_through(whole)
    can_fold = len(small.boxes) < len(whole.boxes) <= _FOLD_AT_MOST
    numbers = {box.id: index for index, box in enumerate(whole.boxes)}
    folded_drawing = draw(small, kinds=kinds, numbers=numbers) if can_fold else None
    boxes = box_data(whole, plan, before, changes)
    for box, data in zip(whole.boxes, boxes, strict=True):
        x, y, width, height = drawing.places[box.id]
        data |= {"at": [x, y], "size": [width, height]}
        if folded_drawing is not None:
            data["folded"] = folded_drawing.places.get(box.id, (0, 0))[:2]
    lines = _lines(script, numbers) if script is not None else []
    data = {
        "file": one_line(file),
        "diff": before is not None,
        "boxes": boxes,
        "tables": facts_of_both(table_data, plan, before),
        "functions": facts_of_both(function_data, plan, before),
        "changes": change_data(changes),
        "lines": lines,
    }
    if live is not None:
        ids = [box.id for box in whole.boxes]
        data["title"] = one_line(plan.name)
        data["live"] = {
            "digest": live.digest,
            "mode": plan.mode,
            "url": live.url,
            "every": int(live.seconds * 1000),
            "ids": ids,
        }
    layers = [_layer("whole", drawing)]
    layers += [_layer("folded", folded_drawing)] if folded_drawing is not None else []
    style = (
        f":root{{{variables(dark=False)}}}"
        f'@media screen and (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{variables(dark=True)}}}}}'
        f'@media screen{{:root[data-theme="dark"]{{{variables(dark=True)}}}}}\n'
        + asset("graph.css")
        + asset("page.css")
        + (asset("curve.css") if evidence is not None else "")
        + (asset("live.css") if live is not None else "")
    )
    scripts = (*_SCRIPTS, "live.js") if live is not None else _SCRIPTS
    program = '"use strict";(() => {\n' + "\n".join(asset(name) for name in scripts) + "})();\n"
    connect = "" if live is None else "connect-src 'self'; "
    return _filled(
        asset("page.html"),
        POLICY=f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(program)}'; "
        f"{connect}img-src data:; base-uri 'none'; form-action 'none'",
        TITLE=escape(one_line(plan.name)),
        NAME=escape(one_line(plan.name)),
        STYLE=style,
        SCRIPT=program,
        BODY="has-sql" if script is not None else "",
        STATUS=_STATUS if live is not None else "",
        COUNTS=escape(_counts(plan, changes)),
        BUTTONS=_buttons(script is not None, folded_drawing is not None),
        SQL=_sql(script, lines) if script is not None else "",
        VIEWBOX=f"0 0 {drawing.width} {drawing.height}",
        GRAPH="".join(shown for shown, _ in layers),
        STORED="".join(stored for _, stored in layers),
        LEGEND=_legend(whole, diff_shown=before is not None) + (_signs() if live is not None else ""),
        OVERVIEW=(_run_section(live, again=evidence is not None) if live is not None else "")
        + "".join(overview(plan, numbers, data["changes"], compared=before is not None, evidence=evidence)),
        DATA=_script_json(data),
    )


def _filled(template: str, **parts: str) -> str:
    """Replace each ``@NAME@`` of the template in one pass, so that no part is searched for other marks."""
    return re.sub(r"@([A-Z]+)@", lambda match: parts[match[1]], template)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _script_json(value: object) -> str:
    """Return JSON for a script element: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _lines(script: Script, numbers: dict[str, int]) -> list[list[Any]]:
    """Return line, box, path and layer of every position in the script whose operator is shown."""
    lines = []
    for line, path, layer in script.places:
        box = numbers.get(path.partition(".")[0])
        if box is not None:
            lines.append([line, box, path, layer])
    return sorted(lines)


def _layer(name: str, drawing: SvgDrawing) -> tuple[str, str]:
    """Return the layer of a drawing in the graph, and the template that fills it.

    A large drawing is in a template. Otherwise the browser would lay it out as a whole, before the script can determine
    the visible part, and again at every click.
    """
    hidden = "" if name == "whole" else " hidden"
    head = f'<g class="layer" id="{name}" data-w="{drawing.width}" data-h="{drawing.height}"{hidden}>'
    if len(drawing.places) <= _SHOWN_AT_ONCE:
        return f"{head}\n{drawing.markup}\n</g>\n", ""
    empty = '<g class="edges"></g><g class="boxes"></g>'
    return f"{head}{empty}</g>\n", f'<template id="{name}-stored"><svg>\n{drawing.markup}\n</svg></template>\n'


def _counts(plan: Plan, changes: Sequence[Any]) -> str:
    stateful = sum(1 for operator in plan.operators if operator.state)
    text = f"{plan.mode} · {count(len(plan.operators), 'operator')}, {stateful} with state"
    return f"{text} · {changes_summary(changes)}" if changes else text


def _buttons(sql: bool, fold: bool) -> str:
    buttons = ""
    if sql:
        buttons += '<button type="button" data-key="s" title="Show or hide the SQL (s)">SQL</button>'
    if fold:
        title = "Fold operators that only pass rows on (c)"
        buttons += f'<button type="button" id="fold" data-key="c" aria-pressed="false" title="{title}">Fold</button>'
    return buttons


def _legend(shown: Picture, *, diff_shown: bool) -> str:
    items = [("end", "source, sink"), ("pass", "passes rows on")]
    items += [("state", "keeps state")] if any(box.states for box in shown.boxes) else []
    items += [("wait", "has settings")] if any(box.rows and not box.states for box in shown.boxes) else []
    items += [("edit", "edited in the plan")] if any(box.edited for box in shown.boxes) else []
    if diff_shown:
        items += [("emptied", "state starts empty")] if any(box.emptied for box in shown.boxes) else []
        marks = dict.fromkeys(box.mark for box in shown.boxes)
        items += [(mark, mark) for mark in ("added", "removed", "changed", "moved") if mark in marks]
    items += [("thick", "carries updates")]
    return "".join(f'<span><i class="{name}"></i>{text}</span>' for name, text in items)


def _run_section(live: LiveRun, *, again: bool) -> str:
    """Return the part of the panel that the script fills in, and the link that reads the evidence."""
    read = f'<a class="link" href="?evidence">{"read it again" if again else "read it"}</a>'
    link = f'<p class="soft">{escape(one_line(live.evidence))} {read}</p>' if live.evidence else ""
    failure = '<p id="failure" role="alert" hidden></p>'
    return f'<section class="run"><h3>Run</h3>{failure}<div id="queries"></div>{link}</section>'


def _signs() -> str:
    return "".join(f'<span class="sign"><b class="{name}">{sign}</b>{text}</span>' for name, sign, text in _SIGNS)


def _sql(script: Script, lines: Sequence[Sequence[Any]]) -> str:
    boxes: dict[int, list[int]] = {}
    for line, box, _, _ in lines:
        boxes.setdefault(line, []).append(box)
    items = []
    for number, markup in enumerate(sql_lines(script.text), start=1):
        linked = " ".join(map(str, dict.fromkeys(boxes.get(number, ()))))
        button = f'<button type="button" aria-label="Operators set on line {number}"></button>' if linked else ""
        boxes_set = f' data-boxes="{linked}"' if linked else ""
        items.append(f'<li id="line{number}"{boxes_set}>{button}{markup}</li>')
    name = escape(one_line(script.file))
    return f'<section id="sql" aria-label="SQL"><h2>{name}</h2><ol class="sql">{"".join(items)}</ol></section>'

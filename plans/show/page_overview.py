"""The plan in words, as HTML: differences, states, edits and configuration, next to the graph or printed below it.

>>> list(overview(Plan(name="p", config={"parallelism.default": "4"}), {}, [], compared=False))
['<section><h3>Configuration</h3><dl><dt>parallelism.default</dt><dd>4</dd></dl></section>']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from hintplan.plans.evidence.advice import DEFAULT_KEEP
from hintplan.plans.evidence.advice_report import advise, facts_text
from hintplan.plans.evidence.document import Evidence
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.settings import operator_settings
from hintplan.plans.settings.layers import set_by
from hintplan.plans.settings.setting import value_text
from hintplan.plans.show.curve import curve_svg
from hintplan.plans.text.terminal import one_line

_MOST = 400
_SHORT = 18
"""Maximum characters of an id that stays on one line."""


def overview(
    plan: Plan,
    numbers: Mapping[str, int],
    changes: Sequence[Mapping[str, Any]],
    *,
    compared: bool,
    evidence: Evidence | None = None,
) -> Iterator[str]:
    """Yield the plan in words, also printed below the graph: differences, states, edits, and configuration.

    With ``evidence``, also the curve of each of its states that the plan has.
    """
    if compared:
        items = _first((_change(change) for change in changes), '<li class="soft">{} more</li>')
        differences = f'<ul class="changes">{items}</ul>' if items else "<p>none</p>"
        yield f"<section><h3>Differences</h3>{differences}</section>"
    rows = _first(_state_rows(plan, numbers), '<tr><td colspan="4" class="soft">{} more</td></tr>')
    if rows:
        head = "<tr><th>operator</th><th>state</th><th>TTL</th><th>set by</th></tr>"
        table = f'<table class="states"><thead>{head}</thead><tbody>{rows}</tbody></table>'
        yield f'<section class="first"><h3>State</h3>{table}</section>'
    if evidence is not None:
        yield from _curves(plan, numbers, evidence)
    edits = _first(_edits(plan, numbers), '<li class="soft">{} more</li>')
    if edits:
        yield f'<section><h3>Edits</h3><ul class="edits">{edits}</ul></section>'
    if plan.config:
        terms = "".join(
            f"<dt>{escape(one_line(key))}</dt><dd>{escape(one_line(plan.config[key]))}</dd>"
            for key in sorted(plan.config)
        )
        yield f"<section><h3>Configuration</h3><dl>{terms}</dl></section>"


def _curves(plan: Plan, numbers: Mapping[str, int], evidence: Evidence) -> Iterator[str]:
    """Yield the section with the curve of each state, and its facts as text."""
    figures = []
    for one in advise(plan, evidence, DEFAULT_KEEP):
        if one.advice is not None and one.operator in numbers:
            curve = curve_svg(one.advice.state)
            name = f"{_link(one.operator, numbers)}.{_in_words(one_line(one.entry.name))}"
            caption = f'{name}<div class="soft">{escape(one_line(facts_text(one)))}</div>'
            figures.append(f'<figure class="evidence"><figcaption>{caption}</figcaption>{curve}</figure>')
    if figures:
        legend = '<p class="soft curve-legend">Over the TTL: <b>matches kept</b> and <b class="bytes">bytes</b></p>'
        yield f"<section><h3>Evidence</h3>{legend}{''.join(figures)}</section>"


def _first(rows: Iterable[str], more: str) -> str:
    """Return the first rows, and the number of the others, which the search and the keys of the page reach."""
    listed = list(rows)
    omitted = len(listed) - _MOST
    return "".join(listed[:_MOST]) + (more.format(f"{omitted:,}") if omitted > 0 else "")


def _change(change: Mapping[str, Any]) -> str:
    soft = " · ".join(filter(None, (change["note"], change["effect"], change.get("cost"))))
    value = f'<div class="mono value">{_in_words(change["value"])}</div>' if change["value"] else ""
    head = f'<span class="mono">{escape(change["sign"])} {_in_words(change["path"])}</span>'
    return f'<li class="{change["kind"]} {change["level"]}">{head}{value}<div class="soft">{_in_words(soft)}</div></li>'


def _in_words(name: str) -> str:
    """Return the name as HTML that may break after a dot or an underscore, but not inside a word."""
    return escape(name).replace("_", "_<wbr>").replace(".", ".<wbr>")


def _link(operator_id: str, numbers: Mapping[str, int]) -> str:
    name = _in_words(one_line(operator_id))
    if operator_id not in numbers:
        return name
    return f'<button type="button" class="link" data-go="{numbers[operator_id]}">{name}</button>'


def _state_rows(plan: Plan, numbers: Mapping[str, int]) -> Iterator[str]:
    for operator in plan.operators:
        for index, entry in enumerate(operator.state):
            name = _link(operator.id, numbers) if index == 0 else ""
            short = ' class="short"' if len(operator.id) <= _SHORT else ""
            ttl, layer = (
                operator.readable_lifetime(entry),
                "" if entry.settings is None else set_by(entry.settings, "ttl"),
            )
            yield (
                f'<tr class="{escape(layer)}"><td{short}>{name}</td>'
                f"<td>{_in_words(one_line(f'{entry.name} {entry.input}'))}</td>"
                f'<td class="{"never" if ttl == "never" else ""}">{escape(one_line(ttl))}</td>'
                f"<td>{escape(layer)}</td></tr>"
            )


def _edits(plan: Plan, numbers: Mapping[str, int]) -> Iterator[str]:
    for operator in plan.operators:
        for setting in operator_settings(operator):
            if setting.set_by == "edit":
                layers = " › ".join(f"{layer} {value}" for layer, value in setting.layers.items())
                below = setting.path.removeprefix(f"{operator.id}.")
                reason = plan.reasons.get(setting.path, "")
                quote = f"<blockquote>{escape(one_line(reason))}</blockquote>" if reason else ""
                yield (
                    f'<li>{_link(operator.id, numbers)} <span class="mono">{escape(one_line(below))}</span>'
                    f'<div class="mono"><span class="soft">{escape(one_line(layers))} › </span>'
                    f"<strong>{escape(one_line(value_text(setting.value)))}</strong></div>{quote}</li>"
                )

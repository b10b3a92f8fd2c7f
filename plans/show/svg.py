"""The picture of a plan as SVG: legible boxes, placed by :mod:`hintplan.plans.show.layout`, without inline styles.

Colours come from ``page/graph.css``, which the page contains, and which a standalone file embeds. Every name is escaped
and cut to the width of its box. Positions are attributes, so no inline styles are needed.

>>> from hintplan.plans.model.plan import Plan
>>> from hintplan.plans.operators import Scan
>>> from hintplan.plans.show.picture import picture
>>> standalone(picture(Plan(name="p", operators=(Scan(id="scan_o", table="o", columns=()),)))).startswith("<svg xmlns=")
True
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from hintplan.plans.frozen import frozen
from hintplan.plans.settings.state import readable_ttl
from hintplan.plans.show.layout import Link, place
from hintplan.plans.show.palette import resolve_colours
from hintplan.plans.show.picture import Arrow, Box, Picture, Row
from hintplan.plans.text.terminal import one_line

_NARROW, _WIDE = 132.0, 264.0
_LIVE_WIDTH = 214.0
"""The least width of a box with numbers of a run."""
_PAD, _HEAD, _ROW, _LIVE_ROW = 12.0, 46.0, 21.0, 18.0
_MARGIN = 24.0
_MONO, _SANS = 0.61, 0.56
"""Widths of a character in ems, rounded up to suit the usual fonts."""

_CATEGORY: Mapping[str, str] = {"scan": "end", "sink": "end"}
_EMPTIED = "state starts empty"
_SIGNS = {"added": "+", "removed": "\N{MINUS SIGN}", "changed": "~", "moved": "»"}


@frozen
class SvgDrawing:
    """The markup inside an ``svg`` element, its size, and the x, y, width and height of each box."""

    markup: str
    width: float
    height: float
    places: Mapping[str, tuple[float, float, float, float]]


def draw(
    shown: Picture,
    *,
    kinds: Mapping[str, Sequence[str]] | None = None,
    numbers: Mapping[str, int] | None = None,
) -> SvgDrawing:
    """Place and draw ``shown``; ``kinds`` are the row kinds that each operator emits, if they are known.

    ``numbers`` are the numbers of the boxes in the markup; by default, their positions.
    """
    number = {box.id: index for index, box in enumerate(shown.boxes)}
    sizes = [(_width(box), _height(box)) for box in shown.boxes]
    links = [
        Link(
            source=number[arrow.source],
            target=number[arrow.target],
            out=_HEAD / 2,
            into=_entry(shown.boxes[number[arrow.target]], arrow),
        )
        for arrow in shown.arrows
    ]
    placed = place(sizes, links)
    parts = ['<g class="edges">']
    for arrow, route in zip(shown.arrows, placed.routes, strict=True):
        parts.append(_arrow(arrow, route, numbers or number, (kinds or {}).get(arrow.source, ())))
    parts.append('</g><g class="boxes">')
    places = {}
    for box, (x, y), (width, height) in zip(shown.boxes, placed.boxes, sizes, strict=True):
        places[box.id] = (_round(x + _MARGIN), _round(y + _MARGIN), width, height)
        parts.append(_box(box, (numbers or number)[box.id], *places[box.id]))
    parts.append("</g>")
    return SvgDrawing(
        markup="\n".join(parts),
        width=math.ceil(placed.width + 2 * _MARGIN),
        height=math.ceil(placed.height + 2 * _MARGIN),
        places=places,
    )


def standalone(shown: Picture, *, kinds: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return a standalone SVG file with its colours, for light and dark."""
    drawing = draw(shown, kinds=kinds)
    css = asset("graph.css")
    dark = f"@media (prefers-color-scheme:dark){{{resolve_colours(css, dark=True)}}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawing.width} {drawing.height}" '
        f'width="{drawing.width}" height="{drawing.height}" role="img" aria-label="{escape(shown.title)}">\n'
        f"<title>{escape(shown.title)}</title>\n<style>{resolve_colours(css, dark=False)}{dark}</style>\n"
        f'<rect class="ground" width="100%" height="100%"/>\n{drawing.markup}\n</svg>\n'
    )


def asset(name: str) -> str:
    """Return the text of a file of the page from the package."""
    return files("hintplan.plans").joinpath("show", "page", name).read_text(encoding="utf-8")


def _width(box: Box) -> float:
    """Return a width for name and states; long descriptions are cut, so that they do not widen all boxes."""
    head = (_cells(box.id) + 2) * 13 * _MONO + len(box.kind) * 10 * _SANS + 14
    description = min(_cells(box.text) * 11 * _SANS, 190.0)
    rows = [
        (_cells(row.label) + 1) * 11 * _MONO + _cells(_told(row)) * 12 * _MONO + len(_by(row)) * 10 * _SANS + 26
        for row in box.rows
    ]
    least = _LIVE_WIDTH if box.live else _NARROW
    return float(math.ceil(min(max(least, head, description, *rows) + 2 * _PAD + 5, _WIDE)))


def _height(box: Box) -> float:
    return _HEAD + (len(box.rows) * _ROW + 7 if box.rows else 0) + (len(box.live) * _LIVE_ROW + 8 if box.live else 0)


def _entry(box: Box, arrow: Arrow) -> float:
    """Return the height at which an arrow enters: at the state of its input, if each input has one."""
    if len(box.states) > 1 and arrow.port < len(box.states) and arrow.mark != "removed":
        return _HEAD + arrow.port * _ROW + _ROW / 2
    return _HEAD / 2 if len(box.states) == 1 or box.op != "union" else _HEAD / 2 + (arrow.port - 1) * 5


def _arrow(arrow: Arrow, route: Sequence[tuple[float, float]], number: Mapping[str, int], kinds: Sequence[str]) -> str:
    points = [(x + _MARGIN, y + _MARGIN) for x, y in route]
    (x, y), steps = points[0], []
    for index, (x2, y2) in enumerate(points[1:]):
        if index % 2 == 0:
            reach = max(18.0, abs(x2 - x) / 2)
            end = x2 - 6 if index == len(points) - 2 else x2
            steps.append(
                f"C{_round(x + reach)} {_round(y)} {_round(end - reach)} {_round(y2)} {_round(end)} {_round(y2)}"
            )
        else:
            steps.append(f"H{_round(x2)}")
        x, y = x2, y2
    start = f"M{_round(points[0][0])} {_round(points[0][1])}"
    classes = _classes("edge", arrow.mark, "updates" if len(kinds) > 1 else "")
    tooltip = f"<title>{escape(' '.join(kinds))}</title>" if kinds else ""
    via = ""
    if arrow.via:
        (ax, ay), (bx, by) = points[0], points[-1]
        via = (
            f'<circle class="via" cx="{_round((ax + bx) / 2)}" cy="{_round((ay + by) / 2)}" r="3.5"/>'
            if len(points) == 2
            else ""
        )
        tooltip = f"<title>{escape(' · '.join(arrow.via))}</title>"
    return (
        f'<g class="{classes}" data-s="{number[arrow.source]}" data-t="{number[arrow.target]}">{tooltip}'
        f'<path class="line" d="{start}{"".join(steps)}"/>'
        f'<path class="head" d="M{_round(x)} {_round(y)}l-8 -4v8z"/>{via}</g>'
    )


def _box(box: Box, number: int, x: float, y: float, width: float, height: float) -> str:
    category = _CATEGORY.get(box.op, "state" if box.states else "wait" if box.rows else "pass")
    classes = _classes("box", category, "edited" if box.edited else "", box.mark, "emptied" if box.emptied else "")
    right = width - _PAD
    sign = f"{_SIGNS[box.mark]} " if box.mark else ""
    name = _fit(sign + one_line(box.id), right - _PAD - len(box.kind) * 10 * _SANS - 10, 13 * _MONO)
    parts = [
        f'<g class="{classes}" data-i="{number}" role="button" tabindex="-1" aria-label="{escape(_told_box(box))}" '
        f'transform="translate({_round(x)} {_round(y)})">',
        f'<rect class="face" width="{_round(width)}" height="{_round(height)}" rx="7"/>',
        f'<path class="strip" d="M7 0H5A5 5 0 0 0 0 5V{_round(height - 5)}A5 5 0 0 0 5 {_round(height)}H7z"/>',
        f'<text class="id" x="{_PAD + 3}" y="20">{escape(name)}</text>',
        f'<text class="kind" x="{right}" y="19">{escape(box.kind)}</text>',
        f'<text class="what" x="{_PAD + 3}" y="36">{escape(_fit(box.text, right - _PAD - 3, 11 * _SANS))}</text>',
    ]
    if box.rows:
        parts.append(f'<path class="rule" d="M{_PAD + 3} {_HEAD}H{right}"/>')
    for index, row in enumerate(box.rows):
        parts.append(_row(row, _HEAD + 3 + index * _ROW, right))
    if box.live:
        top = height - len(box.live) * _LIVE_ROW - 8
        parts.append(f'<path class="rule" d="M{_PAD + 3} {_round(top)}H{right}"/>')
        parts += [_live_row(name, top + 4 + index * _LIVE_ROW, right) for index, name in enumerate(box.live)]
    # A large text that is legible when a whole large plan is on the screen.
    far = " · ".join(_value(row) for row in box.states) or one_line(box.id)
    size = min(40.0, (right - _PAD) / max(len(far) * _MONO, 1), height * 0.6)
    parts.append(
        f'<text class="far" x="{_round(width / 2 + 3)}" y="{_round(height / 2 + size * 0.36)}" '
        f'font-size="{_round(size)}">{escape(far)}</text></g>'
    )
    return "".join(parts)


def _told_box(box: Box) -> str:
    """Return the description of a box for screen readers."""
    rows = (f"{row.label} {_told(row)}" + (f" ({row.set_by})" if row.set_by != "default" else "") for row in box.rows)
    return ", ".join(filter(None, (one_line(box.id), box.kind, box.mark, _EMPTIED * box.emptied, box.text, *rows)))


def _row(row: Row, y: float, right: float) -> str:
    set_apart = ("ttl" if row.state else "", "edited" if row.edited else "", "" if row.before is None else "changed")
    classes = _classes("row", *set_apart)
    left, base = _PAD + 3, y + 14
    value, by, room = _told(row), _by(row), right - left
    if not row.state:
        label = f'<text class="label" x="{left}" y="{_round(base)}">{escape(row.label)}</text>'
        start = left + len(row.label) * 11 * _MONO + 8
        text = _fit(value, right - start, 11 * _MONO)
        return (
            f'<g class="{classes}">{label}<text class="value" x="{right}" y="{_round(base)}">{escape(text)}</text></g>'
        )
    value = _fit(value, room * 0.62, 12 * _MONO)
    pill = _cells(value) * 12 * _MONO + 10
    by_width = len(by) * 10 * _SANS + 8 if by else 0.0
    label = _fit(row.label, room - pill - by_width - 6, 11 * _MONO)
    return (
        f'<g class="{classes}{" never" if value == "never" else ""}">'
        f'<text class="label" x="{left}" y="{_round(base)}">{escape(label)}</text>'
        f'<text class="by" x="{_round(right - pill - 5)}" y="{_round(base)}">{escape(by)}</text>'
        f'<rect class="pill" x="{_round(right - pill)}" y="{_round(y + 1)}" width="{_round(pill)}" height="17" rx="4"/>'
        f'<text class="value" x="{_round(right - 5)}" y="{_round(base)}">{escape(value)}</text></g>'
    )


def _live_row(name: str, y: float, right: float) -> str:
    """Return a row whose value the script of the page fills in."""
    base = _round(y + 12)
    return (
        f'<g class="live" data-row="{escape(name)}"><text class="label" x="{_PAD + 3}" y="{base}">{escape(name)}</text>'
        f'<text class="value" x="{right}" y="{base}">–</text></g>'
    )


def _classes(*names: str) -> str:
    return " ".join(filter(None, names))


def _told(row: Row) -> str:
    if row.before is None:
        return _value(row)
    return f"{readable_ttl(row.before) if row.state else row.before} → {_value(row)}"


def _by(row: Row) -> str:
    """Return the origin of a value, except for a default, or next to a change, where there is no room."""
    return "" if row.set_by == "default" or row.before is not None else row.set_by


def _value(row: Row) -> str:
    return readable_ttl(row.value) if row.state else row.value


def _fit(text: str, width: float, character: float) -> str:
    """Cut ``text`` to at most ``width``."""
    if _cells(text) * character <= width:
        return text
    room, kept = width - character, []
    for c in text:
        room -= _cells(c) * character
        if room < 0:
            break
        kept.append(c)
    return "".join(kept).rstrip() + "…"


def _cells(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _round(number: float) -> float:
    return int(number) if number == int(number) else round(number, 1)

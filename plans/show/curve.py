"""The curve of a state: the matches that it keeps and the bytes that it takes, over the TTL.

It is a picture without scripts and styles of its own: ``page/curve.css`` has the colours, for light and dark pages. The
TTL in force and the proposed TTL are marked, and a text has the same numbers for screen readers.

>>> curve_svg(StateEvidence(operator="j", name="leftState", ttl=None))
''
"""

from __future__ import annotations

from bisect import bisect_left
from html import escape

from hintplan.plans.declarations.durations import format_duration
from hintplan.plans.evidence.advice import DEFAULT_KEEP, Advice, advice_on, option_of
from hintplan.plans.evidence.ages import ENDS
from hintplan.plans.evidence.document import StateEvidence
from hintplan.plans.evidence.kept import percent, share_kept, size_kept
from hintplan.plans.frozen import frozen
from hintplan.plans.settings.state import readable_ttl
from hintplan.plans.text.counts import human_bytes

_WIDTH, _HEIGHT = 360, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 52, 22, 22
_TICKS = 4


@frozen
class Point:
    """The effect of a TTL (ms): the share of matches that it keeps (0 to 1), None if not known, and its bytes."""

    ttl: int
    kept: float | None
    bytes: int


@frozen
class Curve:
    """The points of a state in the order of their TTLs, and the marked TTLs (ms; None if there is none to mark)."""

    points: tuple[Point, ...]
    now: int | None
    proposed: int | None


def curve_of(state: StateEvidence, keep: float = DEFAULT_KEEP) -> Curve:
    """Return the curve of a state; without points for a state that the watermark empties, or without observations."""
    advice = advice_on(state, keep)
    used = [i for i, numbers in enumerate(zip(*_histograms(state), strict=True)) if any(numbers)]
    if state.ttl is None or not used:
        return Curve(points=(), now=None, proposed=None)
    marked = [_place(ttl) for ttl in (state.ttl, advice.proposed) if ttl]
    last = min(max(used[-1], *marked, 0) + 1, len(ENDS) - 1)
    points = []
    for ttl in ENDS[max(min(used[0], *marked, last) - 1, 0) : last + 1]:
        share = share_kept(state, ttl)
        points.append(Point(ttl=ttl, kept=None if share is None else share.least, bytes=size_kept(state, ttl).bytes))
    return Curve(points=tuple(points), now=state.ttl or None, proposed=advice.proposed)


def _histograms(state: StateEvidence) -> list[tuple[int, ...]]:
    return [state.row_ages, *(histogram for period in state.periods for histogram in (period.hits, period.misses))]


def curve_svg(state: StateEvidence, keep: float = DEFAULT_KEEP) -> str:
    """Return the curve as an SVG element for a page with ``curve.css``; an empty text without points."""
    curve = curve_of(state, keep)
    if not curve.points:
        return ""
    largest = max(point.bytes for point in curve.points) or 1
    kept = [(_x(curve, point.ttl), _y(point.kept)) for point in curve.points if point.kept is not None]
    size = [(_x(curve, point.ttl), _y(point.bytes / largest)) for point in curve.points]
    said = description(state, advice_on(state, keep))
    parts = [
        f'<svg class="curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(said)}">',
        f"<title>{escape(said)}</title>",
        *(_line("grid", _LEFT, _y(share), _WIDTH - _RIGHT, _y(share)) for share in (0, 0.5, 1)),
        *(_text("axis end", _LEFT - 4, _y(share) + 4, f"{round(100 * share)} %") for share in (0, 0.5, 1)),
        _text("axis bytes", _WIDTH - _RIGHT + 4, _y(1) + 4, human_bytes(largest)),
        *_ticks(curve),
        _path("bytes", size),
        _path("kept", kept) if kept else "",
        *_marks(curve),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part)


def description(state: StateEvidence, advice: Advice) -> str:
    """Return the marked TTLs and their effects in words."""
    texts = [f"{state.path}: matches kept and bytes over the TTL"]
    for name, ttl in (("now", state.ttl), ("proposed", advice.proposed)):
        if ttl is not None:
            option = option_of(state, ttl)
            share = "matches kept not known" if option.share is None else f"{percent(option.share.least)} of matches"
            label = readable_ttl(format_duration(ttl))
            texts.append(f"{name} {label}: {share}, {human_bytes(option.size.bytes)}")
    return "; ".join(texts)


def _ticks(curve: Curve) -> list[str]:
    """Return labels at a few TTLs, and the lines to them."""
    step = max(len(curve.points) // _TICKS, 1)
    shown = curve.points[::step]
    return [_text("axis middle", _x(curve, point.ttl), _HEIGHT - 6, format_duration(point.ttl)) for point in shown]


def _marks(curve: Curve) -> list[str]:
    """Return the lines at the TTL in force and at the proposed TTL, with their labels at the top."""
    marks = {"now": curve.now, "proposed": curve.proposed}
    if curve.now == curve.proposed:
        marks = {"proposed": curve.proposed}
    parts = []
    for row, (name, ttl) in enumerate(marks.items()):
        if ttl is not None:
            x = _x(curve, ttl)
            side = "start" if x < _WIDTH / 2 else "end"
            label = f"{format_duration(ttl)} {name}" if len(marks) == 2 else f"{format_duration(ttl)} now, proposed"
            parts.append(_line(f"mark {name}", x, _TOP - 4, x, _HEIGHT - _BOTTOM))
            parts.append(_text(f"mark {name} {side}", x + (3 if side == "start" else -3), 9 + 10 * row, label))
    return parts


def _place(ttl: int) -> int:
    return min(bisect_left(ENDS, ttl), len(ENDS) - 1)


def _x(curve: Curve, ttl: int) -> float:
    """Return the place of a TTL: the ends of buckets have equal distances, other TTLs are between their neighbours."""
    ends = [point.ttl for point in curve.points]
    index = min(bisect_left(ends, ttl), len(ends) - 1)
    place = float(index)
    if index and ends[index] > ttl:
        place -= (ends[index] - ttl) / (ends[index] - ends[index - 1])
    return round(_LEFT + place / max(len(ends) - 1, 1) * (_WIDTH - _LEFT - _RIGHT), 1)


def _y(share: float) -> float:
    return round(_TOP + 4 + (1 - share) * (_HEIGHT - _TOP - 4 - _BOTTOM), 1)


def _path(name: str, points: list[tuple[float, float]]) -> str:
    return f'<path class="{name}" d="M{"L".join(f"{x} {y}" for x, y in points)}"/>'


def _line(name: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{name}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _text(name: str, x: float, y: float, text: str) -> str:
    return f'<text class="{name}" x="{round(x, 1)}" y="{y}">{escape(text)}</text>'

"""Pictures as SVG: well-formed, self-contained, legible, and closed to what names may hold."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import hintplan
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Join
from hintplan.plans.settings.state import with_ttl
from hintplan.plans.show.palette import PALETTE
from hintplan.plans.show.picture import picture
from hintplan.plans.show.svg import asset, draw, standalone
from tests.plans.show.test_picture import chain, hostile

NAMESPACE = "{http://www.w3.org/2000/svg}"


def texts(root: ET.Element, name: str) -> list[str]:
    return [e.text or "" for e in root.iter(f"{NAMESPACE}text") if name in e.get("class", "").split()]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_an_svg_shows_every_operator_its_states_and_who_set_them(plan: Plan) -> None:
    root = ET.fromstring(standalone(picture(plan)))
    assert texts(root, "id") == [operator.id for operator in plan.operators]
    assert texts(root, "value") == ["3 d", "20 d", "1 h"]
    assert texts(root, "by") == ["edit", "hint", "config"]
    edited = [g for g in root.iter(f"{NAMESPACE}g") if {"box", "edited"} <= set(g.get("class", "").split())]
    assert len(edited) == 1


def test_a_state_that_never_expires_says_so(plan: Plan) -> None:
    join = plan.operator("join_o_c")
    assert isinstance(join, Join)
    never = replace(join, state=(with_ttl(join.state[0], "0 ms"), join.state[1]))
    operators = tuple(never if o.id == join.id else o for o in plan.operators)
    root = ET.fromstring(standalone(picture(replace(plan, operators=operators))))
    assert texts(root, "value")[0] == "never"


def test_an_arrow_enters_a_join_at_the_state_that_keeps_its_rows(plan: Plan) -> None:
    drawing = draw(picture(plan))
    x, y, _, _ = drawing.places["join_o_c"]
    heads = [(float(a), float(b)) for a, b in re.findall(r'class="head" d="M([\d.]+) ([\d.]+)l', drawing.markup)]
    left, right = sorted(head_y - y for head_x, head_y in heads if head_x == x)
    rows = [float(r) for r in re.findall(r'<text class="label" x="15.0" y="([\d.]+)"', drawing.markup)]
    # The text of a row stands a little below its middle, where the arrow ends.
    assert abs(rows[0] - left) < 12
    assert abs(rows[1] - right) < 12
    assert right - left == rows[1] - rows[0]


def test_names_cannot_leave_the_text_of_an_svg() -> None:
    text = standalone(picture(hostile()))
    root = ET.fromstring(text)
    kinds = {element.tag.removeprefix(NAMESPACE) for element in root.iter()}
    assert kinds == {"svg", "title", "style", "rect", "g", "path", "text"}
    assert all(not name.startswith("on") and name != "href" for element in root.iter() for name in element.attrib)
    assert text.replace("\n", "").isprintable()


def test_an_svg_needs_nothing_from_elsewhere_and_no_custom_properties(plan: Plan) -> None:
    text = standalone(picture(plan))
    assert "url(" not in text
    assert "@import" not in text
    assert "var(" not in text
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert "prefers-color-scheme:dark" in text


def test_every_colour_that_is_used_is_defined() -> None:
    used = {
        name
        for file in ("page.css", "graph.css", "live.css")
        for name in re.findall(r"var\(--([a-z-]+)\)", asset(file))
    }
    assert used <= PALETTE.keys()


def test_text_can_be_read_in_light_and_dark() -> None:
    pairs = [
        *(("text", ground) for ground in ("ground", "face", "panel", "shade", "state-face", "wait-face", "mark")),
        *(("soft", ground) for ground in ("ground", "face", "panel", "state-face", "wait-face", "added-face")),
        ("state", "pill"), ("state", "panel"), ("edit", "edit-face"), ("edit", "panel"), ("never", "state-face"),
        ("added", "added-face"), ("removed", "removed-face"), ("changed", "changed-face"), ("changed", "state-face"),
        ("wait", "panel"), ("end", "face"),
        *((sign, ground) for sign in ("changed", "removed", "moved") for ground in ("face", "panel", "ground")),
        *((sign, f"{kind}-face") for sign in ("changed", "moved") for kind in ("state", "wait")),
        ("removed", "state-face"), ("removed", "wait-face"), ("text", "removed-face"), ("soft", "removed-face"),
    ]  # fmt: skip
    poor = [
        (text, ground, scheme)
        for text, ground in pairs
        for scheme in ("light", "dark")
        if contrast(getattr(PALETTE[text], scheme), getattr(PALETTE[ground], scheme)) < 4.5
    ]
    assert poor == []


def test_long_names_are_cut_to_their_box(plan: Plan) -> None:
    long = replace(chain(1), operators=tuple(replace(o, id=f"{o.id}_{'x' * 50}") for o in chain(0).operators))
    drawing = draw(picture(long))
    ids = re.findall(r'<text class="id"[^>]*>([^<]*)<', drawing.markup)
    widths = [width for _, _, width, _ in drawing.places.values()]
    assert all(name.endswith("…") and len(name) * 13 * 0.61 < width for name, width in zip(ids, widths, strict=True))


def test_the_same_plan_gives_the_same_bytes(plan: Plan, plan_text: str) -> None:
    assert standalone(picture(plan)) == standalone(picture(hintplan.loads(plan_text)))


def test_a_notebook_shows_a_picture_and_the_states(plan: Plan) -> None:
    text = plan._repr_html_()
    image = re.search(r'<img src="data:image/svg\+xml;base64,([^"]+)"', text)
    assert image is not None
    assert texts(ET.fromstring(base64.b64decode(image[1])), "id") == [operator.id for operator in plan.operators]
    cells = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(<td>.*?)</tr>", text)]
    assert cells[0] == ["join_o_c", "leftState o", "3 d", "edit · hint 1 d · config 1 h"]


def test_a_notebook_gets_nothing_but_plain_markup_from_a_hostile_plan() -> None:
    text = hostile()._repr_html_()
    assert set(re.findall(r"<(\w+)", text)) == {"p", "strong", "img"}
    assert "\u202e" not in text


def test_a_plan_too_large_for_a_cell_names_the_command() -> None:
    text = chain(400)._repr_html_()
    assert "<img" not in text
    assert "hintplan show" in text

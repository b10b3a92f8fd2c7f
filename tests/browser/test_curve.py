"""The curve of a state in a real browser: inside its panel at three widths, legible in light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest

import hintplan as api
from hintplan.plans.edit.edit import set_value
from hintplan.plans.evidence.document import loads
from hintplan.plans.show.page import plan_page
from tests.browser.conftest import Open

EXAMPLE = Path(__file__).parents[2] / "examples" / "review"

CONTRAST = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[0-9.]+/g).slice(0, 3).map(Number).map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(document.getElementById("panel")).backgroundColor);
  return [...document.querySelectorAll(".curve text")].map((text) => {
    const [high, low] = [light(getComputedStyle(text).fill), ground].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  });
}"""
INSIDE = """() => {
  const panel = document.getElementById("panel").getBoundingClientRect();
  return [...document.querySelectorAll(".curve, .curve text")].every((part) => {
    const box = part.getBoundingClientRect();
    return box.width > 0 && box.left >= panel.left && box.right <= panel.right + 1;
  });
}"""


@pytest.fixture(scope="module")
def page_text() -> str:
    script = (EXAMPLE / "jobs" / "orders.sql").read_text(encoding="utf-8")
    before = set_value(api.compile_sql(script, name="orders"), "join_o_c.state.leftState.ttl", "4 d")[0]
    after = set_value(before, "join_o_c.state.leftState.ttl", "6 h")[0]
    return plan_page(after, before=before, evidence=loads((EXAMPLE / "evidence.json").read_bytes()))


@pytest.mark.parametrize(("width", "dark"), [(390, False), (820, True), (1440, False)])
def test_the_curves_are_inside_the_panel_and_legible(open_page: Open, page_text: str, width: int, dark: bool) -> None:
    page = open_page(page_text, width=width, dark=dark)
    assert page.locator("figure.evidence svg[role='img']").count() == 3
    assert page.evaluate(INSIDE)
    assert min(page.evaluate(CONTRAST)) >= 4.5
    assert "1.28 % of matches of the last 90 d came later than that" in page.locator("#overview").inner_text()

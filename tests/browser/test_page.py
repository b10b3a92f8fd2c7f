"""The page of a plan in a browser: clicks, keys, search, folding, themes, printing, and names that attack."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import hintplan
from hintplan.planner.compile import compile_script
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.reasons import with_reason
from hintplan.plans.operators import Sink
from hintplan.plans.show.page import plan_page
from hintplan.plans.show.page_script import page_script
from tests.plans.show.test_picture import chain, hostile

pytestmark = pytest.mark.part(of=4)

Open = Callable[..., Page]

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "examples" / "flights" / "flights.sql"
JOIN = "join_f_p"


@pytest.fixture(scope="module")
def flights() -> Plan:
    """The plan of the flights example, with one edit and its reason."""
    edited, _ = set_value(
        compile_script(SCRIPT.read_text(), file="flights.sql").plan, f"{JOIN}.state.leftState.ttl", "3 d"
    )
    return with_reason(edited, f"{JOIN}.state.leftState.ttl", "late payments, see RFC 12")


@pytest.fixture(scope="module")
def with_sql(flights: Plan) -> str:
    text = SCRIPT.read_text()
    done = compile_script(text, file="flights.sql")
    return plan_page(
        flights, script=page_script("flights.sql", text, flights, done.plan, done.positions), file="flights.json"
    )


def box(page: Page, operator_id: str) -> str:
    """A selector of the box of an operator in the drawing that is shown."""
    number = page.evaluate(
        "id => JSON.parse(document.getElementById('data').textContent).boxes.findIndex(b => b.id === id)", operator_id
    )
    return f".layer:not([hidden]) .box[data-i='{number}']"


def selected(page: Page) -> str:
    found = page.locator("#detail:not([hidden]) h2")
    return found.inner_text() if found.count() else ""


def test_a_click_shows_every_setting_with_its_layers_and_its_reason(open_page: Open, with_sql: str) -> None:
    page = open_page(with_sql)
    page.click(box(page, JOIN) + " .face")
    assert selected(page) == JOIN
    setting = page.locator(".setting").first
    assert setting.locator("strong").inner_text() == "3 d"
    layers = [" ".join(text.split()) for text in setting.locator(".layers li").all_inner_texts()]
    assert layers == ["config 1 d line 7", "hint 1 d line 69", "edit 3 d"]
    assert setting.locator("blockquote").inner_text() == "late payments, see RFC 12"
    panel = page.locator("#detail").inner_text()
    joined = "LEFT JOIN ON f.tailnum = p.tailnum"
    for told in (joined, "tailnum = tailnum", "right.manufacturer", "+I -D", "scan_planes"):
        assert told in panel
    page.click("#detail button:has-text('join_f_p_a')")
    assert selected(page) == "join_f_p_a"
    page.click("#detail .back")
    expect(page.locator("#overview")).to_be_visible()


def test_the_copied_command_sets_what_it_says(open_page: Open, with_sql: str, flights: Plan) -> None:
    page = open_page(with_sql)
    page.click(box(page, JOIN) + " .face")
    title = page.locator(".setting .copy").first.get_attribute("title")
    assert title == f"Copy: hintplan set flights.json '{JOIN}.state.leftState.ttl=3 d'"


def test_the_lines_of_the_script_and_the_operators_they_set_lead_to_each_other(open_page: Open, with_sql: str) -> None:
    page = open_page(with_sql)
    hint = page.locator("#sql li", has_text="STATE_TTL('f' = '1 d'")
    hint.locator("button").click()
    assert selected(page) == JOIN
    expect(hint).to_have_class("lit")
    page.click("#detail .link:has-text('line 7')")
    expect(page.locator("#line7")).to_have_class("lit")
    page.keyboard.press("s")
    expect(page.locator("#sql")).to_be_hidden()


def test_arrow_keys_follow_the_arrows_and_escape_lets_go(open_page: Open, with_sql: str) -> None:
    page = open_page(with_sql)
    way = []
    for key in (
        "ArrowRight",
        "ArrowRight",
        "ArrowRight",
        "ArrowRight",
        "ArrowLeft",
        "ArrowLeft",
        "ArrowDown",
        "ArrowUp",
    ):
        page.keyboard.press(key)
        way.append(selected(page))
    assert way[:6] == ["scan_flights", JOIN, "join_f_p_a", "calc_t", "join_f_p_a", JOIN]
    assert way[6:] == ["scan_airlines", JOIN]
    assert page.evaluate("document.activeElement.classList.contains('box')")
    page.keyboard.press("Escape")
    assert selected(page) == ""
    # A second key must find its box again: the focus has stayed in the graph.
    page.keyboard.press("Enter")
    assert selected(page) == JOIN


def test_search_finds_names_tables_columns_and_expressions(open_page: Open, with_sql: str) -> None:
    page = open_page(with_sql)
    for text, first, count in (
        ("airlines", "scan_airlines", 1),
        ("manufacturer", "scan_planes", 6),
        ("coalesce unknown", "calc_t", 1),
        ("delays", "sink_delays", 1),
        ("rfc", JOIN, 1),
        ("no such thing", "", 0),
    ):
        page.keyboard.press("/")
        page.keyboard.type(text)
        options = page.locator("#hits [role=option]")
        told = page.locator("#hits [role=presentation]").inner_text()
        if count == 0:
            assert told == "nothing found"
        else:
            assert options.count() == count, (text, options.all_inner_texts())
            page.keyboard.press("Enter")
            assert (text, selected(page)) == (text, first)
            assert page.locator(".layer:not([hidden]) .box.found").count() == count
        page.keyboard.press("/")
        page.keyboard.press("Escape")
    assert page.locator(".found").count() == 0


def test_every_operator_can_be_reached_by_its_name_without_a_mouse(
    open_page: Open, with_sql: str, flights: Plan
) -> None:
    page = open_page(with_sql)
    for operator in flights.operators:
        page.keyboard.press("/")
        page.locator("#search").fill(operator.id)
        page.keyboard.press("Enter")
        assert selected(page) == operator.id
        assert page.evaluate("document.activeElement.classList.contains('selected')")


def test_help_opens_and_closes_with_the_question_mark(open_page: Open, with_sql: str) -> None:
    page = open_page(with_sql)
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()


def test_folding_hides_what_only_passes_rows_on_and_keeps_the_selection(open_page: Open, with_sql: str) -> None:
    page = open_page(with_sql)
    page.click(box(page, JOIN) + " .face")
    page.keyboard.press("c")
    # What is shown is drawn with the next frame.
    expect(page.locator(".layer:not([hidden]) .box")).to_have_count(7)
    assert selected(page) == JOIN
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert selected(page) == "aggregate_t"
    # What is folded away can still be found, which unfolds it.
    page.keyboard.press("/")
    page.keyboard.type("calc_t")
    page.keyboard.press("Enter")
    assert selected(page) == "calc_t"
    expect(page.locator(".layer:not([hidden]) .box")).to_have_count(8)


def test_differences_are_marked_listed_and_visited_one_after_the_other(open_page: Open, flights: Plan) -> None:
    before, _ = set_value(flights, f"{JOIN}.state.leftState.ttl", "1 d")
    audit = Sink(id="sink_audit", inputs=(JOIN,), table="delays")
    old = replace(before, operators=(*before.operators, audit))
    page = open_page(plan_page(flights, before=old))
    assert page.locator("#whole .box.changed .id").all_text_contents() == [f"~ {JOIN}"]
    assert page.locator("#whole .box.removed .id").text_content() == "\N{MINUS SIGN} sink_audit"
    assert page.locator("#whole .row.changed .value").text_content() == "1 d → 3 d"
    listed = page.locator("#overview .changes").inner_text()
    assert "1 d → 3 d" in listed
    assert "sink_audit" in listed
    seen = []
    for _ in range(3):
        page.keyboard.press("n")
        seen.append(selected(page))
    assert seen == [JOIN, "sink_audit", JOIN]
    page.keyboard.press("N")
    assert selected(page) == "sink_audit"


@pytest.mark.parametrize("dark", [False, True])
def test_colours_follow_the_system_until_someone_chooses(open_page: Open, with_sql: str, dark: bool) -> None:
    page = open_page(with_sql, dark=dark)

    def ground() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light, night = "rgb(245, 246, 248)", "rgb(18, 22, 28)"
    assert ground() == (night if dark else light)
    seen = []
    for _ in range(3):
        page.keyboard.press("t")
        seen.append(ground())
    assert seen == [light, night, night if dark else light]


def test_a_print_has_the_whole_graph_and_the_plan_in_words(open_page: Open, with_sql: str, tmp_path: Path) -> None:
    page = open_page(with_sql, dark=True)
    page.keyboard.press("+")
    data = page.pdf(prefer_css_page_size=True, path=tmp_path / "plan.pdf")
    assert data.startswith(b"%PDF-")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    expect(page.locator(".tools")).to_be_hidden()
    expect(page.locator("#overview .states")).to_be_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#graph").get_attribute("viewBox") is not None
    assert page.locator("#whole").get_attribute("transform") is None
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#graph").get_attribute("viewBox") is None


def test_zooming_panning_and_fitting(open_page: Open, with_sql: str) -> None:
    page = open_page(with_sql)

    def place() -> list[float]:
        page.wait_for_function("document.getElementById('whole').getAttribute('transform') !== null")
        numbers = re.findall(r"-?[\d.]+", page.locator("#whole").get_attribute("transform") or "")
        return [float(number) for number in numbers]

    def moves(act: Callable[[], None]) -> list[float]:
        old = page.locator("#whole").get_attribute("transform")
        act()
        page.wait_for_function("old => document.getElementById('whole').getAttribute('transform') !== old", arg=old)
        return place()

    first = place()
    assert moves(lambda: page.keyboard.press("+"))[2] > first[2]
    page.mouse.move(400, 150)
    page.mouse.down()
    dragged = moves(lambda: page.mouse.move(460, 190))
    page.mouse.up()
    assert selected(page) == ""
    assert moves(lambda: page.mouse.wheel(0, -120))[2] > dragged[2]
    fitted = moves(lambda: page.keyboard.press("f"))
    assert [round(x, 2) for x in fitted] == [round(x, 2) for x in first]


def test_names_cannot_run_or_change_anything(open_page: Open) -> None:
    bad = "</script><script>alert(1)</script><img src=x onerror=alert(2)>' \" \x1b[2J \u202egnp.exe @DATA@"
    plan = hostile()
    nasty = replace(plan, name=bad, source=bad, config={bad: bad}, tables={bad: plan.tables[next(iter(plan.tables))]})
    operators = tuple(replace(o, table=bad) if o.table is not None else o for o in nasty.operators)
    nasty = replace(nasty, operators=operators)
    text = plan_page(nasty, before=plan, file=bad)
    assert text.count("<script") == 2
    page = open_page(text)
    for operator in nasty.operators:
        page.click(box(page, operator.id) + " .face")
        assert selected(page) == operator.id
    shown = page.locator("body").inner_text()
    assert "</script><script>alert(1)" in shown
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert page.locator("img").count() == 0
    page.keyboard.press("/")
    page.keyboard.type("<img")
    assert page.locator("#hits [role=option]").count() > 0


def test_the_policy_of_the_page_forbids_scripts_of_others(open_page: Open, with_sql: str) -> None:
    page = open_page(with_sql)
    policy = page.locator("meta[http-equiv]").get_attribute("content") or ""
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert (
        re.findall(r"(?:src|href)=", re.sub(r"<script.*?</script>|<style.*?</style>", "", with_sql, flags=re.S)) == []
    )


def test_the_graph_tells_assistive_technology_what_it_shows(open_page: Open, with_sql: str) -> None:
    page = open_page(with_sql)
    first = page.locator("#whole .box").first
    assert first.get_attribute("role") == "button"
    assert (first.get_attribute("aria-label") or "").startswith("scan_flights, scan")
    assert page.locator("#whole .box[tabindex='0']").count() == 1
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, input')]"
        ".filter(e => !(e.getAttribute('aria-label') || e.textContent.trim())).length"
    )
    assert nameless == 0
    page.click(box(page, JOIN) + " .face")
    assert page.locator("#said").inner_text() == f"{JOIN}, join"


def test_a_page_of_three_operators_fills_no_screen_but_is_legible(open_page: Open) -> None:
    page = open_page(plan_page(chain(1)))
    size = page.evaluate("document.querySelector('#whole .id').getBoundingClientRect().height")
    assert size >= 12
    expect(page.locator("#map")).to_be_hidden()


def test_a_large_plan_opens_legible_with_a_map_and_draws_only_what_is_seen(open_page: Open) -> None:
    page = open_page(plan_page(chain(2000)))
    expect(page.locator("#map")).to_be_visible()
    assert page.evaluate("document.querySelector('#whole .box .id').getBoundingClientRect().height") > 7
    assert 0 < page.locator("#whole .box").count() < 100
    page.keyboard.press("f")
    expect(page.locator("#dots")).to_be_visible()
    assert page.locator("#whole .box").count() <= 1
    page.keyboard.press("/")
    page.keyboard.type("calc_1999")
    page.keyboard.press("Enter")
    assert selected(page) == "calc_1999"
    expect(page.locator(box(page, "calc_1999"))).to_be_visible()


def test_a_narrow_window_still_shows_graph_and_panel(open_page: Open, with_sql: str) -> None:
    page = open_page(with_sql, width=480, height=900)
    page.click(box(page, JOIN) + " .face")
    assert selected(page) == JOIN
    expect(page.locator("#graph")).to_be_visible()


def test_a_plan_file_with_every_kind_of_setting_opens(open_page: Open) -> None:
    plan = hintplan.load(ROOT / "tests" / "plans" / "enriched_orders.json")
    page = open_page(plan_page(plan))
    for operator in plan.operators:
        page.click(box(page, operator.id) + " .face")
        # Whatever kind it is, the selected box has the colour of the focus around it.
        colour = page.evaluate(
            "s => getComputedStyle(document.querySelector(s)).stroke", box(page, operator.id) + " .face"
        )
        assert colour == "rgb(26, 86, 214)"
    page.click(box(page, "lookup_rates") + " .face")
    headings = [text.lower() for text in page.locator("#detail h3").all_inner_texts()]
    assert {"async", "retry", "cache", "facts", "table rates"} <= set(headings)


TABLES = """
CREATE TABLE orders (order_id BIGINT, segment STRING, amount DECIMAL(10, 2), ordered_at TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE order_lines_with_products (order_id BIGINT, sku STRING, quantity INT)
WITH ('connector' = 'filesystem', 'path' = 'l', 'format' = 'json');
CREATE TABLE revenue_by_hour_and_segment (hour_of TIMESTAMP(3), segment STRING, n BIGINT) WITH ('connector' = 'print');
"""
JOB = f"""{TABLES}
INSERT INTO revenue_by_hour_and_segment
SELECT /*+ STATE_TTL('o' = '2 d') */ FLOOR(o.ordered_at TO HOUR), COALESCE(o.segment, 'n/a'), COUNT(*)
FROM orders AS o JOIN order_lines_with_products AS l ON o.order_id = l.order_id
GROUP BY FLOOR(o.ordered_at TO HOUR), COALESCE(o.segment, 'n/a');
"""
BROKEN_WORDS = """() => {
  const broken = [];
  const cells = "#overview td, #overview th, #overview li, header h1, header p, #detail td";
  for (const cell of document.querySelectorAll(cells))
    for (const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT); walk.nextNode();)
      for (const word of walk.currentNode.data.matchAll(/[A-Za-z0-9]+/g)) {
        const range = document.createRange();
        range.setStart(walk.currentNode, word.index);
        range.setEnd(walk.currentNode, word.index + word[0].length);
        const tops = new Set([...range.getClientRects()].map((rect) => Math.round(rect.top)));
        if (tops.size > 1) broken.push(word[0]);
      }
  return broken;
}"""


@pytest.fixture(scope="module")
def compared() -> str:
    """A page with a shorter TTL, and a state that starts empty."""
    before = compile_script(JOB, file="job.sql").plan
    after = compile_script(JOB.replace("'n/a'", "'unknown'").replace("2 d", "6 h"), file="other.sql").plan
    assert {change.effect.level for change in compare_plans(before, after)} >= {"expire", "drop"}
    script = page_script("job.sql", JOB, after, after, {})
    return plan_page(after, before=before, script=script, file="job.json")


@pytest.mark.parametrize("width", [320, 420, 600, 900, 1280])
def test_no_word_is_broken_and_the_header_is_whole(open_page: Open, compared: str, width: int) -> None:
    page = open_page(compared, width=width)
    assert page.evaluate(BROKEN_WORDS) == []
    for part in ("header h1", "header .counts"):
        expect(page.locator(part)).to_be_visible()
        assert page.evaluate(
            "s => { const e = document.querySelector(s); return e.scrollWidth <= e.clientWidth && "
            "e.scrollHeight <= e.clientHeight + 1 && e.getBoundingClientRect().right <= innerWidth; }",
            part,
        ), part
    page.click(box(page, "join_o_l") + " .face")
    assert page.evaluate(BROKEN_WORDS) == []


def test_a_phone_opens_with_the_whole_graph_and_the_table_of_states(open_page: Open, compared: str) -> None:
    page = open_page(compared, width=420)
    graph, screen = (page.locator(name).bounding_box() for name in ("#whole", "#graph"))
    assert graph is not None
    assert screen is not None
    assert graph["x"] >= screen["x"]
    assert graph["x"] + graph["width"] <= screen["x"] + screen["width"]
    assert graph["width"] > screen["width"] * 0.8
    table = page.locator(".states").bounding_box()
    assert table is not None
    assert table["y"] + table["height"] <= 800
    assert table["x"] + table["width"] <= 420
    expect(page.locator("#sql")).to_be_hidden()
    page.click("button[data-key='s']")
    expect(page.locator("#sql")).to_be_visible()


def test_a_state_that_is_lost_has_another_colour_than_a_ttl(open_page: Open, compared: str) -> None:
    page = open_page(compared)

    def colour(selector: str, name: str) -> str:
        found: str = page.evaluate("([s, name]) => getComputedStyle(document.querySelector(s))[name]", [selector, name])
        return found

    borders = [colour(f"#overview li.{level}", "borderLeftColor") for level in ("expire", "drop", "none")]
    assert len(set(borders)) == 3
    emptied = "aggregate_revenue_by_hour_and_segment"
    faces = [colour(box(page, each) + " .face", "stroke") for each in ("join_o_l", emptied, "scan_orders")]
    assert len(set(faces)) == 3
    assert faces[1] == borders[1]
    page.click(box(page, emptied) + " .face")
    expect(page.locator("#detail .chips")).to_contain_text("state starts empty")
    expect(page.locator("#legend")).to_contain_text("state starts empty")

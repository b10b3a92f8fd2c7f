"""The page of a run in a browser: numbers change while the graph stays where it is, in three widths and two themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest
from playwright.sync_api import Page, expect

import hintplan
from hintplan.plans.evidence.document import Evidence
from hintplan.runtime.page import live_page
from hintplan.runtime.progress import EventTimeProgress, OperatorProgress
from hintplan.runtime.web_server import serving
from tests.browser.test_page import BROKEN_WORDS, box, selected
from tests.plans.show.test_curve import STATE
from tests.plans.show.test_picture import HOSTILE, hostile
from tests.runtime.page.recorded import Recorded

pytestmark = pytest.mark.part(of=4)

Open = Callable[..., Page]

PLACES = (
    "[...document.querySelectorAll('.layer:not([hidden]) .box, .edge path, #panel, header, #legend')].map(e => {"
    "const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height].map(Math.round).join(' '); })"
)


class Served:
    """A recorded run whose page is served until a test ends it."""

    def __init__(self, run: Recorded) -> None:
        self.run, self.stack = run, ExitStack()
        self.url = self.stack.enter_context(
            serving(lambda path: self.run.page.answer(path), ("127.0.0.1", 0), "--page", own_names=())
        )


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A run that has begun; asked for before `open_url`, so that pages are closed before their server."""
    monkeypatch.setattr(live_page, "EVERY_SECONDS", 0.1)
    run = Recorded()
    run.begin()
    served = Served(run)
    yield served
    served.stack.close()


def value(page: Page, operator: str, row: str) -> str:
    return page.locator(f"{box(page, operator)} .live[data-row='{row}'] .value").text_content() or ""


@pytest.mark.parametrize("width", [400, 900, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_numbers_come_and_nothing_moves(served: Served, open_url: Open, width: int, dark: bool) -> None:
    page = open_url(served.url, width=width, height=900, dark=dark)
    expect(page.locator("#phase")).to_have_text("running")
    expect(page.locator("#queries .query")).to_have_count(3)
    before = page.evaluate(PLACES)
    served.run.an_hour()
    join = f"{box(page, 'join_o_p')}"
    expect(page.locator(f"{join} .live[data-row='state'] .value")).to_have_text("▲ 41,702 · 2.2 GiB")
    assert page.evaluate(PLACES) == before
    assert value(page, "window_payments", "late").startswith("▲ 30, +")
    assert value(page, "scan_orders", "lag") == "▲ 1,239 files · 86.8 MiB"
    # A sign stands beside each colour, and boxes have the colour of their worst number.
    for operator, level in (("join_o_p", "warn"), ("window_payments", "warn"), ("window_orders", None)):
        classes = page.locator(box(page, operator)).get_attribute("class") or ""
        assert [f"is-{each}" in classes.split() for each in ("hold", "warn", "bad")] == [
            each == level for each in ("hold", "warn", "bad")
        ]
    assert page.evaluate(BROKEN_WORDS) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        "[...document.querySelectorAll('header > *')].every(e => e.getBoundingClientRect().right <= innerWidth + 1)"
    )
    first = page.locator("#queries .query").first
    expect(first).to_contain_text("14.2 s, usually 1.2 s · the last batch was slower than usual")
    assert first.locator(".bars rect.slow").count() == 1


def test_the_panel_of_an_operator_follows_the_run_and_keeps_its_focus(served: Served, open_url: Open) -> None:
    page = open_url(served.url)
    page.click(box(page, "join_o_p") + " .face")
    expect(page.locator("#now")).to_be_visible()
    link = page.locator("#detail .link", has_text="scan_payments")
    link.focus()
    served.run.an_hour()
    expect(page.locator("#now tr.line", has_text="state")).to_contain_text("▲ 41,702 · 2.2 GiB")
    expect(page.locator("#now")).to_contain_text("2026-11-26")  # the oldest write
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    assert selected(page) == "scan_payments"
    expect(page.locator("#now tr.line", has_text="rows")).to_contain_text("/s")
    page.keyboard.press("Escape")
    expect(page.locator("#queries .query").first).to_be_visible()


def test_another_plan_is_loaded_with_the_same_selection_and_view(served: Served, open_url: Open) -> None:
    page = open_url(served.url)
    page.click(box(page, "join_o_p") + " .face")
    page.keyboard.press("+")
    page.wait_for_function("document.getElementById('whole').getAttribute('transform') !== null")
    page.wait_for_timeout(100)
    view = page.locator("#whole").get_attribute("transform")
    served.run.plan = hintplan.set(served.run.plan, "join_o_p.state.leftState.ttl", "6 h", reason="less to keep")
    served.run.begin()
    expect(page.locator("#detail .setting strong").first).to_have_text("6 h")
    assert selected(page) == "join_o_p"
    expect(page.locator("#whole")).to_have_attribute("transform", view or "")


def test_several_tabs_learn_that_the_run_is_over(served: Served, open_url: Open) -> None:
    pages = [open_url(served.url) for _ in range(2)]
    for page in pages:
        expect(page.locator("#phase")).to_have_text("running")
    served.run.end("the query of sink_paid failed: <b>no answer</b>")
    for page in pages:
        expect(page.locator("#phase")).to_have_text("failed")
        expect(page.locator("#failure")).to_have_text("the query of sink_paid failed: <b>no answer</b>")
    served.run.page._over = True
    for page in pages:
        expect(page.locator("#heard")).to_contain_text("the run is over; its numbers are of ")
        assert page.title() == "paid · failed"


def test_a_run_that_no_longer_answers_is_said_to_be_gone(served: Served, open_url: Open) -> None:
    page = open_url(served.url)
    served.run.an_hour()
    expect(page.locator(f"{box(page, 'sink_minutes')} .live[data-row='batch'] .value")).to_have_text(
        "1.0 s, usually 1.0 s"
    )
    served.stack.close()
    expect(page.locator("#phase")).to_have_text("no answer")
    expect(page.locator("#heard")).to_contain_text("the run has ended or cannot be reached; its numbers are of ")
    assert value(page, "sink_minutes", "batch") == "1.0 s, usually 1.0 s"


def test_motion_is_only_for_those_who_want_it(served: Served, open_url: Open) -> None:
    page = open_url(served.url)
    seconds = "getComputedStyle(document.querySelector('.box .face')).transitionDuration"
    assert page.evaluate(seconds) != "0s"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(seconds) == "0s"


def test_folding_keeps_the_numbers(served: Served, open_url: Open) -> None:
    served.run.an_hour()
    page = open_url(served.url)
    expect(page.locator(f"{box(page, 'sink_minutes')} .live[data-row='batch'] .value")).to_have_text(
        "1.0 s, usually 1.0 s"
    )
    page.keyboard.press("c")
    expect(page.locator(box(page, "calc_by_plane"))).to_have_count(0)
    assert value(page, "join_o_p", "state") == "▲ 41,702 · 2.2 GiB"


def test_names_of_a_hostile_plan_and_its_reports_stay_text(served: Served, open_url: Open) -> None:
    bad = "</script><script>alert(1)</script><img src=x onerror=alert(2)>' \" \x1b[2J \u202egnp.exe @DATA@ " + HOSTILE
    plan = replace(hostile(), name=bad, reasons={bad: bad})
    operators = tuple(replace(o, table=bad) if o.table is not None else o for o in plan.operators)
    plan = replace(plan, operators=operators, tables={bad: plan.tables[next(iter(plan.tables))]})
    run = Recorded(plan=plan, queries={"sink_r": ("sink_r",)})
    run.begin()
    run.page.failure = bad
    served.run = run
    page = open_url(served.url)
    expect(page.locator("#failure")).to_contain_text("</script><script>alert(1)")
    page.click(box(page, "sink_r") + " .face")
    expect(page.locator("#now")).to_be_visible()
    shown = page.locator("body").inner_text()
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2


def test_names_of_partitions_stay_text(served: Served, open_url: Open) -> None:
    time = EventTimeProgress(watermark=0, held_by="watermark_orders", split="<img src=x onerror=alert(1)>/3")
    served.run.batch("sink_minutes", 1, operators={"window_orders": OperatorProgress(event_time=time)})
    page = open_url(served.url)
    page.click(box(page, "watermark_orders") + " .face")
    expect(page.locator("#now")).to_contain_text("by its partition <img src=x onerror=alert(1)>/3")
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("width", [400, 900, 1600])
def test_the_curves_of_the_states_are_in_the_panel(served: Served, open_url: Open, width: int) -> None:
    run = served.run
    run.page.read_evidence = lambda plan, checkpoint: Evidence(
        plan=plan.name, at=0, states=(replace(STATE, operator="join_o_p"),)
    )
    run.followed._execution = SimpleNamespace(checkpoint="/state")
    run.an_hour()
    page = open_url(served.url, width=width)
    page.click("text=read it")
    page.wait_for_selector("html.ready")
    curve = page.locator("#overview .curve")
    expect(curve).to_be_visible()
    expect(page.locator("#phase")).to_have_text("running")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    size = curve.bounding_box()
    assert size is not None
    assert size["x"] + size["width"] <= width
    page.click(box(page, "join_o_p") + " .face")
    expect(page.locator("#detail .curve")).to_be_visible()
    expect(page.locator("#now tr.line", has_text="state")).to_contain_text("41,702")

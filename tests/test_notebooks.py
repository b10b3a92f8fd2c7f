"""What a notebook shows of plans, differences, explanations and runs, asked of IPython's own formatters.

Whatever stands in a plan is shown as text: the markup has no script, no style sheet and no link, and asks no network.
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.formatters import DisplayFormatter

import hintplan
from hintplan.plans.model.plan import Plan
from hintplan.runtime.batch.execution import BatchExecution
from hintplan.runtime.progress import JobProgress
from hintplan.runtime.run.execution import Execution
from tests.plans.review.test_hostile_pull_request import CANARY, hostile
from tests.plans.show.test_picture import chain
from tests.test_front_door import LEFT, SQL

HOSTILE = [name for name in hostile(0) if name not in ("nested.json", "climbs.json")]  # which do not load


def shown(value: object) -> dict[str, str]:
    """What IPython puts into a notebook for ``value``, by MIME type."""
    formats, metadata = DisplayFormatter().format(value)
    assert metadata == {}
    return formats


class Markup(HTMLParser):
    """The tags and attributes of some HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}


def harmless(html: str) -> None:
    found = Markup(html)
    assert found.tags <= {"p", "strong", "code", "img", "pre", "table", "thead", "tbody", "tr", "th", "td"}
    for name, value in found.attributes:
        if name == "src":
            kind, _, data = value.partition(",")
            assert kind == "data:image/svg+xml;base64"
            drawing = base64.b64decode(data).decode()
            assert not re.search(r"<script|<foreignObject|<image|<a[ >]|\son\w+=|url\(|@import", drawing)
        else:
            assert name == "alt" or (name, value) == ("style", "white-space: pre; overflow-x: auto")
    assert "\x1b" not in html
    assert "\u202e" not in html


@pytest.fixture(scope="module")
def plan() -> Plan:
    return hintplan.compile_sql(SQL, name="job")


@pytest.fixture(scope="module")
def edited(plan: Plan) -> Plan:
    return hintplan.set(plan, LEFT, "3 d", reason="late payments")


def test_a_plan_is_a_picture_and_where_there_is_none_the_tree(edited: Plan) -> None:
    found = shown(edited)
    assert found["text/plain"] == str(hintplan.explain(edited))
    assert '<img src="data:image/svg+xml;base64,' in found["text/html"]
    assert "<td>edit · config 1 d</td>" in found["text/html"]
    harmless(found["text/html"])


def test_of_a_large_plan_the_beginning_of_the_tree_is_shown() -> None:
    text = shown(chain(400))["text/plain"]
    assert text.count("\n") == 300
    assert re.search(r"\n\.\.\. and [\d,]+ more lines$", text)


def test_a_difference_is_a_table_with_a_picture_of_what_changed(plan: Plan, edited: Plan) -> None:
    found = shown(hintplan.diff(plan, edited))
    assert found["text/plain"] == str(hintplan.diff(plan, edited))
    assert found["text/markdown"] == hintplan.diff(plan, edited).markdown()
    row = "<td>join_o_c.leftState.ttl</td><td>1 d → 3 d</td><td>edit over config 1 d · reason: late payments</td>"
    assert row in found["text/html"]
    assert "<img src=" in found["text/html"]
    harmless(found["text/html"])


def test_no_difference_says_so(plan: Plan) -> None:
    assert shown(hintplan.diff(plan, plan))["text/html"] == "<p><strong>no differences</strong></p>"


def test_a_large_difference_is_shown_in_part() -> None:
    html = shown(hintplan.diff(Plan(name="chain"), chain(400)))["text/html"]
    assert html.count("<tr>") == 301
    assert re.search(r"[\d,]+ more changes: <code>print</code> shows all of them", html)
    harmless(html)


def test_what_prints_as_a_command_does_is_shown_in_lines_that_do_not_break(plan: Plan, edited: Plan) -> None:
    for value in (hintplan.explain(plan), hintplan.rebase(edited, onto=plan), hintplan.check(plan, "nowhere")):
        found = shown(value)
        assert found["text/plain"] == str(value)
        assert found["text/html"].startswith('<pre style="white-space: pre; overflow-x: auto">')
        harmless(found["text/html"])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_plan_is_shown_as_text(name: str) -> None:
    bad = hintplan.loads(hostile(0)[name], check_meaning=False)
    good = hintplan.compile_sql(SQL, name="job")
    values = (bad, hintplan.explain(bad), hintplan.diff(good, bad), hintplan.diff(bad, good))
    for value in values:
        found = shown(value)
        harmless(found["text/html"])
        for text in found.values():
            assert CANARY not in text
            assert "\x1b" not in text
            assert "\u202e" not in text
    if name == "speaks.json":
        assert "&lt;script&gt;alert(7)" in shown(bad)["text/html"]


def stream(**more: Any) -> Execution:
    """A run of two queries, one of which Spark has reported a micro-batch of."""
    report = SimpleNamespace(
        batchId=0,
        durationMs={"addBatch": 1, "triggerExecution": 1_500},
        numInputRows=7,
        sources=(),
        timestamp="2026-01-01T00:00:00Z",
        observedMetrics={"sink_a": SimpleNamespace(asDict=lambda: {"rows_out": 5})},
    )
    of_a = SimpleNamespace(isActive=True, lastProgress=report, recentProgress=[report], exception=lambda: None)
    of_b = SimpleNamespace(isActive=True, lastProgress=None, recentProgress=[], exception=lambda: None)
    given = {"queries": {"sink_a": of_a, "sink_<b>": of_b}, "checkpoint": "<state>", "temporary": False}
    return Execution(**{**given, "partitions": 1, **more})


def test_a_run_is_a_table_of_its_sinks() -> None:
    run = stream()
    found = shown(run)
    assert found["text/plain"].split("\n") == [
        "running · checkpoint <state>",
        "sink      batch  rows in  rows out   time  state rows  state",
        "sink_a        0        7         5  1.5 s",
        "sink_<b>",
    ]
    assert "<td>sink_a</td><td>0</td><td>7</td><td>5</td><td>1.5 s</td>" in found["text/html"]
    harmless(found["text/html"])


def test_looking_at_a_run_takes_nothing_from_whoever_follows_it() -> None:
    run = stream()
    shown(run)
    assert list(run.progress) == ["sink_a"]
    assert [batch.rows_out for batch in run.new_batches()] == [5]
    assert list(run.new_batches()) == []
    assert list(run.progress) == ["sink_a"]


def test_a_run_says_how_it_ended() -> None:
    queries = stream().queries
    for query in queries.values():
        query.isActive = False
    assert shown(stream(queries=queries, temporary=True))["text/plain"].startswith("ended\n")
    queries["sink_a"].exception = lambda: RuntimeError("it broke <b>")
    run = stream(queries=queries)
    assert shown(run)["text/plain"].startswith(
        "failed · checkpoint <state>\nthe query of sink_a failed: it broke <b>\n"
    )
    assert "it broke &lt;b&gt;" in shown(run)["text/html"]
    assert str(run.exception) == "the query of sink_a failed: it broke <b>"


def test_a_run_whose_session_is_gone_is_shown_as_it_was_last_seen() -> None:
    class Gone(SimpleNamespace):
        @property
        def lastProgress(self) -> Any:
            raise ConnectionRefusedError

        def exception(self) -> Any:
            raise ConnectionRefusedError

    run = stream()
    list(run.new_batches())
    run = replace(run, queries={"sink_a": Gone()})
    head, _, row = shown(run)["text/plain"].split("\n")
    assert (head, row.split()) == ("ended · checkpoint <state>", ["sink_a", "0", "7", "5", "1.5", "s"])


def test_a_batch_run_is_a_table_of_its_sinks() -> None:
    def job(name: str) -> Any:
        return SimpleNamespace(sink=name)

    run = BatchExecution(
        plan="p",
        spark=SimpleNamespace(),  # type: ignore[arg-type]
        jobs=(job("sink_a"), job("sink_<b>")),
        cache=SimpleNamespace(),  # type: ignore[arg-type]
        finished=lambda well: None,
    )
    done = {"timestamp": "", "rows_out": 1_234, "duration_ms": 70, "lookups": {}, "functions": {}, "cached": {}}
    run._done.append(JobProgress(sink="sink_a", **done))  # type: ignore[arg-type]
    found = shown(run)
    assert found["text/plain"].split("\n") == [
        "running",
        "sink      rows out   time",
        "sink_a       1,234  70 ms",
        "sink_<b>",
    ]
    harmless(found["text/html"])
    run._future.set_exception(ValueError("it broke"))
    assert shown(run)["text/plain"].startswith("failed\n")

"""What the server of a run's page answers, asked over HTTP; its plan and its numbers may be hostile."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

import hintplan
from hintplan.plans.errors import RunError
from hintplan.plans.evidence.document import Evidence
from hintplan.plans.files.codec import fingerprint
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.terminal import hide
from hintplan.runtime.page.live_page import LivePage, open_page
from hintplan.runtime.supervision.health import RESTARTING, RUNNING, STOPPING, Health
from hintplan.runtime.web_server import serving
from tests.plans.show.test_curve import STATE
from tests.runtime.page.recorded import Recorded


@pytest.fixture
def run() -> Recorded:
    return Recorded()


@pytest.fixture
def url(run: Recorded) -> Iterator[str]:
    with serving(run.page.answer, ("127.0.0.1", 0), "--page", own_names=("etl-1",)) as url:
        yield url


def ask(url: str, path: str = "/", method: str = "GET", **headers: str) -> tuple[HTTPResponse, str]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def numbers(url: str, path: str = "/data") -> dict:
    answer, text = ask(url, path)
    assert answer.status == 200
    found: dict = json.loads(text)
    return found


def test_the_page_and_its_numbers_are_about_the_same_plan(run: Recorded, url: str) -> None:
    answer, text = ask(url)
    assert (answer.status, answer.getheader("Content-Type")) == (200, "text/html; charset=utf-8")
    digest = fingerprint(run.plan)
    assert f'"digest":"{digest}"' in text
    before = numbers(url)
    assert (before["digest"], before["phase"], before["operators"]) == (digest, "starting", {})
    run.begin()
    assert (numbers(url)["phase"], len(numbers(url)["queries"])) == ("running", 3)


def test_a_plan_that_changes_while_it_runs_is_shown_anew(run: Recorded, url: str) -> None:
    run.begin()
    old, new = run.plan, hintplan.set(run.plan, "join_o_p.state.leftState.ttl", "6 h")
    assert (numbers(url)["digest"], "6 h" in ask(url)[1]) == (fingerprint(old), False)
    run.an_hour(batches=3)
    run.followed.begin_plan(new)
    assert numbers(url)["operators"]["join_o_p"]["values"]["operator.state_ttl"]["leftState"] == 6 * 3600
    assert numbers(url)["queries"][0]["batch"] == 2
    assert (numbers(url)["digest"], "6 h" in ask(url)[1]) == (fingerprint(new), True)


def test_without_a_plan_the_page_waits_for_one() -> None:
    with open_page("0") as page:
        answer, text = ask(page.url)
        assert (answer.status, answer.getheader("Refresh")) == (503, "2")
        assert text == "no plan runs yet; this page opens when one does\n"
        assert numbers(page.url)["phase"] == "starting"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_written(url: str, method: str) -> None:
    answer, _ = ask(url, "/data", method)
    assert (answer.status, answer.getheader("Allow")) == (405, "GET, HEAD")


def test_other_paths_do_not_exist(url: str) -> None:
    for path in ("/../etc/passwd", "/page.js", "/data/x"):
        assert ask(url, path)[0].status == 404


def test_head_has_no_body(url: str) -> None:
    answer, text = ask(url, method="HEAD")
    assert (answer.status, text) == (200, "")
    assert int(answer.getheader("Content-Length") or 0) > 10_000


@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost", "LOCALHOST:80", "[::1]:80", "10.0.0.7", "etl-1:8080"])
def test_own_names_are_answered(url: str, host: str) -> None:
    assert ask(url, Host=host)[0].status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::1", "", "localhost.evil"]
)
def test_names_of_others_are_refused_as_dns_rebinding_would_use_them(url: str, host: str) -> None:
    for path in ("/", "/data"):
        answer, text = ask(url, path, Host=host)
        assert answer.status == 421
        assert "paid" not in text


def test_browsers_are_told_to_keep_the_page_to_itself(url: str) -> None:
    for path in ("/", "/data"):
        answer, _ = ask(url, path, Origin="http://evil.example")
        assert answer.getheader("Access-Control-Allow-Origin") is None
        assert answer.getheader("Content-Security-Policy") == "frame-ancestors 'none'"
        assert answer.getheader("Cross-Origin-Resource-Policy") == "same-origin"
        assert answer.getheader("X-Content-Type-Options") == "nosniff"
        assert answer.getheader("Cache-Control") == "no-store"
        assert answer.getheader("Server") == "hintplan"


@pytest.mark.parametrize(
    ("phase", "failure", "told", "at_the_end"),
    [
        (RUNNING, None, "running", "finished"),
        (STOPPING, None, "stopping", "stopped"),
        (RESTARTING, None, "restarting", "finished"),
        (RUNNING, "no answer", "failed", "failed"),
    ],
)
def test_a_supervised_run_tells_its_phase(
    run: Recorded, phase: str, failure: str | None, told: str, at_the_end: str
) -> None:
    run.page.health = Health(plan="paid", digest="", phase=phase, failure=failure)
    assert run.page.document()["phase"] == told
    run.page.end()
    ended = run.page.document()
    assert (ended["phase"], ended["failure"], ended["over"]) == (at_the_end, failure, True)


def test_a_run_of_a_program_ends_or_fails(run: Recorded) -> None:
    run.begin()
    run.end()
    assert (run.page.document()["phase"], run.page.document()["failure"]) == ("ended", None)
    run.begin()
    run.end("the query of sink_paid failed")
    assert (run.page.document()["phase"], run.page.document()["failure"]) == ("failed", "the query of sink_paid failed")


def test_a_failure_shows_no_secret(run: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "correct horse battery")
    hide(["DB_PASSWORD"])
    run.page.failure = "refused: password=correct horse battery\x1b[2J"
    shown = run.page.document()["failure"]
    assert "horse" not in shown
    assert "\x1b" not in shown


def test_an_open_page_learns_that_the_run_is_over(run: Recorded, url: str) -> None:
    tabs = [f"/data?tab={number}" for number in range(3)]
    for tab in tabs:
        assert numbers(url, tab)["over"] is False
    ending = threading.Thread(target=run.page.end)
    ending.start()
    for tab in tabs:
        ending.join(0.05)
        assert ending.is_alive()
        while not numbers(url, tab)["over"]:
            time.sleep(0.01)
    ending.join(1)
    assert not ending.is_alive()


def test_an_end_that_nobody_looks_at_takes_no_time(run: Recorded, url: str) -> None:
    numbers(url)
    began = time.monotonic()
    run.page.end()
    assert time.monotonic() - began < 1


def test_a_port_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RunError, match=f"--page cannot listen on 127.0.0.1 port {port}: "), open_page(str(port)):
            pass


@pytest.mark.parametrize("where", ["", "host", "1:2:3", "host:99999", "-1"])
def test_a_wrong_address_is_refused(where: str) -> None:
    with pytest.raises(RunError, match="expected PORT or HOST:PORT"), open_page(where):
        pass


def test_a_host_that_others_reach_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    with open_page("0.0.0.0:0") as page:
        port = urlsplit(page.url).port
        assert ask(f"http://127.0.0.1:{port}")[0].status == 503
        assert ask(f"http://127.0.0.1:{port}", Host=socket.gethostname())[0].status == 503
        assert ask(f"http://127.0.0.1:{port}", Host="evil.example")[0].status == 421
    told = capsys.readouterr().err
    assert told.startswith(f"warning: everyone who reaches this machine at 0.0.0.0:{port} can read the page, ")
    with open_page("localhost:0"):
        pass
    assert capsys.readouterr().err == ""


def test_names_in_a_plan_stay_text(run: Recorded, url: str) -> None:
    bad = "</script><script>alert(1)</script>\x1b[2J"
    run.plan = replace(run.plan, name=bad)
    run.page = LivePage(metrics=run.metrics, plan=run.plan, file=bad)
    run.queries = {"sink\u202e": ("sink\u202e",)}
    run.begin()
    assert "\u202e" not in run.page.document()["queries"][0]["sinks"][0]
    assert bad not in run.page.answer("/").content.decode()
    assert "\x1b" not in run.page.document()["plan"]


def _is_at(run: Recorded, checkpoint: str) -> None:
    run.begin()._execution = SimpleNamespace(checkpoint=checkpoint)


def test_the_evidence_of_the_states_is_read_when_someone_asks_and_once_a_minute(run: Recorded, url: str) -> None:
    read = []

    def evidence(plan: Plan, checkpoint: str) -> Evidence:
        read.append((plan.name, checkpoint))
        state = replace(STATE, operator="join_o_p")
        return Evidence(plan=plan.name, at=1_700_000_000_500, states=(state,))

    run.page.read_evidence = evidence
    assert "the run has not started yet" in ask(url, "/?evidence")[1]
    run.page._evidence = None
    _is_at(run, "/state/paid")
    offered = ask(url)[1]
    assert (read, "<figure" in offered) == ([], False)
    assert '<a class="link" href="?evidence">read it</a>' in offered
    for _ in range(2):
        page = ask(url, "/?evidence")[1]
        assert "The evidence of the states is of 2023-11-14 22:13:20 UTC:" in page
        assert page.count('<svg class="curve"') == 1
        assert '<a class="link" href="?evidence">read it again</a>' in page
    assert read == [("paid", "/state/paid")]
    run.followed.begin_plan(hintplan.set(run.plan, "join_o_p.state.leftState.ttl", "6 h"))
    ask(url, "/?evidence")
    assert len(read) == 2


def test_evidence_that_cannot_be_read_is_explained(run: Recorded, url: str) -> None:
    def evidence(plan: Plan, checkpoint: str) -> Evidence:
        raise RunError("no <record> in /state/paid")

    run.page.read_evidence = evidence
    _is_at(run, "/state/paid")
    page = ask(url, "/?evidence")[1]
    assert "The evidence of the states cannot be read: no &lt;record&gt; in /state/paid" in page


def test_a_plan_whose_states_have_no_ttl_offers_no_evidence() -> None:
    plan = hintplan.compile_sql(
        "CREATE TABLE o (a INT) WITH ('connector' = 'datagen');"
        "CREATE TABLE s (a INT) WITH ('connector' = 'blackhole');"
        "INSERT INTO s SELECT a FROM o;"
    )
    page = LivePage(metrics=Recorded().metrics, plan=plan)
    assert page.answer("/?evidence").content == page.answer("/").content
    assert b'href="?evidence"' not in page.answer("/").content

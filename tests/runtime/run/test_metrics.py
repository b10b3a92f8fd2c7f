"""A run as others see it: what Prometheus and OpenTelemetry get of it, Spark's own pages, and its records.

Numbers are those of the rows in the files, counted by hand.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.errors import RunError
from hintplan.runtime.worker.early_workers import JOB
from tests.examples.test_monitoring import expressions
from tests.runtime.metrics.prometheus_server import running_prometheus
from tests.runtime.metrics.receiver import Received, receiver
from tests.runtime.metrics.scraped import Samples, names, of, scrape
from tests.runtime.run.test_run_command import run, started, wait_for
from tests.spark.programs import add_rows

pytestmark = [pytest.mark.spark, pytest.mark.part(of=2, fixture="spark")]

SCRIPT = """
CREATE TABLE orders (id BIGINT, customer STRING, total BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'orders', 'format' = 'json', 'source.max-files-per-trigger' = '1');
CREATE TABLE customers (name STRING, country STRING)
WITH ('connector' = 'filesystem', 'path' = 'customers', 'format' = 'json');
CREATE TABLE shown (country STRING, orders BIGINT) WITH ('connector' = 'print');
CREATE TABLE kept (country STRING, orders BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'kept', 'format' = 'json', 'sink.changelog' = 'true');
CREATE TABLE dropped (id BIGINT) WITH ('connector' = 'blackhole');
CREATE VIEW counts AS
SELECT country, COUNT(*) AS orders FROM (
  SELECT /*+ STATE_TTL('o' = '1 d', 'c' = '3 h') */ c.country
  FROM orders AS o JOIN customers AS c ON o.customer = c.name
) AS t GROUP BY country;
INSERT INTO shown SELECT country, orders FROM counts;
INSERT INTO kept SELECT country, orders FROM counts;
INSERT INTO dropped SELECT id FROM orders;
"""
ORDERS = [{"id": number, "customer": "ann" if number % 2 else "bob", "total": 10} for number in range(6)]
"""Three orders of ann, and three of bob, who is unknown."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is at work: where it is asked, its process and the directory that it runs in."""

    process: subprocess.Popen[str]
    folder: Path
    metrics: str
    page_of_run: str
    pages: str
    received: Received

    def scrape(self) -> Samples:
        return scrape(self.metrics)

    def wait_for_batches(self, number: int, query: str) -> Samples:
        """Until so many micro-batches of ``query`` have ended; the metrics then."""

        def ended() -> bool:
            found = self.scrape()
            count = ("hintplan_batch_duration_seconds_count", (("plan", "job"), ("query", query)))
            return found.get(count, 0) >= number

        wait_for(ended, self.process)
        return self.scrape()

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "stdout").read_text().splitlines()]

    def numbers(self) -> Any:
        """What an open page of the run reads."""
        with urlopen(f"{self.page_of_run}/data?tab=1", timeout=30) as found:
            return json.load(found)

    def page(self, path: str) -> Any:
        """What Spark's pages have as JSON."""
        with urlopen(f"{self.pages}/api/v1/applications") as found:
            (application,) = json.load(found)
        with urlopen(f"{self.pages}/api/v1/applications/{application['id']}/{path}") as found:
            return json.load(found)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A job of two queries, one of them with two sinks, whose first batches have ended."""
    folder = tmp_path_factory.mktemp("metrics")
    add_rows(folder, "customers", [{"name": "ann", "country": "DE"}, {"name": "eve", "country": "FR"}])
    add_rows(folder, "orders", ORDERS)
    hintplan.dump(hintplan.compile_sql(SCRIPT, name="job"), folder / "job.json")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [
        "--json",
        "--trigger",
        "100 ms",
        "--checkpoint",
        "checkpoint",
        "--metrics",
        "prometheus=:0",
        "--page",
        "0",
    ]
    pages = ["--conf", "spark.ui.enabled=true", "--conf", f"spark.ui.port={port}"]
    with receiver() as received, pytest.MonkeyPatch.context() as patched:
        patched.setenv("OTEL_METRIC_EXPORT_INTERVAL", "500")
        arguments = ("job.json", *options, "--metrics", f"otlp={received.url}", *pages)
        with started(folder, *arguments) as process:
            said = folder / "stderr"
            wait_for(lambda: "page: " in said.read_text(), process)
            (url,) = re.findall(r"^metrics: (http\S+/metrics)$", said.read_text(), re.MULTILINE)[:1]
            (page,) = re.findall(r"^page: (http\S+)$", said.read_text(), re.MULTILINE)
            found = Run(process, folder, url, page, f"http://127.0.0.1:{port}", received)
            for query in ("aggregate_t", "sink_dropped"):
                found.wait_for_batches(1, query)
            # The metrics of a batch may be there before its record.
            wait_for(lambda: any(each.get("sink") == "sink_shown" for each in found.records()), process)
            yield found


def test_prometheus_is_told_of_rows_state_and_time_per_operator(running: Run) -> None:
    found = running.scrape()
    assert of(found, "hintplan_run_active", plan="job") == 1
    assert of(found, "hintplan_run_restarts_total") == 0
    assert of(found, "hintplan_batch_rows_in_total", query="aggregate_t") == 6 + 2
    assert of(found, "hintplan_source_rows_total", query="aggregate_t", operator="scan_orders") == 6
    assert of(found, "hintplan_source_rows_total", query="aggregate_t", operator="scan_customers") == 2
    assert of(found, "hintplan_sink_rows_total", operator="sink_shown", query="aggregate_t") == 1
    assert of(found, "hintplan_sink_rows_total", operator="sink_kept", query="aggregate_t") == 1
    assert of(found, "hintplan_sink_rows_total", operator="sink_dropped", query="sink_dropped") == 6
    join = {"operator": "join_o_c", "kind": "join"}
    assert of(found, "hintplan_operator_rows_in_total", **join) == 6 + 2
    assert of(found, "hintplan_operator_rows_out_total", **join) == 3
    assert of(found, "hintplan_operator_state_rows", **join) == 2 + 2  # equal rows of a side are one
    assert of(found, "hintplan_operator_state_rows", operator="aggregate_t", kind="aggregate") == 1
    assert of(found, "hintplan_operator_state_size_bytes", **join) > 0
    assert of(found, "hintplan_operator_state_file_operations_total", operation="writes", **join) > 0
    assert of(found, "hintplan_operator_state_ttl_seconds", state="leftState", **join) == 24 * 3600
    assert of(found, "hintplan_operator_state_ttl_seconds", state="rightState", **join) == 3 * 3600
    assert of(found, "hintplan_operator_state_ttl_seconds", state="groupAggregateState", kind="aggregate") == 0
    began = of(found, "hintplan_run_start_time_seconds")
    written = of(found, "hintplan_operator_state_oldest_write_time_seconds", **join)
    ended = of(found, "hintplan_batch_end_time_seconds", query="aggregate_t")
    assert began <= written <= ended
    assert of(found, "hintplan_batch_running_time_seconds", query="aggregate_t") >= 0


@pytest.mark.integration
def test_a_prometheus_as_the_example_sets_it_up_has_what_the_dashboard_and_the_alerts_ask(
    running: Run, tmp_path: Path
) -> None:
    with running_prometheus(tmp_path / "prometheus", running.metrics) as prometheus:
        shown = {where: prometheus.asked(_now(each)) for where, each, _ in expressions() if "plan=~" in each}
        alerts = prometheus.rules()
        (state,) = prometheus.asked('hintplan_operator_state_rows{operator="join_o_c"}')
    assert state["value"][1] == "4"
    assert state["metric"] | {"plan": "job", "kind": "join", "job": "hintplan"} == state["metric"]
    # All but what a job has of topics, lookups, functions and event time, or has seen none of.
    of_others = ("Cache", "Lookups", "Failures", "Time of the latest load", "Calls", "Counted besides")
    of_others += ("Files behind", "Offsets behind", "Starts", "Lag of event time", "Late rows", "Rows in open windows")
    of_others += ("Rows used", "Rows missed")
    assert [where for where, found in shown.items() if not found and not where.startswith(of_others)] == []
    assert {rule["health"] for rule in alerts.values()} == {"ok"}
    assert {rule["state"] for rule in alerts.values()} == {"inactive"}


def _now(expression: str) -> str:
    """As Grafana asks for the plan and all of its operators, over the last minute."""
    asked = expression.replace('"$plan"', '"job"').replace('"$operator"', '".*"')
    return re.sub(r"\$__(rate_interval|range|interval)", "1m", asked)


def test_a_collector_is_sent_the_same(running: Run) -> None:
    before = len(running.received.reports)
    running.received.wait_for(before + 2)
    sent, read = running.received.series(), running.scrape()
    join = tuple(sorted({"plan": "job", "query": "aggregate_t", "operator": "join_o_c", "kind": "join"}.items()))
    for name in ("rows_in", "rows_out", "state_rows"):
        suffix = "_total" if name.startswith("rows") else ""
        assert sent[f"hintplan.operator.{name}"][join] == read[f"hintplan_operator_{name}{suffix}", join]
    assert sent["hintplan.run.active"] == {(("plan", "job"),): 1}


def test_the_page_of_a_run_has_the_numbers_of_its_operators(running: Run) -> None:
    found = running.numbers()
    assert (found["plan"], found["phase"], found["failure"]) == ("job", "running", None)
    assert [query["query"] for query in found["queries"]] == ["aggregate_t", "sink_dropped"]
    assert found["queries"][0]["sinks"] == ["sink_shown", "sink_kept"]
    join = found["operators"]["join_o_c"]
    assert join["values"]["operator.rows_in"] == 6 + 2
    assert join["values"]["operator.state_rows"] == 2 + 2
    assert join["lines"]["state"]["text"].startswith("4 · ")
    with urlopen(running.page_of_run, timeout=30) as page:
        assert found["digest"] in page.read().decode()


def test_sparks_pages_call_work_after_plan_query_batch_and_operator(running: Run) -> None:
    descriptions = [found["description"] for found in running.page("jobs")]
    jobs = {each.split("\n")[0]: each for each in descriptions if each != JOB}
    # Of a multi-sink query each sink that runs jobs of its own has its name; print and files of text take what has come
    # to the driver.
    assert {"job · aggregate_t", "job · sink_dropped"} <= jobs.keys()
    assert "job · sink_kept" not in jobs
    assert all(re.search(r"^batch = \d+$", description, re.MULTILINE) for description in jobs.values())
    ended = [stage for stage in running.page("stages") if stage["status"] == "COMPLETE"]
    stages = {stage["description"].split("\n")[0] for stage in ended} - {JOB}
    assert stages == jobs.keys()
    executions = running.page("sql?details=true&planDescription=true&length=1000")
    assert {found["description"].split("\n")[0] for found in executions} - {JOB} <= jobs.keys()
    (batch,) = [found for found in executions if found["id"] == found.get("rootExecutionId", found["id"])
                and found["description"].startswith("job · aggregate_t") and "batch = 0" in found["description"]
                and "MapInArrow" in found["planDescription"]][:1]  # fmt: skip
    named = set(re.findall(r"Arguments: ((?:for )?\w+)\(", batch["planDescription"]))
    assert {"for join_o_c", "for aggregate_t"} <= named


def _is_hit(name: str, labels: Mapping[str, str]) -> bool:
    return name == "hintplan_operator_state_hits_total" and labels["state"] == "rightState"


def test_idle_batches_have_no_record(running: Run) -> None:
    batches = [each for each in running.records() if each["event"] == "batch" and each["sink"] == "sink_shown"]
    assert [each["batch"] for each in batches] == [0]
    (running.folder / "orders" / "empty.json").touch()
    found = running.wait_for_batches(2, "aggregate_t")
    assert of(found, "hintplan_batch_rows_in_total", query="aggregate_t") == 6 + 2
    add_rows(running.folder, "orders", [{"id": 6, "customer": "eve", "total": 10}])
    found = running.wait_for_batches(3, "aggregate_t")
    hits = {dict(labels)["age"]: value for (name, labels), value in found.items() if _is_hit(name, dict(labels))}
    assert sum(hits.values()) == 1  # the new order finds the customer that the first batch has stored
    assert of(found, "hintplan_operator_state_expired_hits_total", operator="join_o_c", state="rightState") == 0
    assert of(found, "hintplan_batch_rows_in_total", query="aggregate_t") == 6 + 2 + 1

    def told() -> bool:
        return len([each for each in running.records() if each.get("sink") == "sink_shown"]) >= 2

    wait_for(told, running.process)
    batches = [each for each in running.records() if each["event"] == "batch" and each["sink"] == "sink_shown"]
    assert [each["batch"] for each in batches] == [0, 2]


def test_at_the_end_a_collector_knows_all_and_that_it_is_the_end(running: Run) -> None:
    running.numbers()  # the page is open, so the run waits until it knows its end
    running.process.send_signal(signal.SIGTERM)
    seen = [running.numbers()]
    wait_for(lambda: seen.append(running.numbers()) or seen[-1]["over"], running.process)
    assert (seen[-1]["phase"], seen[-1]["failure"]) == ("stopped", None)
    assert running.process.wait(120) == 128 + signal.SIGTERM
    sent = running.received.series()
    assert sent["hintplan.run.active"] == {(("plan", "job"),): 0}
    orders = sum(len(file.read_text().splitlines()) for file in (running.folder / "orders").glob("*.json"))
    # The count of Germany, and of France if eve has ordered meanwhile, to two sinks; each order to the third.
    assert sum(sent["hintplan.sink.rows"].values()) == 2 * (1 + orders - len(ORDERS)) + orders
    *_, end = running.records()
    assert (end["event"], end["status"]) == ("end", "stopped")


def test_a_port_in_use_ends_a_run_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))  # a run that continues says so
    hintplan.dump(hintplan.compile_sql(SCRIPT, name="job"), tmp_path / "job.json")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run(tmp_path, "job.json", "--once", "--metrics", f"prometheus=:{port}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == [
        f"metrics cannot be served at 127.0.0.1:{port}: Address already in use",
        "  hint: give another port, such as --metrics prometheus=:0 for any free one",
    ]
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run(tmp_path, "job.json", "--once", "--page", str(port))
    assert f"--page cannot listen on 127.0.0.1 port {port}: Address already in use" in done.stderr.splitlines()
    wrong = run(tmp_path, "job.json", "--once", "--metrics", "prometheus=9090")
    assert (wrong.returncode, "'9090' is no [HOST]:PORT" in wrong.stderr) == (64, True)


def test_runs_of_a_program_are_counted_as_restarts_and_metrics_outlive_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    script = SCRIPT.replace("'path' = '", f"'path' = '{tmp_path}/")
    plan = hintplan.compile_sql(script, name="job")
    add_rows(tmp_path, "customers", [{"name": "ann", "country": "DE"}])
    add_rows(tmp_path, "orders", ORDERS)
    with hintplan.open_metrics("prometheus=:0") as metrics:
        for restarts in (0, 1):
            execution = hintplan.execute(
                plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True, metrics=metrics
            )
            assert execution.await_termination(180)
            found = scrape(metrics.exporters[0].place)
            assert of(found, "hintplan_run_restarts_total") == restarts
            # The second run finds nothing new, and what the first one has read was counted once.
            assert of(found, "hintplan_sink_rows_total", operator="sink_dropped") == 6
    with pytest.raises(RunError, match="metrics go to"):
        hintplan.open_metrics("graphite=:2003")


def test_jobs_of_a_batch_plan_are_measured_and_shown_under_their_names(spark: SparkSession, tmp_path: Path) -> None:
    script = f"""
        SET 'execution.runtime-mode' = 'batch';
        CREATE TABLE orders (id BIGINT, customer STRING, total BIGINT)
        WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/orders', 'format' = 'json');
        CREATE TABLE sums (customer STRING, total BIGINT)
        WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/sums', 'format' = 'json');
        INSERT INTO sums SELECT customer, SUM(total) FROM orders GROUP BY customer;"""
    add_rows(tmp_path, "orders", ORDERS)
    with hintplan.open_metrics("prometheus=:0") as metrics, hintplan.open_page("0", metrics=metrics) as page:
        plan = hintplan.compile_sql(script, name="sums")
        assert hintplan.execute(plan, spark, metrics=metrics).await_termination(180)
        found = scrape(metrics.exporters[0].place)
        with urlopen(f"{page.url}/data", timeout=30) as answer:
            numbers = json.load(answer)
    assert numbers["operators"]["sink_sums"]["lines"]["rows"]["text"] == "2"
    assert numbers["phase"] in ("running", "ended")
    assert of(found, "hintplan_sink_rows_total", operator="sink_sums") == 2
    assert of(found, "hintplan_job_duration_seconds_count", query="sink_sums") == 1
    assert not {name for name in names(found) if name.startswith("hintplan_batch_")}
    assert "sums · sink_sums" in _described(spark)


def _described(spark: SparkSession) -> list[str]:
    """What Spark knows jobs by."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(index) for index in range(jobs.size())]
    return [job.description().get() if job.description().isDefined() else "" for job in found]

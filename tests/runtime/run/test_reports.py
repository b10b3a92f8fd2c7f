"""Progress, root causes and what is said about them; no Spark session is needed."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from pyspark.sql import Row

from hintplan.plans.text.counts import human_bytes, human_duration
from hintplan.runtime.lookup.metrics import LOOKUP_METRICS, LookupCounters
from hintplan.runtime.operator import FOREVER
from hintplan.runtime.progress import (
    BatchProgress,
    EventTimeProgress,
    JobProgress,
    OperatorProgress,
    batch_progress,
)
from hintplan.runtime.run.report import JsonReport, LineReport, TableReport, end_of_event_time
from hintplan.runtime.run.supervised import Totals
from hintplan.runtime.spark.failure import root_cause

METRICS = {
    "rows_in": 5,
    "rows_out": 4,
    "state_rows": 70,
    "state_rows_delta": 3,
    "state_bytes": 900,
    "state_bytes_delta": -100,
    "oldest_write": 1_704_067_200_000,
}
OLDEST = 1_704_067_200_000


class Progress:
    """Spark's StreamingQueryProgress, as far as it is read."""

    batchId = 3
    timestamp = "2024-01-01T00:00:00.000Z"
    numInputRows = 5
    sources = ()
    durationMs = {"triggerExecution": 250, "addBatch": 200}  # noqa: RUF012

    def __init__(self, **observed: Row) -> None:
        self.observedMetrics = observed


def test_a_batch_in_which_all_partitions_report_gives_totals() -> None:
    progress = Progress(sink_r=Row(rows_out=2), join_a=Row(**METRICS, reports=2))
    found = batch_progress("sink_r", progress, {}, 2)
    assert (found.batch, found.rows_in, found.rows_out, found.duration_ms) == (3, 5, 2, 250)
    join = OperatorProgress(rows_in=5, rows_out=4, state_rows=70, state_bytes=900, oldest_write=OLDEST)
    assert found.operators == {"join_a": join}


def test_a_batch_in_which_some_partitions_report_changes_the_totals() -> None:
    before = {"join_a": OperatorProgress(state_rows=100, state_bytes=5000), "other": OperatorProgress(state_rows=1)}
    found = batch_progress("sink_r", Progress(join_a=Row(**METRICS, reports=1)), before, 2).operators
    assert (found["join_a"].state_rows, found["join_a"].state_bytes) == (103, 4900)
    assert found["other"].state_rows == 1


def test_a_batch_in_which_no_partition_reports_keeps_the_totals() -> None:
    nothing = Row(**dict.fromkeys(METRICS), reports=None)
    before = {"join_a": OperatorProgress(rows_in=9, state_rows=100, state_bytes=5000, oldest_write=OLDEST)}
    found = batch_progress("sink_r", Progress(join_a=nothing), before, 2).operators["join_a"]
    assert found == OperatorProgress(state_rows=100, state_bytes=5000, oldest_write=OLDEST)


def test_metrics_read_the_same_through_spark_connect() -> None:
    names = [*METRICS, "reports"]
    sent = Row(values=[*METRICS.values(), 2], schema={"type": "struct", "fields": [{"name": name} for name in names]})
    classic = batch_progress("s", Progress(join_a=Row(**METRICS, reports=2)), {}, 2)
    assert batch_progress("s", Progress(join_a=sent), {}, 2) == classic


BATCH = BatchProgress(
    sink="sink_r",
    batch=12,
    timestamp="2024-01-01T00:00:00.000Z",
    rows_in=12345,
    rows_out=67,
    duration_ms=1850,
    operators={"join_o_c": OperatorProgress(rows_in=12345, rows_out=67, state_rows=400_000, state_bytes=52_428_800)},
)
SUMMARY: dict[str, Any] = {"plan": "p", "batches": 1, "rows_in": 12345, "rows_out": 67, "duration_ms": 65_000}


def test_a_line_per_batch_says_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    report = LineReport()
    report.batch(BATCH)
    report.end("finished", SUMMARY)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "sink_r batch 12: 12,345 rows in · 67 rows out · 1.9 s · join_o_c 400,000 rows 50.0 MiB",
        "finished after 1 batch: 12,345 rows in · 67 rows out · 1 min 5 s",
    ]


def test_a_line_and_the_end_say_what_goes_by_event_time(capsys: pytest.CaptureFixture[str]) -> None:
    times = EventTimeProgress(watermark=19_000, held_by="watermark_o", late_rows=1, waiting_rows=2)
    timed = replace(BATCH, operators={"window_o": OperatorProgress(state_rows=2, event_time=times)})
    report = LineReport(once=True)
    report.batch(timed)
    report.end("finished", SUMMARY | {"event_time": {"window_o": asdict(times) | {"reached": 19_000}}})
    assert capsys.readouterr().err.splitlines() == [
        "sink_r batch 12: 12,345 rows in · 67 rows out · 1.9 s · window_o 2 rows 0 B "
        "watermark 1970-01-01 00:00:19 UTC by watermark_o 2 rows in open windows 1 late row",
        "finished after 1 batch: 12,345 rows in · 67 rows out · 1 min 5 s",
        "window_o: 2 rows in open windows, watermark 1970-01-01 00:00:19 UTC by watermark_o · --drain closes them",
    ]


@pytest.mark.parametrize(
    ("watermark", "held_by", "windows", "reached", "line"),
    [
        (19_000, "watermark_o", 0, 19_000, "0 rows in open windows, watermark 1970-01-01 00:00:19 UTC by watermark_o"),
        (19_000, None, 1, 19_000, "1 row in open windows, watermark 1970-01-01 00:00:19 UTC · --drain closes them"),
        (
            None,
            "watermark_o",
            3,
            None,
            "3 rows in open windows, no watermark yet from watermark_o · --drain closes them",
        ),
        (FOREVER, None, 0, 5_000, "all windows closed, watermark 1970-01-01 00:00:05 UTC before the end"),
        (FOREVER, "watermark_o", 0, None, "all windows closed"),
    ],
)
def test_the_end_of_a_run_says_up_to_when_windows_are_closed(
    watermark: int | None, held_by: str | None, windows: int, reached: int | None, line: str
) -> None:
    times = EventTimeProgress(watermark=watermark, held_by=held_by, waiting_rows=windows)
    summary = {"event_time": {"window_o": asdict(times) | {"reached": reached}}}
    assert [*end_of_event_time("finished", summary, once=True)] == [f"window_o: {line}"]
    for status, once in (("stopped", True), ("finished", False)):
        assert [*end_of_event_time(status, summary, once=once)] == [f"window_o: {line.partition(' · ')[0]}"]


def test_the_totals_of_a_run_keep_the_last_watermark_before_the_end_of_event_time() -> None:
    totals = Totals({"batches": 0, "rows_in": 0, "rows_out": 0})
    for watermark in (None, 5_000, FOREVER):
        times = EventTimeProgress(watermark=watermark)
        totals.add(replace(BATCH, operators={"window_o": OperatorProgress(event_time=times)}))
    assert (totals.reached, totals.event_time["window_o"].watermark) == ({"window_o": 5_000}, FOREVER)


def test_a_record_has_event_time_only_if_an_operator_goes_by_it() -> None:
    out = io.StringIO()
    times = EventTimeProgress(watermark=19_000, held_by="watermark_o", late_rows=1, waiting_rows=2)
    timed = {"join_o_c": OperatorProgress(), "window_o": OperatorProgress(event_time=times)}
    JsonReport(out).batch(replace(BATCH, operators=timed))
    operators = json.loads(out.getvalue())["operators"]
    assert "event_time" not in operators["join_o_c"]
    assert operators["window_o"]["event_time"] == {
        "watermark": 19_000, "held_by": "watermark_o", "split": None, "late_rows": 1, "waiting_rows": 2,
    }  # fmt: skip


def test_the_end_of_a_run_has_the_time_of_the_start_in_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    LineReport().end("finished", SUMMARY | {"spark_start_ms": 10_040})
    LineReport().end("finished", {"jobs": 2, "rows_out": 3, "duration_ms": 5_000, "spark_start_ms": 9_000})
    assert capsys.readouterr().err.splitlines() == [
        "finished after 1 batch: 12,345 rows in · 67 rows out · 1 min 15 s, of which 10.0 s for Spark to start",
        "finished after 2 jobs: 3 rows out · 14.0 s, of which 9.0 s for Spark to start",
    ]


def test_a_job_says_nothing_of_operators_that_got_no_rows(capsys: pytest.CaptureFixture[str]) -> None:
    asked = dict.fromkeys((name for name, _ in LOOKUP_METRICS), 0)
    job = JobProgress(
        sink="sink_r",
        timestamp="t",
        rows_out=0,
        duration_ms=900,
        lookups={"lookup_a": asked, "lookup_b": asked | {"lookups": 2}},
        functions={},
        cached={},
    )
    LineReport().job(job)
    assert capsys.readouterr().err == "sink_r: 0 rows out · 900 ms · lookup_b 2 lookups\n"


def test_idle_batches_have_no_line_until_state_expires(capsys: pytest.CaptureFixture[str]) -> None:
    report = LineReport()
    idle = replace(BATCH, batch=13, rows_in=0, rows_out=0)
    expired = replace(idle, batch=15, operators={"join_o_c": OperatorProgress(state_rows=399_999)})
    for batch in (BATCH, idle, replace(idle, batch=14), expired):
        report.batch(batch)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["sink_r batch 12", "sink_r batch 15"]


def test_idle_batches_have_no_record_until_state_expires_or_something_is_asked() -> None:
    out = io.StringIO()
    report = JsonReport(out)
    idle = replace(BATCH, batch=13, rows_in=0, rows_out=0)
    expired = replace(idle, batch=15, operators={"join_o_c": OperatorProgress(state_rows=399_999)})
    nothing = LookupCounters(numCachedRecords=7)
    names = [name for name, _ in LOOKUP_METRICS]
    looked = replace(expired, batch=16, lookups={"lookup_p": dict(zip(names, nothing.values(), strict=True))})
    failed = replace(looked, batch=17, lookups={"lookup_p": {**looked.lookups["lookup_p"], "numLoadFailures": 1}})
    for batch in (replace(idle, batch=11), BATCH, idle, replace(idle, batch=14), expired, looked, failed):
        report.batch(batch)
    assert [json.loads(line)["batch"] for line in out.getvalue().splitlines()] == [12, 15, 17]


def test_json_records_stand_on_a_line_each() -> None:
    out = io.StringIO()
    report = JsonReport(out)
    report.batch(BATCH)
    report.end("stopped", SUMMARY)
    batch, end = [json.loads(line) for line in out.getvalue().splitlines()]
    assert batch["event"] == "batch"
    assert batch["operators"]["join_o_c"]["state_bytes"] == 52_428_800
    assert end == {"event": "end", "status": "stopped", **SUMMARY}


def test_the_table_on_a_terminal_shows_sinks_and_their_operators(capsys: pytest.CaptureFixture[str]) -> None:
    with TableReport() as report:
        report.batch(BATCH)
    shown = capsys.readouterr().err
    assert "rows in" in shown
    assert "12,345" in shown
    assert "join_o_c" in shown
    assert "50.0 MiB" in shown


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3_355_443, "3.2 MiB"), (5 * 2**40, "5.0 TiB")],
)
def test_sizes_are_in_units_that_people_read(size: int, text: str) -> None:
    assert human_bytes(size) == text


@pytest.mark.parametrize(("ms", "text"), [(999, "999 ms"), (1000, "1.0 s"), (59_999, "60.0 s"), (61_000, "1 min 1 s")])
def test_times_are_in_units_that_people_read(ms: int, text: str) -> None:
    assert human_duration(ms) == text


PYTHON_IN_JAVA = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted SQLSTATE: XXKST
=== Streaming Query ===
org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
Traceback (most recent call last):
  File "process.py", line 9, in _load
    raise RunError(
hintplan.plans.errors.RunError: the state of operator join_a has format 2
  hint: use a new checkpoint
 SQLSTATE: 39000
\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""

JAVA_ONLY = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted SQLSTATE: XXKST
org.apache.spark.SparkException: Job aborted
\tat a.b.C(D.scala:1)
Caused by: java.io.IOException: first
\tat a.b.C(D.scala:1)
Caused by: java.io.FileNotFoundException: /data/x (No such file or directory)
\tat java.base/java.io.FileInputStream.open0(Native Method)
\t... 3 more
"""


def test_the_innermost_python_error_is_the_root_cause() -> None:
    expected = "RunError: the state of operator join_a has format 2\n  hint: use a new checkpoint"
    assert root_cause(RuntimeError(PYTHON_IN_JAVA)) == expected


def test_the_last_java_cause_is_the_root_cause_without_python() -> None:
    assert root_cause(RuntimeError(JAVA_ONLY)) == "FileNotFoundException: /data/x (No such file or directory)"


def test_an_error_without_causes_speaks_for_itself() -> None:
    assert root_cause(RuntimeError("[PATH_NOT_FOUND] Path does not exist\n\nJVM stacktrace:\nx")) == (
        "[PATH_NOT_FOUND] Path does not exist"
    )

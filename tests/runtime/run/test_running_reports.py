"""What is said of batches at work, of stuck ones, of what is behind and of requests, and what is not."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from hintplan.runtime.progress import BatchProgress, OperatorProgress
from hintplan.runtime.run.report import JsonReport, LineReport, TableReport
from hintplan.runtime.run.running_text import running_text, stuck_text
from hintplan.runtime.running import RunningBatch, RunningStage, RunningTask, StuckBatch
from hintplan.runtime.sources import SourceProgress

PACKED = RunningStage(stage=30, operators=("scan_o",), tasks=2, done=2, failed=0, rows_read=1200, waiting=())
JOINED = RunningStage(
    stage=31,
    operators=("join_o_c",),
    tasks=4,
    done=1,
    failed=2,
    rows_read=0,
    waiting=(RunningTask(host="worker-2", running_ms=115_000), RunningTask(host="worker-1", running_ms=9_000)),
)
RUNNING = RunningBatch(
    sinks=("sink_a", "sink_b"),
    batch=12,
    running_ms=125_000,
    stages=(PACKED, JOINED),
    last_failure="OSError: no route to host (on worker-1)",
    page="http://etl-1:4040/stages/stage/?id=31&attempt=0",
)
STUCK = StuckBatch(batch=RUNNING, usual_ms=1_900, quiet_ms=115_000)
REMOTE = RunningBatch(sinks=("sink_a",), batch=12, running_ms=125_000)
OPERATOR = OperatorProgress(
    rows_in=5, state_rows=1, state_bytes=10, file_operations={"reads": 4, "writes": 4, "lists": 1, "deletes": 0}
)
BEHIND = SourceProgress(source="FileStreamSource[file:/in]", rows_in=5, metrics={"numFilesOutstanding": "12"})
BATCH = BatchProgress(
    sink="sink_a", batch=12, timestamp="t", rows_in=5, rows_out=2, duration_ms=900,
    operators={"join_o_c": OPERATOR}, sources=(BEHIND,),
)  # fmt: skip


def test_a_batch_at_work_says_how_far_it_is_and_what_failed() -> None:
    assert running_text(RUNNING) == (
        "sink_a and sink_b batch 12 at work for 2 min 5 s: 3 of 6 tasks so far · join_o_c 1 of 4 · 1,200 rows read · "
        "2 attempts failed: OSError: no route to host (on worker-1)"
    )


def test_operators_that_run_in_several_stages_are_told_once() -> None:
    again = replace(JOINED, stage=33, tasks=6, done=2, failed=0)
    other = replace(JOINED, stage=35, operators=("aggregate_t",), tasks=2, done=0, failed=0)
    ended = replace(JOINED, stage=36, operators=("rank_t",), tasks=2, done=2, failed=0)
    text = running_text(replace(RUNNING, stages=(PACKED, JOINED, again, other, ended)))
    assert "7 of 16 tasks so far · join_o_c 3 of 10 · aggregate_t 0 of 2 · 1,200 rows read" in text
    assert text.count("join_o_c") == 1
    assert "rank_t" not in text


def test_a_stuck_batch_says_where_since_when_and_where_to_look() -> None:
    assert list(stuck_text(STUCK)) == [
        "sink_a and sink_b batch 12 seems to be stuck: at work for 2 min 5 s, batches before took 1.9 s",
        "  no task has ended for 1 min 55 s",
        "  join_o_c waits: 3 of 4 tasks in stage 31, at work on worker-1 and worker-2, the oldest for 1 min 55 s",
        "  2 attempts failed: OSError: no route to host (on worker-1)",
        "  look at http://etl-1:4040/stages/stage/?id=31&attempt=0: Thread Dump of the executor shows why a task waits",
    ]


def test_without_pages_of_spark_it_is_said_how_to_have_them() -> None:
    *_, last = stuck_text(replace(STUCK, batch=replace(RUNNING, page=None)))
    assert last == "  look at Spark's pages, which --conf spark.ui.enabled=true has for a local run"


def test_on_spark_connect_nothing_is_said_of_tasks() -> None:
    assert running_text(REMOTE) == "sink_a batch 12 at work for 2 min 5 s"
    assert list(stuck_text(StuckBatch(batch=REMOTE, usual_ms=1_900, quiet_ms=None))) == [
        "sink_a batch 12 seems to be stuck: at work for 2 min 5 s, batches before took 1.9 s"
    ]


def test_rows_that_spark_does_not_count_are_not_said_to_be_read() -> None:
    some = replace(RUNNING, stages=(PACKED, replace(JOINED, rows_read=None)), last_failure=None)
    assert some.rows_read is None
    assert "rows read" not in running_text(some)


def test_json_has_the_same_numbers_and_null_for_what_is_not_known() -> None:
    out = io.StringIO()
    report = JsonReport(out)
    report.running(RUNNING)
    report.stuck(STUCK)
    report.running(REMOTE)
    report.batch(BATCH)
    running, stuck, remote, batch = map(json.loads, out.getvalue().splitlines())
    assert (running["event"], running["tasks"], running["tasks_done"], running["rows_read"]) == ("running", 6, 3, 1200)
    assert running["stages"][1] == {
        "stage": 31, "operators": ["join_o_c"], "tasks": 4, "tasks_done": 1, "attempts_failed": 2,
        "waiting": [{"host": "worker-2", "running_ms": 115_000}, {"host": "worker-1", "running_ms": 9_000}],
    }  # fmt: skip
    assert stuck == running | {"event": "stuck", "usual_ms": 1_900, "quiet_ms": 115_000, "page": RUNNING.page}
    assert (remote["batch"], remote["tasks"], remote["stages"], remote["rows_read"]) == (12, None, None, None)
    assert batch["operators"]["join_o_c"]["file_operations"]["writes"] == 4
    assert batch["sources"][0]["metrics"] == {"numFilesOutstanding": "12"}


@pytest.mark.parametrize("requests", [True, False])
def test_lines_name_what_is_behind_and_requests_of_a_checkpoint_behind_a_url(
    capsys: pytest.CaptureFixture[str], requests: bool
) -> None:
    report = LineReport(requests=requests)
    for number in (10, 11, 12):
        report.batch(replace(BATCH, batch=number))
    report.batch(replace(BATCH, batch=13, sources=()))
    *_, behind, level = capsys.readouterr().err.splitlines()
    asked = " · state files: 4 reads, 4 writes, 1 list" if requests else ""
    state = "5 rows in · 2 rows out · 900 ms · join_o_c 1 row 10 B"
    assert behind == f"sink_a batch 12: {state} · file:/in is behind: 12 files{asked}"
    assert level == f"sink_a batch 13: {state}{asked}"


def test_the_table_shows_a_batch_at_work_until_it_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    # Where there is no terminal, the table is drawn once, at the end.
    with TableReport() as report:
        report.running(RUNNING)
    assert "sink_a and sink_b batch 12 at work" in capsys.readouterr().err
    with TableReport() as report:
        report.running(RUNNING)
        report.stuck(STUCK)
        report.batch(BATCH)
    shown = capsys.readouterr().err
    assert "seems to be stuck" in shown
    assert "3 of 6 tasks so far" not in shown

"""What a run says of its lookups: per batch, in total, as text and as JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

import plans
from runtime.lookup.metrics import LOOKUP_METRICS
from runtime.progress import BatchProgress, OperatorProgress, batch_progress, total_lookups
from runtime.run.report import JsonReport, LineReport, TableReport
from tests.connectors.lookup.test_lookups_on_spark import job, orders
from tests.plans.in_process import Done, hintplan

COUNTED = dict.fromkeys((name for name, _ in LOOKUP_METRICS), 0) | {
    "lookups": 1000, "hitCount": 900, "missCount": 100, "loadCount": 100, "numLoadFailures": 1, "retries": 2,
    "inFlightMax": 10, "latestLoadTime": 5, "numCachedRecords": 100, "numCachedBytes": 2048,
}  # fmt: skip
BATCH = BatchProgress(
    sink="sink_r", batch=3, timestamp="2024-01-01T00:00:00.000Z", rows_in=1000, rows_out=990, duration_ms=100,
    operators={}, lookups={"lookup_r": COUNTED},
)  # fmt: skip
TEXT = (
    "1,000 lookups · 90.0 % hits · 100 loads · latest in 5 ms · 1 failure · 2 retries · 10 at once · "
    "100 cached, 2.0 KiB"
)


class Progress:
    """Spark's progress of one batch, as far as it is read."""

    batchId = 3
    timestamp = BATCH.timestamp
    numInputRows = 1000
    sources = ()
    durationMs = {"triggerExecution": 100}  # noqa: RUF012

    def __init__(self, **observed: Any) -> None:
        self.observedMetrics = {"sink_r": Row(rows_out=990), **observed}


def test_what_a_lookup_observed_is_in_the_record_of_the_batch() -> None:
    assert batch_progress("sink_r", Progress(lookup_r=Row(**COUNTED)), {}, 2) == BATCH
    nothing = Row(**dict.fromkeys(COUNTED))
    assert batch_progress("sink_r", Progress(lookup_r=nothing), {}, 2).lookups["lookup_r"]["lookups"] == 0


def test_a_deferred_lookup_reports_its_state_too() -> None:
    state = {
        "rows_in": 5, "rows_out": 4, "state_rows": 7, "state_rows_delta": 7, "state_bytes": 90, "state_bytes_delta": 90,
        "oldest_write": 1_700,
    }  # fmt: skip
    found = batch_progress("sink_r", Progress(lookup_r=Row(**state, reports=2, **COUNTED)), {}, 2)
    assert found.operators["lookup_r"] == OperatorProgress(
        rows_in=5, rows_out=4, state_rows=7, state_bytes=90, oldest_write=1_700
    )
    assert found.lookups["lookup_r"] == COUNTED


def test_gauges_stay_through_a_batch_that_says_nothing_of_them() -> None:
    idle = Row(**dict.fromkeys(COUNTED, 0))
    found = batch_progress("sink_r", Progress(lookup_r=idle), {}, 2, {"lookup_r": COUNTED}).lookups["lookup_r"]
    assert (found["latestLoadTime"], found["numCachedRecords"], found["numCachedBytes"]) == (5, 100, 2048)
    assert (found["lookups"], found["inFlightMax"]) == (0, 0)


def test_counts_add_up_over_batches_and_gauges_do_not() -> None:
    second = COUNTED | {"lookups": 10, "hitCount": 10, "inFlightMax": 3, "numCachedRecords": 90}
    total = total_lookups(total_lookups({}, COUNTED), second)
    assert (total["lookups"], total["hitCount"], total["loadCount"]) == (1010, 910, 200)
    assert (total["inFlightMax"], total["numCachedRecords"], total["latestLoadTime"]) == (10, 90, 5)


def test_lines_table_and_summary_show_the_hit_rate(capsys: pytest.CaptureFixture[str]) -> None:
    summary = {
        "plan": "p", "batches": 1, "rows_in": 1000, "rows_out": 990, "duration_ms": 100,
        "lookups": {"sink_r": {"lookup_r": COUNTED}},
    }  # fmt: skip
    report = LineReport()
    report.batch(BATCH)
    report.end("finished", summary)
    first, _, last = capsys.readouterr().err.splitlines()
    assert first == f"sink_r batch 3: 1,000 rows in · 990 rows out · 100 ms · lookup_r {TEXT}"
    assert last == f"sink_r lookup_r: {TEXT}"
    with TableReport() as table:
        table.batch(BATCH)
    shown = capsys.readouterr().err
    assert "lookup_r" in shown
    assert "90.0 % hits" in shown
    out = io.StringIO()
    JsonReport(out).batch(BATCH)
    assert json.loads(out.getvalue())["lookups"]["lookup_r"] == COUNTED


def run(directory: Path, plan: plans.Plan, *arguments: str) -> Done:
    plans.dump(plan, directory / "plan.json")
    return hintplan("run", "plan.json", "--once", *arguments, folder=directory)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_class_runs_only_if_its_module_is_allowed(tmp_path: Path) -> None:
    orders(tmp_path, (1, "EUR"))
    done = run(tmp_path, job(tmp_path))
    assert done.returncode == 1
    assert "module tests.connectors.lookup.rates is not allowed" in done.stderr
    assert "--allow-module tests.connectors.lookup.rates" in done.stderr
    done = run(tmp_path, job(tmp_path), "--allow-module", "tests.connectors.lookup.rates")
    assert done.returncode == 0, done.stderr
    assert "lookup_r: 1 lookup · 1 load" in done.stderr

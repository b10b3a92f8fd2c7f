"""What a run says of calls of functions: per batch, in total, as text and as JSON."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from pyspark.sql import Row

from runtime.progress import BatchProgress, batch_progress, total_functions
from runtime.run.report import JsonReport, LineReport, TableReport

COUNTED = {"calls": 1012, "retries": 2, "failures": 3, "inFlightMax": 10, "rowsOut": 3000}
TEXT = "1,012 calls · 3,000 rows out · 3 failures · 2 retries · 10 at once"
BATCH = BatchProgress(
    sink="sink_r", batch=3, timestamp="2024-01-01T00:00:00.000Z", rows_in=1000, rows_out=990, duration_ms=100,
    operators={}, functions={"correlate_f": COUNTED},
)  # fmt: skip


class Progress:
    """Spark's progress of one batch, as far as it is read."""

    batchId = 3
    timestamp = BATCH.timestamp
    numInputRows = 1000
    sources = ()
    durationMs = {"triggerExecution": 100}  # noqa: RUF012

    def __init__(self, **observed: Any) -> None:
        self.observedMetrics = {"sink_r": Row(rows_out=990), **observed}


def test_what_calls_observed_is_in_the_record_of_the_batch() -> None:
    assert batch_progress("sink_r", Progress(correlate_f=Row(**COUNTED)), {}, 2) == BATCH
    nothing = Row(**dict.fromkeys(COUNTED))
    found = batch_progress("sink_r", Progress(correlate_f=nothing), {}, 2)
    assert found.functions["correlate_f"] == dict.fromkeys(COUNTED, 0)


def test_counts_add_up_over_batches_and_of_calls_in_flight_the_most_count() -> None:
    total = total_functions(total_functions({}, COUNTED), COUNTED | {"calls": 8, "inFlightMax": 4})
    assert total == {"calls": 1020, "retries": 4, "failures": 6, "inFlightMax": 10, "rowsOut": 6000}


def test_lines_table_summary_and_records_show_the_calls(capsys: pytest.CaptureFixture[str]) -> None:
    summary = {
        "plan": "p", "batches": 1, "rows_in": 1000, "rows_out": 990, "duration_ms": 100,
        "functions": {"sink_r": {"correlate_f": COUNTED}},
    }  # fmt: skip
    report = LineReport()
    report.batch(BATCH)
    report.end("finished", summary)
    first, _, last = capsys.readouterr().err.splitlines()
    assert first == f"sink_r batch 3: 1,000 rows in · 990 rows out · 100 ms · correlate_f {TEXT}"
    assert last == f"sink_r correlate_f: {TEXT}"
    with TableReport() as table:
        table.batch(BATCH)
    shown = capsys.readouterr().err
    assert "correlate_f" in shown
    assert "1,012 calls" in shown
    out = io.StringIO()
    JsonReport(out).batch(BATCH)
    assert json.loads(out.getvalue())["functions"] == {"correlate_f": COUNTED}

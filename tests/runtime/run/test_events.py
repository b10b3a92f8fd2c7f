"""The events of ``hintplan run --json`` have the fields that docs/operations.md says they have."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hintplan.runtime.checkpoint.lease import Waited
from hintplan.runtime.checkpoint.lock_owner import ourselves
from hintplan.runtime.progress import BatchProgress, JobProgress
from hintplan.runtime.run.report import JsonReport
from hintplan.runtime.running import PlanEdit, Restart, RunningBatch, StuckBatch

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
AT_WORK = RunningBatch(sinks=("sink_r",), batch=1, running_ms=5000, stages=())
WAITED = Waited(text="checkpoint c is held", owner=ourselves(None), epoch=1, seconds=60.0)
BATCH = BatchProgress(sink="r", batch=1, timestamp="", rows_in=1, rows_out=1, duration_ms=1, operators={})
JOB = JobProgress(sink="r", timestamp="", rows_out=1, duration_ms=1, lookups={}, functions={}, cached={})
TOLD: dict[str, Callable[[JsonReport], None]] = {
    "waiting": lambda report: report.waiting(WAITED),
    "batch": lambda report: report.batch(BATCH),
    "running": lambda report: report.running(AT_WORK),
    "stuck": lambda report: report.stuck(StuckBatch(batch=AT_WORK, usual_ms=None, quiet_ms=None)),
    "job": lambda report: report.job(JOB),
    "edit": lambda report: report.edit(PlanEdit(file="paid.json", digest="9f2c51e07ab38d64")),
    "restart": lambda report: report.restart(Restart(attempt=1, attempts=2, delay_ms=1, error="away")),
}


def documented() -> dict[str, set[str]]:
    """The fields of each event, by the table; what stands in parentheses is within a field, or a value."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    fields = {name: re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", text)) for name, text in rows}
    fields["stuck"] = [*(name for name in fields["stuck"] if name != "running"), *fields["running"]]
    return {name: set(found) for name, found in fields.items()}


@pytest.mark.parametrize("event", TOLD)
def test_an_event_has_the_fields_that_are_documented(event: str) -> None:
    out = io.StringIO()
    TOLD[event](JsonReport(out))
    told: dict[str, Any] = json.loads(out.getvalue())
    assert told.pop("event") == event
    assert told.keys() == documented()[event]


def test_every_event_is_documented() -> None:
    methods = {name for name in vars(JsonReport) if not name.startswith("_") and name != "pace"}
    assert methods == {*TOLD, "end"} == documented().keys()

"""The progress output of ``hintplan run``: a line per batch or job, a table on a terminal, or JSON for scripts.

Rows of print sinks own stdout. Lines and table go to stderr. JSON goes to stdout, and then print sinks move to stderr.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TextIO

from hintplan.plans.evidence.ages import pairs
from hintplan.plans.evidence.uses import Uses
from hintplan.plans.text.counts import human_bytes, human_duration
from hintplan.plans.text.escapes import clean
from hintplan.plans.text.terminal import print_message
from hintplan.runtime.checkpoint.lease import Waited
from hintplan.runtime.engine.watermarks import watermark_text
from hintplan.runtime.lookup.metrics import GAUGES
from hintplan.runtime.operator import FOREVER
from hintplan.runtime.progress import (
    BatchProgress,
    CachedProgress,
    EventTimeProgress,
    JobProgress,
    OperatorProgress,
)
from hintplan.runtime.run.running_text import (
    restart_text,
    running_json,
    running_text,
    stuck_json,
    stuck_text,
    waiting_json,
)
from hintplan.runtime.running import PlanEdit, Restart, RunningBatch, StuckBatch
from hintplan.runtime.sources import Behind
from hintplan.runtime.storage.operations import OPERATIONS

if TYPE_CHECKING:
    from rich.console import Group


class RunReport(Protocol):
    """Receives each batch of a stream or job of a batch plan, long batches in progress, and the end of the run.

    ``pace`` is the time in seconds between two reports on the same batch in progress. ``status`` is finished, stopped
    or failed.
    """

    pace: ClassVar[float]

    def batch(self, batch: BatchProgress) -> None: ...

    def running(self, batch: RunningBatch) -> None: ...

    def stuck(self, stuck: StuckBatch) -> None: ...

    def job(self, job: JobProgress) -> None: ...

    def waiting(self, waited: Waited) -> None: ...

    def restart(self, restart: Restart) -> None: ...

    def edit(self, edit: PlanEdit) -> None: ...

    def end(self, status: str, summary: Mapping[str, Any]) -> None: ...


@contextmanager
def open_report(*, as_json: bool, requests: bool = False, once: bool = False) -> Iterator[RunReport]:
    """Provide the report that fits the output device, for a run that may process its input ``once``.

    With ``requests``, the report includes the file operations of state.
    """
    if as_json:
        out = sys.stdout
        with redirect_stdout(sys.stderr):
            yield JsonReport(out)
    elif sys.stderr.isatty():
        with TableReport(requests=requests, once=once) as report:
            yield report
    else:
        yield LineReport(requests=requests, once=once)


class _Idle:
    """Detects batches without activity: no rows, lookups or calls, and an unchanged number of rows in state."""

    def __init__(self) -> None:
        self._states: dict[str, dict[str, int]] = {}

    def __call__(self, batch: BatchProgress) -> bool:
        kept = {name: progress.state_rows for name, progress in batch.operators.items()}
        same = self._states.get(batch.sink, kept) == kept
        self._states[batch.sink] = kept
        lookups = (progress[name] for progress in batch.lookups.values() for name in progress if name not in GAUGES)
        called = (progress["calls"] for progress in batch.functions.values())
        return same and not any((batch.rows_in, batch.rows_out, *lookups, *called))


class JsonReport:
    """One JSON object per line: ``{"event": "batch", ...}`` or ``"job"``, and at the end ``{"event": "end", ...}``.

    A long batch has ``"running"`` and ``"stuck"`` events before it ends; a batch without activity has no line. A run
    that waits for another run has a ``"waiting"`` event, and a restart has a ``"restart"`` event. An edit of the plan
    has an ``"edit"`` event.
    """

    pace: ClassVar[float] = 10.0

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._idle = _Idle()

    def batch(self, batch: BatchProgress) -> None:
        if self._idle(batch):
            return
        record = asdict(batch)
        for name, operator in record["operators"].items():
            time = batch.operators[name].event_time
            del operator["event_time"]
            if time is not None:
                operator["event_time"] = time.as_dict()
            del operator["uses"]
            used = reduce(Uses.__add__, batch.operators[name].uses.values(), Uses())
            operator |= {key: pairs(ages) for key, ages in (("hits", used.hits), ("misses", used.misses)) if any(ages)}
        self._print({"event": "batch", **record})

    def running(self, batch: RunningBatch) -> None:
        self._print({"event": "running", **running_json(batch)})

    def stuck(self, stuck: StuckBatch) -> None:
        self._print({"event": "stuck", **stuck_json(stuck)})

    def job(self, job: JobProgress) -> None:
        self._print({"event": "job", **asdict(job)})

    def waiting(self, waited: Waited) -> None:
        self._print({"event": "waiting", **waiting_json(waited)})

    def restart(self, restart: Restart) -> None:
        self._print({"event": "restart", **asdict(restart)})

    def edit(self, edit: PlanEdit) -> None:
        self._print({"event": "edit", **asdict(edit)})

    def end(self, status: str, summary: Mapping[str, Any]) -> None:
        self._print({"event": "end", "status": status, **summary})

    def _print(self, value: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(value) + "\n")
        self._out.flush()


class LineReport:
    """One line on stderr for each batch with activity."""

    pace: ClassVar[float] = 10.0

    def __init__(self, *, requests: bool = False, once: bool = False) -> None:
        self._requests = requests
        self._idle, self._behind, self._once = _Idle(), Behind(once=once), once

    def batch(self, batch: BatchProgress) -> None:
        behind = self._behind(batch.sink, batch.sources)
        if self._idle(batch):
            return
        states = [
            " ".join(
                [
                    name,
                    row_count_text(metrics.state_rows),
                    human_bytes(metrics.state_bytes),
                    *counts_text(metrics),
                    *event_time_text(metrics.event_time),
                ]
            )
            for name, metrics in batch.operators.items()
        ]
        states += behind
        states += [requests_text(batch.operators.values())] if self._requests and batch.operators else []
        states += [f"{name} {lookup_text(metrics)}" for name, metrics in batch.lookups.items() if any(metrics.values())]
        states += [
            f"{name} {function_text(metrics)}" for name, metrics in batch.functions.items() if any(metrics.values())
        ]
        flow = " · ".join(
            (
                row_count_text(batch.rows_in, "in"),
                row_count_text(batch.rows_out, "out"),
                human_duration(batch.duration_ms),
            )
        )
        print_message(f"{batch.sink} batch {batch.batch}: {' · '.join([flow, *states])}")

    def running(self, batch: RunningBatch) -> None:
        print_message(running_text(batch))

    def stuck(self, stuck: StuckBatch) -> None:
        for line in stuck_text(stuck):
            print_message(line)

    def job(self, job: JobProgress) -> None:
        parts = [row_count_text(job.rows_out, "out"), human_duration(job.duration_ms)]
        parts += [f"{name} {lookup_text(metrics)}" for name, metrics in job.lookups.items() if any(metrics.values())]
        parts += [
            f"{name} {function_text(metrics)}" for name, metrics in job.functions.items() if any(metrics.values())
        ]
        parts += [f"{name} {cached_text(metrics)}" for name, metrics in job.cached.items()]
        print_message(f"{job.sink}: {' · '.join(parts)}")

    def waiting(self, waited: Waited) -> None:
        print_message(waited.text)

    def restart(self, restart: Restart) -> None:
        for line in restart_text(restart):
            print_message(line)

    def edit(self, edit: PlanEdit) -> None:
        for line in edit.text.splitlines():
            print_message(line)

    def end(self, status: str, summary: Mapping[str, Any]) -> None:
        _say_end(status, summary, once=self._once)


class TableReport:
    """A table on stderr that is redrawn in place, with rows for sinks and stateful operators.

    Lookups and calls, sources that are behind, and batches in progress are listed below it.
    """

    pace: ClassVar[float] = 5.0

    def __init__(self, *, requests: bool = False, once: bool = False) -> None:
        from rich.console import Console
        from rich.live import Live

        self._batches: dict[str, BatchProgress] = {}
        self._jobs: list[JobProgress] = []
        self._running: dict[str, str] = {}
        self._requests = requests
        self._behind, self._lags = Behind(once=once), dict[str, list[str]]()
        self._once = once
        # If stdout is the same terminal, rows of print sinks appear above the table. Otherwise they bypass it.
        shared = sys.stdout.isatty()
        console = Console(file=sys.stderr)
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=shared, redirect_stderr=False)

    def __enter__(self) -> TableReport:
        return self

    def __exit__(self, *details: object) -> None:
        self._live.stop()

    def batch(self, batch: BatchProgress) -> None:
        self._batches[batch.sink] = batch
        self._lags[batch.sink] = self._behind(batch.sink, batch.sources)
        self._running.pop(batch.sink, None)
        self._draw(self._table())

    def running(self, batch: RunningBatch) -> None:
        self._running[batch.sinks[0]] = running_text(batch)
        self._draw(self._table())

    def stuck(self, stuck: StuckBatch) -> None:
        self._above(stuck_text(stuck))

    def _draw(self, table: Group) -> None:
        """Show ``table`` in place of the previous one.

        The display starts with the first table, so a refused run shows none.
        """
        self._live.start()
        self._live.update(table, refresh=True)

    def _above(self, lines: Iterable[str]) -> None:
        """Print lines above the table."""
        from rich.text import Text

        for line in lines:
            self._live.console.print(Text(clean(line)))

    def waiting(self, waited: Waited) -> None:
        self._above((waited.text,))

    def restart(self, restart: Restart) -> None:
        self._running.clear()
        self._above(restart_text(restart))

    def edit(self, edit: PlanEdit) -> None:
        self._running.clear()
        self._above(edit.text.splitlines())

    def job(self, job: JobProgress) -> None:
        self._jobs.append(job)
        self._draw(self._job_table())

    def end(self, status: str, summary: Mapping[str, Any]) -> None:
        self._live.stop()
        _say_end(status, summary, once=self._once)

    def _table(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
        table.add_column("")
        for heading in ("batch", "rows in", "rows out", "time", "state rows", "state"):
            table.add_column(heading, justify="right")
        for batch in self._batches.values():
            cells = (str(batch.batch), f"{batch.rows_in:,}", f"{batch.rows_out:,}", human_duration(batch.duration_ms))
            table.add_row(Text(batch.sink, style="bold"), *cells)
            for name, operator in batch.operators.items():
                flow = ("", f"{operator.rows_in:,}", f"{operator.rows_out:,}", "")
                table.add_row(Text(f"  {name}"), *flow, f"{operator.state_rows:,}", human_bytes(operator.state_bytes))
        batches = self._batches.values()
        counted = [f"  {name}   {' '.join(counts_text(operator))}" for name, operator in _counting(batches)]
        counted += [
            f"  {name}   {' '.join(event_time_text(operator.event_time))}"
            for batch in batches
            for name, operator in batch.operators.items()
            if operator.event_time is not None
        ]
        counted += [f"  {lag}" for batch in batches for lag in self._lags[batch.sink]]
        if self._requests:
            counted += [
                f"  {progress.sink}   {requests_text(progress.operators.values())}"
                for progress in batches
                if progress.operators
            ]
        below = [Text(clean(line)) for line in (*counted, *_said(batches), *self._running.values())]
        return Group(table, *below) if batches else Group(*below)

    def _job_table(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
        table.add_column("")
        for heading in ("rows out", "time"):
            table.add_column(heading, justify="right")
        table.add_column("cached results")
        for job in self._jobs:
            cached = " · ".join(f"{name} {cached_text(result)}" for name, result in job.cached.items())
            row = (f"{job.rows_out:,}", human_duration(job.duration_ms), Text(cached))
            table.add_row(Text(job.sink, style="bold"), *row)
        return Group(table, *map(Text, _said(self._jobs)))


def counts_text(operator: OperatorProgress) -> list[str]:
    """Return the additional counts of an operator as text.

    >>> counts_text(OperatorProgress(counts={"rows_beyond": 1200, "rows_passed_over": 0}))
    ['1,200 rows beyond']
    >>> counts_text(OperatorProgress(counts={"rows_beyond": 1}))
    ['1 row beyond']
    """
    named = {name: name.replace("_", " ") for name in operator.counts}
    return [
        f"{count:,} {named[name].replace('rows ', 'row ', 1) if count == 1 else named[name]}"
        for name, count in operator.counts.items()
        if count
    ]


def event_time_text(time: EventTimeProgress | None) -> list[str]:
    """Return the event time of an operator as text; none if it does not go by the watermark.

    >>> event_time_text(EventTimeProgress(watermark=1_700_000_000_000, held_by="watermark_bid", waiting_rows=2))
    ['watermark 2023-11-14 22:13:20 UTC by watermark_bid', '2 rows in open windows']
    >>> event_time_text(EventTimeProgress(held_by="watermark_bid", late_rows=1))
    ['no watermark yet from watermark_bid', '1 late row']
    >>> event_time_text(EventTimeProgress(watermark=1_700_000_000_000, held_by="watermark_bid", split="bids/3"))
    ['watermark 2023-11-14 22:13:20 UTC by bids/3 of watermark_bid']
    >>> event_time_text(EventTimeProgress(by_clock=True, waiting_rows=2))
    ['2 rows in open windows']
    """
    if time is None:
        return []
    counted = [_rows_waiting(time.waiting_rows), _counted(time.late_rows, "late row")]
    if time.by_clock:
        return [*filter(None, counted)]
    return [_watermark(time.watermark, time.held_by, time.split), *filter(None, counted)]


def _watermark(watermark: int | None, held_by: str | None, split: str | None) -> str:
    """Return a watermark, and the operator with the lowest one, as text, with the split of its source."""
    if held_by is None or watermark == FOREVER:
        return watermark_text(watermark)
    holder = f"{split} of {held_by}" if split else held_by
    return f"{watermark_text(watermark)} {'from' if watermark is None else 'by'} {holder}"


def _rows_waiting(number: int, *, always: bool = False) -> str:
    return _counted(number, "row in open windows", "rows in open windows", always=always)


def requests_text(operators: Iterable[OperatorProgress]) -> str:
    """Return the file operations of the operators' state as text.

    >>> operations = {"reads": 3, "writes": 1_200, "lists": 0, "deletes": 1}
    >>> requests_text([OperatorProgress(file_operations=operations)])
    'state files: 3 reads, 1,200 writes, 1 delete'
    """
    sums = Counter[str]()
    for operator in operators:
        sums.update(operator.file_operations)
    parts = [_counted(sums[name], name.removesuffix("s")) for name in OPERATIONS if sums[name]]
    return f"state files: {', '.join(parts) or 'not touched'}"


def _counting(batches: Iterable[BatchProgress]) -> list[tuple[str, OperatorProgress]]:
    return [operator for batch in batches for operator in batch.operators.items() if counts_text(operator[1])]


def _said(ended: Iterable[BatchProgress | JobProgress]) -> list[str]:
    """Return a line for each operator that performs lookups or calls a function."""
    return [
        f"  {name}   {words(metrics)}"
        for progress in ended
        for counted, words in ((progress.lookups, lookup_text), (progress.functions, function_text))
        for name, metrics in counted.items()
    ]


def _say_end(status: str, summary: Mapping[str, Any], *, once: bool) -> None:
    print_message(_closing(status, summary))
    for line in end_of_event_time(status, summary, once=once):
        print_message(line)
    for kind, words in (("lookups", lookup_text), ("functions", function_text)):
        for sink, counted in summary.get(kind, {}).items():
            for name, metrics in counted.items():
                print_message(f"{sink} {name}: {words(metrics)}")


def end_of_event_time(status: str, summary: Mapping[str, Any], *, once: bool) -> Iterator[str]:
    """Yield a line for each operator that goes by event time, with the watermark that the run has reached.

    If a ``once`` run leaves windows open, the line shows how to close them.

    >>> time = {"watermark": 19_000, "held_by": "watermark_bid", "split": None, "waiting_rows": 2, "reached": 19_000}
    >>> list(end_of_event_time("finished", {"event_time": {"window_bid": time}}, once=True))
    ['window_bid: 2 rows in open windows, watermark 1970-01-01 00:00:19 UTC by watermark_bid · --drain closes them']
    >>> by_clock = {"watermark": None, "held_by": None, "split": None, "waiting_rows": 1, "by_clock": True}
    >>> list(end_of_event_time("finished", {"event_time": {"window_bid": by_clock}}, once=True))
    ['window_bid: 1 row in open windows of processing time · --drain closes them']
    >>> ended = time | {"watermark": FOREVER, "waiting_rows": 0}
    >>> list(end_of_event_time("finished", {"event_time": {"window_bid": ended}}, once=True))
    ['window_bid: all windows closed, watermark 1970-01-01 00:00:19 UTC before the end']
    """
    for name, time in summary.get("event_time", {}).items():
        if time["watermark"] == FOREVER:
            reached = f", {watermark_text(time['reached'])} before the end" if time["reached"] is not None else ""
            yield f"{name}: all windows closed{reached}"
            continue
        closes = " · --drain closes them" if once and status == "finished" and time["waiting_rows"] else ""
        rows = _rows_waiting(time["waiting_rows"], always=True)
        if time.get("by_clock"):
            yield f"{name}: {rows} of processing time{closes}"
            continue
        yield f"{name}: {rows}, {_watermark(time['watermark'], time['held_by'], time['split'])}{closes}"


def cached_text(result: CachedProgress) -> str:
    """Return the use of a cached result by a job as text.

    >>> cached_text(CachedProgress(hit=False, rows=3, bytes=2048, storage_level="DISK_ONLY", hits=0))
    'cached 3 rows 2.0 KiB'
    """
    parts = [
        "read from the cache" if result.hit else "cached",
        row_count_text(result.rows) if result.rows is not None else "in part" if not result.hit else "",
        human_bytes(result.bytes) if result.bytes is not None else "",
    ]
    return " ".join(part for part in parts if part)


def lookup_text(metrics: Mapping[str, int]) -> str:
    """Return the metrics of a lookup as text, without zeros.

    >>> names = ("hitCount", "missCount", "loadCount", "numLoadFailures", "retries", "timeouts", "inFlightMax")
    >>> lookup_text(dict.fromkeys(names, 0) | {"lookups": 10, "hitCount": 9, "missCount": 1, "loadCount": 1,
    ...     "latestLoadTime": 3, "numCachedRecords": 1, "numCachedBytes": 2048})
    '10 lookups · 90.0 % hits · 1 load · latest in 3 ms · 1 cached, 2.0 KiB'
    """
    requests = metrics["hitCount"] + metrics["missCount"]
    cached = metrics["numCachedRecords"]
    parts = [_counted(metrics["lookups"], "lookup", always=True)]
    if requests:
        parts.append(f"{100 * metrics['hitCount'] / requests:.1f} % hits")
    parts += [
        _counted(metrics["loadCount"], "load"),
        f"latest in {human_duration(metrics['latestLoadTime'])}" if metrics["loadCount"] else "",
        _counted(metrics["numLoadFailures"], "failure"),
        _counted(metrics["retries"], "retry", "retries"),
        _counted(metrics["timeouts"], "timeout"),
        f"{metrics['inFlightMax']:,} at once" if metrics["inFlightMax"] > 1 else "",
        f"{cached:,} cached, {human_bytes(metrics['numCachedBytes'])}" if cached else "",
    ]
    return " · ".join(part for part in parts if part)


def function_text(metrics: Mapping[str, int]) -> str:
    """Return the metrics of an operator that calls a function as text.

    >>> function_text({"calls": 12, "retries": 2, "failures": 2, "inFlightMax": 10, "rowsOut": 30})
    '12 calls · 30 rows out · 2 failures · 2 retries · 10 at once'
    """
    parts = [
        _counted(metrics["calls"], "call", always=True),
        _counted(metrics["rowsOut"], "row out", "rows out", always=True),
        _counted(metrics["failures"], "failure"),
        _counted(metrics["retries"], "retry", "retries"),
        f"{metrics['inFlightMax']:,} at once" if metrics["inFlightMax"] > 1 else "",
    ]
    return " · ".join(part for part in parts if part)


def row_count_text(number: int, way: str = "") -> str:
    """Return a number of rows as text, with an optional direction.

    >>> row_count_text(1, "in"), row_count_text(1200)
    ('1 row in', '1,200 rows')
    """
    return " ".join(filter(None, (_counted(number, "row", always=True), way)))


def _counted(number: int, one: str, many: str = "", *, always: bool = False) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}" if number or always else ""


def _closing(status: str, summary: Mapping[str, Any]) -> str:
    """Return the last line of a run.

    >>> counted = {"batches": 1, "rows_in": 3, "rows_out": 2, "duration_ms": 5_000}
    >>> _closing("finished", counted | {"spark_start_ms": 10_000})
    'finished after 1 batch: 3 rows in · 2 rows out · 15.0 s, of which 10.0 s for Spark to start'
    >>> _closing("stopped", counted)
    'stopped after 1 batch: 3 rows in · 2 rows out · 5.0 s'
    """
    start = summary.get("spark_start_ms", 0)
    ran = f"{row_count_text(summary['rows_out'], 'out')} · {human_duration(start + summary['duration_ms'])}"
    ran += f", of which {human_duration(start)} for Spark to start" if start else ""
    if "jobs" in summary:
        return f"{status} after {_counted(summary['jobs'], 'job', always=True)}: {ran}"
    batches = _counted(summary["batches"], "batch", "batches", always=True)
    return f"{status} after {batches}: {row_count_text(summary['rows_in'], 'in')} · {ran}"

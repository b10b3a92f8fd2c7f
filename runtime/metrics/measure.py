"""Turns the progress of a run into metrics.

    measured = Measured(measurements, plan, queries={"sink_paid": ("sink_paid",)})
    measured.progress(batch)

It receives each batch once, in the order in which batches end. Knows no Spark, no exporters and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.evidence.ages import below
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Scan
from hintplan.runtime.metrics import table
from hintplan.runtime.metrics.measurements import Measurements
from hintplan.runtime.metrics.table import Metric
from hintplan.runtime.operator import FOREVER
from hintplan.runtime.progress import BatchProgress, JobProgress, OperatorProgress
from hintplan.runtime.sources import lag

LOOKUP_METRICS: Mapping[str, tuple[Metric, float]] = {
    "lookups": (table.LOOKUPS, 1),
    "hitCount": (table.LOOKUP_HITS, 1),
    "missCount": (table.LOOKUP_MISSES, 1),
    "loadCount": (table.LOOKUP_LOADS, 1),
    "numLoadFailures": (table.LOOKUP_LOAD_FAILURES, 1),
    "retries": (table.LOOKUP_RETRIES, 1),
    "timeouts": (table.LOOKUP_TIMEOUTS, 1),
    "inFlightMax": (table.LOOKUP_IN_FLIGHT, 1),
    "latestLoadTime": (table.LOOKUP_LOAD_TIME, 1 / 1000),
    "numCachedRecords": (table.LOOKUP_CACHED_ROWS, 1),
    "numCachedBytes": (table.LOOKUP_CACHED_SIZE, 1),
}
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
AGES = (
    *(seconds * _SECOND for seconds in (1, 10, 30)),
    *(minutes * _MINUTE for minutes in (1, 3, 10, 30)),
    *(hours * _HOUR for hours in (1, 3, 6, 12)),
    *(days * _DAY for days in (1, 3, 7, 14, 30, 90, 365)),
)
"""The upper bounds of the ages of hits, in ms: some of the ends of :mod:`hintplan.plans.evidence.ages`."""
FUNCTION_METRICS: Mapping[str, tuple[Metric, float]] = {
    "calls": (table.FUNCTION_CALLS, 1),
    "retries": (table.FUNCTION_RETRIES, 1),
    "failures": (table.FUNCTION_FAILURES, 1),
    "inFlightMax": (table.FUNCTION_IN_FLIGHT, 1),
    "rowsOut": (table.FUNCTION_ROWS_OUT, 1),
}
"""By counter of a lookup or call: its metric, and the factor from the counter's unit to the metric's."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The run of a ``plan``. ``queries`` have their sinks; a batch is reported with the first sink of its query."""

    into: Measurements
    plan: Plan
    queries: Mapping[str, Sequence[str]]

    def begun(self) -> None:
        """Set the metrics that are known before the first batch: TTLs in force, and counters at 0."""
        plan, into = self.plan, self.into
        for operator in plan.operators:
            for entry in operator.state:
                if entry.ttl is None:
                    continue  # it lives by the watermark
                labels = (plan.name, operator.id, operator.op, entry.name)
                into.set(table.STATE_TTL, parse_duration(entry.ttl) / 1000, *labels)
        for query, sinks in self.queries.items():
            for sink in sinks:
                into.add(table.SINK_ROWS, 0, plan.name, query, sink)
            if plan.mode == "streaming":
                into.add(table.BATCH_ROWS_IN, 0, plan.name, query)
                into.add(table.BATCH_ROWS_OUT, 0, plan.name, query)
                into.set(table.BATCH_RUNNING, 0, plan.name, query)

    def progress(self, ended: BatchProgress | JobProgress) -> None:
        """Measure a batch, or the job of a sink, that has ended."""
        query, is_first = self.query_of(ended.sink)
        seconds, into = ended.duration_ms / 1000, self.into
        into.add(table.SINK_ROWS, ended.rows_out, self.plan.name, query, ended.sink)
        for counted, metrics in ((ended.lookups, LOOKUP_METRICS), (ended.functions, FUNCTION_METRICS)):
            for name, values in counted.items():
                self._counted(query, name, values, metrics)
        if isinstance(ended, JobProgress):
            into.record(table.JOB_DURATION, seconds, self.plan.name, query)
            self._cached(query, ended)
            return
        into.add(table.BATCH_ROWS_IN, ended.rows_in, self.plan.name, query)
        into.add(table.BATCH_ROWS_OUT, ended.rows_out, self.plan.name, query)
        if not is_first:
            return  # the batch is measured with the first sink of its query
        into.record(table.BATCH_DURATION, seconds, self.plan.name, query)
        into.set(table.BATCH_END, _seconds(ended.timestamp) + seconds, self.plan.name, query)
        self._sources(query, ended)
        for name, operator in ended.operators.items():
            self._operator(query, name, operator)

    def query_of(self, sink: str) -> tuple[str, bool]:
        """Return the query that writes ``sink``, and True if ``sink`` is its first."""
        query = next((name for name, sinks in self.queries.items() if sink in sinks), sink)
        return query, sink == self.queries.get(query, (query,))[0]

    def _sources(self, query: str, batch: BatchProgress) -> None:
        scans = {operator.id for operator in self.plan.operators if isinstance(operator, Scan)}
        for source in batch.sources:
            if source.operator not in scans:
                continue  # a source that wakes an operator is no table
            labels = (self.plan.name, query, source.operator)
            behind = lag(source)
            self.into.add(table.SOURCE_ROWS, source.rows_in, *labels)
            self.into.set(table.SOURCE_LAG_FILES, behind.files, *labels)
            self.into.set(table.SOURCE_LAG_SIZE, behind.bytes, *labels)
            self.into.set(table.SOURCE_LAG_OFFSETS, behind.offsets, *labels)

    def _operator(self, query: str, name: str, progress: OperatorProgress) -> None:
        labels, into = self._labels(query, name), self.into
        into.add(table.OPERATOR_ROWS_IN, progress.rows_in, *labels)
        into.add(table.OPERATOR_ROWS_OUT, progress.rows_out, *labels)
        into.set(table.STATE_ROWS, progress.state_rows, *labels)
        into.set(table.STATE_SIZE, progress.state_bytes, *labels)
        oldest = None if progress.oldest_write is None else progress.oldest_write / 1000
        into.set(table.STATE_OLDEST, oldest, *labels)
        if (time := progress.event_time) is not None:
            ended = time.watermark in (None, FOREVER)
            into.set(table.WATERMARK, None if ended else (time.watermark or 0) / 1000, *labels)
            into.add(table.LATE_ROWS, time.late_rows, *labels)
            into.set(table.WAITING_ROWS, time.waiting_rows, *labels)
        self._uses(labels, progress)
        for count, value in progress.counts.items():
            into.add(table.OPERATOR_COUNTED, value, *labels, count)
        for operation, value in progress.file_operations.items():
            into.add(table.STATE_FILE_OPERATIONS, value, *labels, operation)

    def _uses(self, labels: tuple[str, ...], progress: OperatorProgress) -> None:
        states = sorted(self.plan.by_id[labels[2]].state, key=lambda state: state.index)
        for place, uses in progress.uses.items():
            # A single state has all tables of its operator; of several, each has its own.
            state = states[place if len(states) > 1 else 0].name
            younger = 0
            for end in AGES:
                so_far = below(uses.hits, end)
                self.into.add(table.STATE_HITS, so_far - younger, *labels, state, format_duration(end))
                younger = so_far
            self.into.add(table.STATE_HITS, sum(uses.hits) - younger, *labels, state, "longer")
            self.into.add(table.STATE_EXPIRED_HITS, sum(uses.misses), *labels, state)

    def _counted(
        self, query: str, name: str, counts: Mapping[str, int], metrics: Mapping[str, tuple[Metric, float]]
    ) -> None:
        labels = self._labels(query, name)
        for counter, (metric, unit) in metrics.items():
            if metric.type == "counter":
                self.into.add(metric, counts[counter] * unit, *labels)
            else:
                self.into.set(metric, counts[counter] * unit, *labels)

    def _cached(self, query: str, job: JobProgress) -> None:
        for name, result in job.cached.items():
            labels = self._labels(query, name)
            self.into.add(table.CACHED_HITS, int(result.hit), *labels)
            self.into.add(table.CACHED_MISSES, int(not result.hit), *labels)
            self.into.set(table.CACHED_ROWS, result.rows, *labels)
            self.into.set(table.CACHED_SIZE, result.bytes, *labels)

    def _labels(self, query: str, name: str) -> tuple[str, str, str, str]:
        return self.plan.name, query, name, self.plan.by_id[name].op


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()

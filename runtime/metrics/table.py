"""All metrics of a run: their names, types, units, labels and descriptions. All other code reads this table.

Names, units and descriptions follow OpenTelemetry. Prometheus gets the names that its rules for compatibility with
OpenTelemetry produce, so that one dashboard fits both. Labels have ids and names from the plan, never data, so the plan
determines the number of series.

>>> OPERATOR_ROWS_IN.prometheus, BATCH_DURATION.prometheus, STATE_SIZE.prometheus
('hintplan_operator_rows_in_total', 'hintplan_batch_duration_seconds', 'hintplan_operator_state_size_bytes')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MetricType = Literal["counter", "gauge", "histogram"]

_SUFFIXES = {"s": "_seconds", "By": "_bytes"}

BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
"""Upper bounds of the buckets of all histograms, in seconds."""

_QUERY = ("plan", "query")
_SOURCE = (*_QUERY, "operator")
_OPERATOR = (*_QUERY, "operator", "kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric. ``name`` and ``unit`` are OpenTelemetry's (UCUM: ``s``, ``By``, ``{row}``; empty for none).

    A counter only grows while a process lives, a gauge is a current value, and a histogram counts values by size.
    """

    name: str
    type: MetricType
    unit: str = ""
    labels: tuple[str, ...]
    description: str

    @property
    def prometheus(self) -> str:
        """The name in Prometheus, with a suffix for the unit, unless it is a count, and ``_total`` for a counter."""
        suffix = _SUFFIXES.get(self.unit, "")
        return self.name.replace(".", "_") + suffix + ("_total" if self.type == "counter" else "")


def _counter(name: str, unit: str, labels: tuple[str, ...], description: str) -> Metric:
    return Metric(name=f"hintplan.{name}", type="counter", unit=unit, labels=labels, description=description)


def _gauge(name: str, unit: str, labels: tuple[str, ...], description: str) -> Metric:
    return Metric(name=f"hintplan.{name}", type="gauge", unit=unit, labels=labels, description=description)


def _histogram(name: str, unit: str, labels: tuple[str, ...], description: str) -> Metric:
    return Metric(name=f"hintplan.{name}", type="histogram", unit=unit, labels=labels, description=description)


RUN_INFO = _gauge(
    "run.info",
    "",
    ("plan", "digest", "mode", "version"),
    "1, for the plan that runs: its digest, its mode, and the version of hintplan.",
)
RUN_ACTIVE = _gauge(
    "run.active", "", ("plan",), "1 while the plan runs, 0 when it has ended, failed or is about to be started again."
)
RUN_START = _gauge("run.start_time", "s", ("plan",), "The time of the last start of the plan, since 1970.")
RUN_RESTARTS = _counter("run.restarts", "{restart}", ("plan",), "The number of restarts of the plan in this process.")

BATCH_DURATION = _histogram("batch.duration", "s", _QUERY, "The duration of micro-batches; its count is their number.")
BATCH_ROWS_IN = _counter("batch.rows_in", "{row}", _QUERY, "Rows that the query has read.")
BATCH_ROWS_OUT = _counter("batch.rows_out", "{row}", _QUERY, "Rows that the query has written, to all of its sinks.")
BATCH_END = _gauge("batch.end_time", "s", _QUERY, "The time at which the last micro-batch ended, since 1970.")
BATCH_RUNNING = _gauge("batch.running_time", "s", _QUERY, "The age of the micro-batch in progress, 0 if there is none.")
JOB_DURATION = _histogram("job.duration", "s", _QUERY, "The duration of a sink's job in a batch plan.")

SOURCE_ROWS = _counter("source.rows", "{row}", _SOURCE, "Rows that Spark has read of the source.")
SOURCE_LAG_FILES = _gauge("source.lag_files", "{file}", _SOURCE, "Files that the source has found and not read.")
SOURCE_LAG_SIZE = _gauge(
    "source.lag_size", "By", _SOURCE, "The size of the data that the source has listed and not read."
)
SOURCE_LAG_OFFSETS = _gauge(
    "source.lag_offsets",
    "{offset}",
    _SOURCE,
    "The number of offsets between the end of the last micro-batch and the end of the topic, over all its partitions.",
)
SINK_ROWS = _counter("sink.rows", "{row}", _SOURCE, "Rows that the sink received.")

OPERATOR_ROWS_IN = _counter("operator.rows_in", "{row}", _OPERATOR, "Rows that came to an operator with state.")
OPERATOR_ROWS_OUT = _counter("operator.rows_out", "{row}", _OPERATOR, "Rows that an operator with state has emitted.")
OPERATOR_COUNTED = _counter(
    "operator.counted",
    "{row}",
    (*_OPERATOR, "count"),
    "Counters of this kind of operator, such as `rows_beyond_limit` of a join.",
)
STATE_ROWS = _gauge(
    "operator.state_rows",
    "{row}",
    _OPERATOR,
    "Rows in the state, including expired rows that are not yet dropped.",
)
STATE_SIZE = _gauge("operator.state_size", "By", _OPERATOR, "The stored size of the state.")
STATE_OLDEST = _gauge(
    "operator.state_oldest_write_time",
    "s",
    _OPERATOR,
    "The time of the oldest stored write, since 1970; absent while nothing is stored.",
)
STATE_TTL = _gauge(
    "operator.state_ttl",
    "s",
    ("plan", "operator", "kind", "state"),
    "The TTL in force of a state entry; 0 for one that never expires.",
)
STATE_HITS = _counter(
    "operator.state_hits",
    "{row}",
    (*_OPERATOR, "state", "age"),
    "Stored rows that were found and used, by the time since their last write: `age` is its upper bound.",
)
STATE_EXPIRED_HITS = _counter(
    "operator.state_expired_hits",
    "{row}",
    (*_OPERATOR, "state"),
    "Expired rows that would have been used, if they were still stored.",
)
STATE_FILE_OPERATIONS = _counter(
    "operator.state_file_operations",
    "{operation}",
    (*_OPERATOR, "operation"),
    "Requests of the state to its file system: `reads`, `writes`, `lists`, `deletes`.",
)

WATERMARK = _gauge(
    "operator.watermark_time",
    "s",
    _OPERATOR,
    "The watermark of an operator that goes by event time, since 1970; absent before the first and after the last.",
)
LATE_ROWS = _counter("operator.late_rows", "{row}", _OPERATOR, "Rows that were dropped because they came too late.")
WAITING_ROWS = _gauge("operator.waiting_rows", "{row}", _OPERATOR, "Rows of state in open windows.")

LOOKUPS = _counter("lookup.lookups", "{row}", _OPERATOR, "Rows that were looked up.")
LOOKUP_HITS = _counter("lookup.hits", "{row}", _OPERATOR, "Lookups that the cache answered (`hitCount`).")
LOOKUP_MISSES = _counter("lookup.misses", "{row}", _OPERATOR, "Lookups that the cache did not answer (`missCount`).")
LOOKUP_LOADS = _counter(
    "lookup.loads", "{load}", _OPERATOR, "Keys requested from the source, or loads of a full cache (`loadCount`)."
)
LOOKUP_LOAD_FAILURES = _counter("lookup.load_failures", "{load}", _OPERATOR, "Loads that failed (`numLoadFailures`).")
LOOKUP_RETRIES = _counter("lookup.retries", "{retry}", _OPERATOR, "Lookups that were made again.")
LOOKUP_TIMEOUTS = _counter(
    "lookup.timeouts", "{timeout}", _OPERATOR, "Asynchronous lookups that took longer than their timeout."
)
LOOKUP_IN_FLIGHT = _gauge(
    "lookup.in_flight_max",
    "{call}",
    _OPERATOR,
    "The maximum number of concurrent calls of a task, in the last micro-batch.",
)
LOOKUP_LOAD_TIME = _gauge(
    "lookup.latest_load_time", "s", _OPERATOR, "The duration of the latest load (`latestLoadTime`)."
)
LOOKUP_CACHED_ROWS = _gauge(
    "lookup.cached_records", "{row}", _OPERATOR, "Rows in the largest cache of a worker (`numCachedRecords`)."
)
LOOKUP_CACHED_SIZE = _gauge(
    "lookup.cached_size", "By", _OPERATOR, "Size of the largest cache of a worker (`numCachedBytes`)."
)

FUNCTION_CALLS = _counter("function.calls", "{call}", _OPERATOR, "Calls of a function, including retries.")
FUNCTION_RETRIES = _counter("function.retries", "{retry}", _OPERATOR, "Retries of calls.")
FUNCTION_FAILURES = _counter("function.failures", "{call}", _OPERATOR, "Calls that ended with an exception.")
FUNCTION_IN_FLIGHT = _gauge(
    "function.in_flight_max",
    "{call}",
    _OPERATOR,
    "The maximum number of concurrent calls of a task, in the last micro-batch.",
)
FUNCTION_ROWS_OUT = _counter("function.rows_out", "{row}", _OPERATOR, "Rows that the operator has emitted.")

CACHED_HITS = _counter("cached_result.hits", "{read}", _OPERATOR, "Jobs of a batch plan that found a cached result.")
CACHED_MISSES = _counter(
    "cached_result.misses", "{read}", _OPERATOR, "Jobs of a batch plan that had to compute a cached result."
)
CACHED_ROWS = _gauge(
    "cached_result.rows", "{row}", _OPERATOR, "Rows of a cached result, if it was computed as a whole."
)
CACHED_SIZE = _gauge("cached_result.size", "By", _OPERATOR, "Size of a cached result.")

METRICS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All metrics above, in this order."""

"""The progress of a run: one record per micro-batch, from Spark's query progress and our observed metrics.

In batch mode, one record per sink. Stateful operators report their state per partition. In a batch without data, only
partitions with a due timer report, so the totals of earlier batches are updated by the reported differences. Lookups
and function calls report their counts. This module knows neither terminals nor JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hintplan.plans.evidence.uses import Uses, decoded_uses
from hintplan.runtime.engine.process import BY_CLOCK, METRICS, TIME_METRICS, USES, split_number
from hintplan.runtime.engine.rows import UNCOUNTED
from hintplan.runtime.functions.metrics import FUNCTION_METRICS
from hintplan.runtime.lookup.metrics import GAUGES, LOOKUP_METRICS
from hintplan.runtime.operator import NEVER
from hintplan.runtime.sources import SourceProgress, source_progress, split_names
from hintplan.runtime.spark.ending import is_ending_source
from hintplan.runtime.spark.once import is_one_row_source
from hintplan.runtime.spark.waking import is_waking_source
from hintplan.runtime.storage.operations import OPERATIONS

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql.streaming.listener import StreamingQueryProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeProgress:
    """The event time of an operator after a batch.

    ``watermark`` is in ms since 1970, or None if there is none yet. ``held_by`` is the source with the lowest
    watermark, an operator; None if all sources are idle. ``split`` is the split of this source that has it, such as
    ``bids/3``; None if it has no splits. ``late_rows`` were dropped in this batch, and ``waiting_rows`` of state wait
    for the watermark. An operator that goes ``by_clock`` has no watermark: its windows are of processing time.
    """

    watermark: int | None = None
    held_by: str | None = None
    split: str | None = None
    late_rows: int = 0
    waiting_rows: int = 0
    by_clock: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name; ``by_clock`` only if it is true."""
        return {name: value for name, value in asdict(self).items() if name != "by_clock" or value}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorProgress:
    """One stateful operator after a batch: the rows of this batch, and its whole state; sizes in bytes.

    ``oldest_write`` is the oldest write of a stored row, in ms since 1970. It includes rows that are replaced or
    expired and not dropped yet. None if there are no rows. ``counts`` are the additional counts of this kind of
    operator, and ``file_operations`` the operations on its state files (:mod:`hintplan.runtime.storage.operations`),
    both of this batch. ``uses`` has the ages at which the batch has used the rows of each state table, by the place of
    the table. ``event_time`` is None unless the operator goes by the watermark.
    """

    rows_in: int = 0
    rows_out: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    oldest_write: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    file_operations: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(OPERATIONS, 0))
    uses: Mapping[int, Uses] = field(default_factory=dict)
    event_time: EventTimeProgress | None = None


_OF_ALL = {name for name, _ in (*METRICS, USES, *TIME_METRICS, *LOOKUP_METRICS)}
"""The metrics of all kinds of operators, of operators that go by time, and of operators that wait for lookups."""

LookupProgress = Mapping[str, int]
"""One lookup operator in a batch: its counts, and its gauges at the end (:mod:`hintplan.runtime.lookup.metrics`)."""


FunctionProgress = Mapping[str, int]
"""One operator that calls a function, in a batch: its counts (:mod:`hintplan.runtime.functions.metrics`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    """One micro-batch of the query of ``sink``, with the reports of its operators by id.

    ``operators`` has the stateful operators, ``lookups`` the operators with lookups, and ``functions`` the operators
    that call functions. ``sources`` has the rows read and the input that is still unread.
    """

    sink: str
    batch: int
    timestamp: str
    rows_in: int
    rows_out: int
    duration_ms: int
    operators: Mapping[str, OperatorProgress]
    lookups: Mapping[str, LookupProgress] = field(default_factory=dict)
    functions: Mapping[str, FunctionProgress] = field(default_factory=dict)
    sources: tuple[SourceProgress, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedProgress:
    """A cached result that a job has read, after the job. ``hit`` is true if it was already cached.

    ``rows`` and ``bytes`` are as in :class:`hintplan.runtime.batch.cache.CachedResult`. ``hits`` counts the hits in the
    session.
    """

    hit: bool
    rows: int | None
    bytes: int | None
    storage_level: str
    hits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """The job of a batch plan that wrote ``sink``; ``lookups``, ``functions`` and ``cached`` by operator id."""

    sink: str
    timestamp: str
    rows_out: int
    duration_ms: int
    lookups: Mapping[str, LookupProgress]
    functions: Mapping[str, FunctionProgress]
    cached: Mapping[str, CachedProgress]


def batch_progress(
    sink: str,
    progress: StreamingQueryProgress,
    before: Mapping[str, OperatorProgress],
    partitions: int,
    lookups_before: Mapping[str, LookupProgress] = MappingProxyType({}),
    unread_files: Mapping[str, int] = MappingProxyType({}),
    scans: Sequence[str] = (),
    time_sources: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> BatchProgress:
    """Return the record of Spark's ``progress``; ``before`` has the operators after the previous batch.

    ``unread_files`` has the number of unread files by Spark's description of the source. ``scans`` has the operator
    that reads each of Spark's sources, if known. ``time_sources`` has the sources of the watermark of each operator
    that goes by time. The one-row source of VALUES, and the sources that end event time and wake operators, are no
    input: neither rows nor sources of theirs are reported.
    """
    # An operator that does not report in this batch has had no rows.
    operators = {
        name: OperatorProgress(
            state_rows=previous.state_rows,
            state_bytes=previous.state_bytes,
            oldest_write=previous.oldest_write,
            counts=dict.fromkeys(previous.counts, 0),
            event_time=previous.event_time and replace(previous.event_time, late_rows=0),
        )
        for name, previous in before.items()
    }
    lookups: dict[str, LookupProgress] = {}
    functions: dict[str, FunctionProgress] = {}
    own = [
        source
        for source in progress.sources
        if is_one_row_source(source.description, source.endOffset)
        or is_ending_source(source.description)
        or is_waking_source(source.description, source.endOffset)
    ]
    rows_in, rows_out = progress.numInputRows - sum(source.numInputRows for source in own), 0
    observations = {name: _metrics(observed) for name, observed in progress.observedMetrics.items()}
    uncounted: Counter[str] = Counter()
    for metrics in observations.values():
        for metric, value in metrics.items():
            if metric.startswith(f"{UNCOUNTED} "):
                uncounted[metric.removeprefix(f"{UNCOUNTED} ")] += value
    sources = tuple(
        source_progress(source, scans[number] if number < len(scans) else None, unread_files, uncounted)
        for number, source in enumerate(progress.sources)
        if source not in own
    )
    splits = {split_number(split): split for source in sources for split in split_names(source)}
    for name, metrics in observations.items():
        if name == sink:
            rows_out = metrics["rows_out"]
            continue
        if "lookups" in metrics:
            lookups[name] = _lookup(metrics, lookups_before.get(name, {}))
        if "calls" in metrics:
            functions[name] = {metric: metrics[metric] for metric, _ in FUNCTION_METRICS}
        if "reports" in metrics and (metrics["reports"] == partitions or name in before):
            # Otherwise, no rows have arrived since the start of the run, and the state of the partitions is unknown.
            operator = _operator(metrics, before.get(name, OperatorProgress()), partitions)
            operators[name] = replace(operator, event_time=_event_time(metrics, time_sources.get(name, ()), splits))
    return BatchProgress(
        sink=sink,
        batch=progress.batchId,
        timestamp=progress.timestamp,
        rows_in=rows_in + uncounted.total(),
        rows_out=rows_out,
        duration_ms=int(progress.durationMs.get("triggerExecution", 0)),
        operators=operators,
        lookups=lookups,
        functions=functions,
        sources=sources,
    )


def total_lookups(total: LookupProgress, batch: LookupProgress) -> LookupProgress:
    """Add a batch to ``total``: counts add up, calls in flight are the maximum, other gauges are the latest."""
    most = {"inFlightMax": max(total.get("inFlightMax", 0), batch["inFlightMax"])}
    return {name: value if name in GAUGES else total.get(name, 0) + value for name, value in batch.items()} | most


def total_functions(total: FunctionProgress, batch: FunctionProgress) -> FunctionProgress:
    """Add a batch to ``total``: counts are added, calls in flight are the maximum."""
    combine = {name: max if how == "max" else sum for name, how in FUNCTION_METRICS}
    return {name: combine[name]((total.get(name, 0), value)) for name, value in batch.items()}


def _metrics(observed: Row) -> dict[str, int]:
    """Return observed metrics by name; sums over no rows are NULL, and count as 0."""
    values = observed.asDict()
    if values.keys() == {"values", "schema"}:  # the format of Spark Connect
        values = dict(zip((field["name"] for field in values["schema"]["fields"]), values["values"], strict=True))
    return {name: value or 0 for name, value in values.items()}


def _lookup(metrics: Mapping[str, int], before: LookupProgress) -> LookupProgress:
    """Return the progress of a lookup. In a batch without loads or lookups, the gauges keep their previous values."""
    progress = {name: metrics[name] for name, _ in LOOKUP_METRICS}
    if not metrics["loadCount"]:
        progress["latestLoadTime"] = progress["latestLoadTime"] or before.get("latestLoadTime", 0)
    if not metrics["lookups"]:
        progress |= {name: progress[name] or before.get(name, 0) for name in ("numCachedRecords", "numCachedBytes")}
    return progress


def _operator(metrics: Mapping[str, int], before: OperatorProgress, partitions: int) -> OperatorProgress:
    whole = metrics["reports"] == partitions
    # 0 means no rows. In partitions that do not report, no row has become older.
    writes = [write for write in (metrics["oldest_write"], 0 if whole else before.oldest_write) if write]
    state_rows = metrics["state_rows"] if whole else before.state_rows + metrics["state_rows_delta"]
    return OperatorProgress(
        rows_in=metrics["rows_in"],
        rows_out=metrics["rows_out"],
        state_rows=state_rows,
        state_bytes=metrics["state_bytes"] if whole else before.state_bytes + metrics["state_bytes_delta"],
        oldest_write=min(writes, default=None) if state_rows else None,
        counts={n: value for n, value in metrics.items() if n not in _OF_ALL and not n.startswith(f"{UNCOUNTED} ")},
        file_operations={name: metrics.get(f"file_{name}", 0) for name in OPERATIONS},
        uses=decoded_uses(str(metrics[USES[0]])) if metrics.get(USES[0]) else {},
    )


def _event_time(
    metrics: Mapping[str, int], sources: Sequence[str], splits: Mapping[int, str]
) -> EventTimeProgress | None:
    """Return the event time of an operator, or None if it does not go by the watermark.

    ``splits`` has the names of splits by number.
    """
    if "watermark" not in metrics:
        return None
    held_by = metrics["held_by"]
    return EventTimeProgress(
        watermark=None if metrics["watermark"] == NEVER else metrics["watermark"],
        held_by=sources[held_by] if 0 <= held_by < len(sources) else None,
        split=splits.get(metrics["held_split"]),
        late_rows=metrics["late_rows"],
        waiting_rows=metrics["waiting_rows"],
        by_clock=held_by == BY_CLOCK,
    )

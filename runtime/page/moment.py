"""The numbers of a run at one moment: the values of its metrics by operator, and the changes of the last minute.

Knows no page and no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hintplan.plans.model.plan import Plan
from hintplan.runtime.metrics.followed import Followed
from hintplan.runtime.metrics.recent import Recent, Values
from hintplan.runtime.metrics.table import METRICS, Metric
from hintplan.runtime.progress import BatchProgress, JobProgress, OperatorProgress

BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}
_SUBJECTS: Mapping[str, int | None] = {
    metric.name: next((metric.labels.index(label) for label in ("operator", "query") if label in metric.labels), None)
    for metric in METRICS
}
"""By metric, the position of the label that names its operator, or else its query."""

BySubject = Mapping[tuple[str, str], list[float]]

_USUAL_BATCHES = 20
_FEW_BATCHES = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a metric of an operator; ``of`` are its other labels, such as the name of a counter.

    ``change`` is the growth within the last minute, for a counter.
    """

    metric: Metric
    of: tuple[str, ...]
    value: float
    change: float | None


@dataclass(frozen=True, slots=True)
class Moment:
    """The numbers of the run of ``plan`` at ``now``, in seconds since 1970.

    ``values`` are the current values, ``before`` the values of ``seconds`` ago. ``current`` and ``earlier_values`` have
    them by metric and by operator or query.
    """

    plan: Plan
    queries: Mapping[str, tuple[str, ...]]
    recent: Recent
    now: float
    values: Values
    before: Values
    current: BySubject
    earlier_values: BySubject
    seconds: float

    def value(self, metric: Metric, name: str) -> float | None:
        """Return the value of ``metric`` of an operator or a query, summed over the queries that run the operator.

        For a gauge that is no amount, such as a time, return the largest. None if it has none.
        """
        found = self.current.get((metric.name, name), [])
        if not found:
            return None
        return max(found) if metric.unit == "s" and metric.type == "gauge" else sum(found)

    def change(self, metric: Metric, name: str) -> float:
        """Return the growth of a counter of an operator or a query within the last minute."""
        return sum(self.current.get((metric.name, name), [])) - sum(self.earlier_values.get((metric.name, name), []))

    def earlier(self, metric: Metric, name: str) -> float | None:
        """Return the value of a gauge a minute ago; None if it had none, or if the run is younger."""
        return max(self.earlier_values.get((metric.name, name), []), default=None) if self.seconds >= 60 else None

    def rate(self, metric: Metric, name: str) -> float:
        """Return the growth of a counter per second."""
        return self.change(metric, name) / self.seconds if self.seconds else 0.0

    def entries(self) -> dict[str, list[Entry]]:
        """Return all values of each operator, in the order of the table of metrics."""
        entries: dict[str, list[Entry]] = {}
        for (name, labels), value in self.values.items():
            metric = BY_NAME[name]
            if "operator" not in metric.labels:
                continue
            by_label = dict(zip(metric.labels, labels, strict=True))
            of = tuple(by_label[each] for each in metric.labels if each not in ("plan", "query", "operator", "kind"))
            change = value - self.before.get((name, labels), 0) if metric.type == "counter" else None
            entries.setdefault(by_label["operator"], []).append(Entry(metric, of, value, change))
        return entries

    def progress(self, name: str) -> OperatorProgress | None:
        """Return the progress of a stateful operator in the last batch of its query."""
        return next((p.operators[name] for p in self._last_batches() if name in p.operators), None)

    def durations(self, query: str) -> tuple[int, ...]:
        """Return the durations of the last batches of a query in ms, the latest last."""
        return tuple(self.recent.durations.get(self._first(query), ()))

    def usual_ms(self, query: str) -> float | None:
        """Return the median duration of the batches before the last; None if there are too few."""
        before = sorted(self.durations(query)[:-1][-_USUAL_BATCHES:])
        return before[len(before) // 2] if len(before) >= _FEW_BATCHES else None

    def last(self, query: str) -> BatchProgress | JobProgress | None:
        """Return the last batch or job of a query."""
        return self.recent.last.get(self._first(query))

    def batches_with_source(self, name: str) -> list[BatchProgress]:
        """Return the last three batches of the query that reads a table, the latest last."""
        for batches in list(self.recent.batches.values()):
            if any(source.operator == name for batch in list(batches) for source in batch.sources):
                return list(batches)
        return []

    def query_of(self, sink: str) -> str:
        """Return the query that writes ``sink``."""
        return next((query for query, sinks in self.queries.items() if sink in sinks), sink)

    def _first(self, query: str) -> str:
        return self.queries.get(query, (query,))[0]

    def _last_batches(self) -> Iterator[BatchProgress]:
        yield from (p for p in list(self.recent.last.values()) if isinstance(p, BatchProgress))


def _by_subject(values: Values) -> BySubject:
    """Return the values by the name of their metric, and the operator or the query that they are about."""
    index: dict[tuple[str, str], list[float]] = {}
    for (name, labels), value in values.items():
        subject = _SUBJECTS[name]
        if subject is not None:
            index.setdefault((name, labels[subject]), []).append(value)
    return index


def moment_of(run: Followed, now: float) -> Moment | None:
    """Return the numbers of ``run``; None if it keeps no recent past."""
    recent = run.recent
    if recent is None:
        return None
    clock = run.clock()
    before, values = recent.before(clock), recent.current()
    queries = {query: tuple(sinks) for query, sinks in run.measured.queries.items()}
    return Moment(
        plan=run.measured.plan,
        queries=queries,
        recent=recent,
        now=now,
        values=values,
        before=before.values,
        current=_by_subject(values),
        earlier_values=_by_subject(before.values),
        seconds=clock - before.time,
    )

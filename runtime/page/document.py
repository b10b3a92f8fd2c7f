"""The numbers of the queries and the operators of a run, as the page of the run reads them: JSON values.

Metrics have their names in :mod:`hintplan.runtime.metrics.table`, without ``hintplan.``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from hintplan.plans.text.terminal import one_line
from hintplan.runtime.metrics import table
from hintplan.runtime.page.lines import batch_line, lines_of
from hintplan.runtime.page.moment import Entry, Moment
from hintplan.runtime.page.numbers import rate_text, value_text
from hintplan.runtime.progress import BatchProgress
from hintplan.runtime.running import RunningBatch

_PREFIX = "hintplan."
_GROUPS = ("operator.", "source.", "sink.", "lookup.", "function.", "cached_result.")


def run_document(moment: Moment) -> dict[str, Any]:
    """Return the queries and the operators of a run."""
    lines, entries = lines_of(moment), moment.entries()
    return {
        "queries": [_query(moment, query) for query in moment.queries],
        "operators": {
            operator: {
                "lines": {name: asdict(line) for name, line in lines.get(operator, {}).items()},
                "values": _values(entries.get(operator, ())),
                "details": [*_details(entries.get(operator, ()), moment.seconds), *_time_details(moment, operator)],
            }
            for operator in dict.fromkeys((*lines, *entries))
        },
    }


def _query(moment: Moment, query: str) -> dict[str, Any]:
    last, line = moment.last(query), batch_line(moment, query)
    running = moment.value(table.BATCH_RUNNING, query) or 0.0
    at_work = moment.recent.at_work.get(query) if running else None
    if at_work is not None and isinstance(last, BatchProgress) and (at_work.batch or 0) <= last.batch:
        at_work = None  # it is about an earlier batch
    came, left = (moment.rate(metric, query) for metric in (table.BATCH_ROWS_IN, table.BATCH_ROWS_OUT))
    return {
        "query": query,
        "sinks": [*map(one_line, moment.queries[query])],
        "batch": getattr(last, "batch", None),
        "rows_in_per_second": round(came, 3),
        "rows_out_per_second": round(left, 3),
        "rows": f"{rate_text(came)} → {rate_text(left)}",
        "running_ms": int(running * 1000),
        "usual_ms": moment.usual_ms(query),
        "durations_ms": list(moment.durations(query)),
        "line": asdict(line),
        "at_work": None if at_work is None else _at_work(at_work),
    }


def _at_work(batch: RunningBatch) -> str:
    """Return the unfinished stages of a batch by their operators."""
    stages = [stage for stage in batch.stages or () if stage.done < stage.tasks]
    named = ((", ".join(stage.operators) or "a step of Spark", stage) for stage in stages)
    return one_line("; ".join(f"{name}: {stage.done} of {stage.tasks} tasks" for name, stage in named))


def _values(entries: Sequence[Entry]) -> dict[str, float | dict[str, float]]:
    values: dict[str, Any] = {}
    for entry in entries:
        name = entry.metric.name.removeprefix(_PREFIX)
        if entry.of:
            values.setdefault(name, {})[" ".join(entry.of)] = entry.value
        else:
            values[name] = values.get(name, 0) + entry.value if entry.change is not None else entry.value
    return values


def _details(entries: Sequence[Entry], seconds: float) -> Iterator[list[str]]:
    """Yield the label, the value and the description of each metric, except further counters of 0."""
    for entry in entries:
        if entry.of and not entry.value:
            continue
        label = entry.metric.name.removeprefix(_PREFIX)
        for group in _GROUPS:
            label = label.removeprefix(group)
        label = " ".join([label.replace("_", " "), *(one_line(each).replace("_", " ") for each in entry.of)])
        text = value_text(entry.metric, entry.value)
        if entry.change and seconds:
            text += f" · {rate_text(entry.change / seconds)}"
        yield [label, text, entry.metric.description]


def _time_details(moment: Moment, operator: str) -> Iterator[list[str]]:
    progress = moment.progress(operator)
    time = None if progress is None else progress.event_time
    if time is not None and time.held_by is not None:
        split = "" if time.split is None else f", partition {time.split}"
        yield ["held by", one_line(f"{time.held_by}{split}"), "The source with the lowest watermark."]

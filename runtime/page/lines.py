"""The lines of numbers in the box of an operator: their text, and a level if the number needs attention.

:mod:`hintplan.plans.show.live_rows` decides which lines an operator has. Knows no server and no HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from hintplan.plans.analysis.watermarks import watermark_sources
from hintplan.plans.show import live_rows as rows
from hintplan.plans.text.counts import human_bytes, human_duration
from hintplan.plans.text.terminal import one_line
from hintplan.runtime.metrics import table
from hintplan.runtime.operator import FOREVER
from hintplan.runtime.page.moment import Moment
from hintplan.runtime.page.numbers import age_text, rate_text, rows_text
from hintplan.runtime.sources import lag, lag_text

Level = Literal["", "hold", "warn", "bad"]

SLOW_SECONDS, SLOW_TIMES = 5.0, 2
"""A batch is slow if it takes longer than this, and this many times as long as usual."""

STUCK_SECONDS, STUCK_TIMES = 60.0, 10
"""A batch in progress seems stuck after this time, and this many times the usual duration."""

LARGE_BYTES = 64 << 20
"""State of fewer bytes is not large, whatever its share."""

_BATCHES_BEHIND = 3
_UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its ``text``, its ``level``, and the reason of the level, or an explanation."""

    text: str
    level: Level = ""
    note: str = ""


def lines_of(moment: Moment) -> dict[str, dict[str, Line]]:
    """Return the lines of every operator that has some, by their names."""
    sources = watermark_sources(moment.plan) if moment.plan.mode == "streaming" else {}
    marks = _Marks(dict(_holders(moment, sources)), _senders(moment, sources))
    return {
        operator: {name: _line(name, moment, operator, marks) for name in names}
        for operator, names in rows.live_rows(moment.plan).items()
    }


def batch_line(moment: Moment, query: str) -> Line:
    """Return the duration of the current or the last batch of a query, compared with the usual one.

    A batch in progress is shown as soon as it is slow.
    """
    durations, usual = moment.durations(query), moment.usual_ms(query)
    running = (moment.value(table.BATCH_RUNNING, query) or 0.0) * 1000
    usually = "" if usual is None else f", usually {human_duration(int(usual))}"
    if running > SLOW_SECONDS * 1000 and (usual is None or running > SLOW_TIMES * usual):
        at_work = f"at work for {human_duration(int(running))}{usually}"
        if usual is None:
            return Line(at_work, "", "one of the first batches, which read all input that there is")
        if running > STUCK_SECONDS * 1000 and running > STUCK_TIMES * usual:
            return Line(at_work, "bad", "this batch seems to be stuck")
        return Line(at_work, "warn", "this batch is slower than usual")
    if not durations:
        return Line("none yet")
    slow = usual is not None and durations[-1] > max(SLOW_SECONDS * 1000, SLOW_TIMES * usual)
    last = f"{human_duration(durations[-1])}{usually}"
    return Line(last, "warn", "the last batch was slower than usual") if slow else Line(last)


@dataclass(frozen=True, slots=True)
class _Marks:
    """The operators that hold a watermark back, with the reason, and the other operators that send a known one."""

    holders: Mapping[str, str]
    senders: Mapping[str, str]


def _line(name: str, moment: Moment, operator: str, marks: _Marks) -> Line:
    if name == rows.WATERMARK:
        return _watermark(moment, operator, marks)
    return _LINES[name](moment, operator)


def _rows(moment: Moment, operator: str) -> Line:
    if (arrived := moment.value(table.SINK_ROWS, operator)) is not None:
        if moment.plan.mode == "batch":
            return Line(f"{rows_text(arrived)}")
        return Line(rate_text(moment.rate(table.SINK_ROWS, operator)))
    if moment.value(table.SOURCE_ROWS, operator) is not None:
        return Line(rate_text(moment.rate(table.SOURCE_ROWS, operator)))
    if moment.value(table.OPERATOR_ROWS_IN, operator) is None:
        return Line(_UNKNOWN)
    came, left = (moment.rate(metric, operator) for metric in (table.OPERATOR_ROWS_IN, table.OPERATOR_ROWS_OUT))
    return Line(f"{rate_text(came)} → {rate_text(left)}", "", "rows in → rows out")


def _lag(moment: Moment, operator: str) -> Line:
    batches = moment.batches_with_source(operator)
    reports = [source for batch in batches for source in batch.sources if source.operator == operator]
    if not reports:
        return Line(_UNKNOWN)
    behind = lag(reports[-1])
    parts = [f"{number:,} {noun}" for number, noun in ((behind.files, "files"), (behind.offsets, "offsets")) if number]
    if behind.bytes:
        parts.append(human_bytes(behind.bytes))
    known = any(number is not None for number in (behind.files, behind.bytes, behind.offsets))
    texts = [lag_text(report) for report in reports[-_BATCHES_BEHIND:]]
    text = " · ".join(parts) or ("none" if known else "not reported")
    if len(texts) == _BATCHES_BEHIND and all(texts):
        return Line(text if parts else "falls behind", "warn", one_line(f"in three batches in a row: {texts[-1]}"))
    return Line(text)


def _state(moment: Moment, operator: str) -> Line:
    stored, size = (moment.value(metric, operator) for metric in (table.STATE_ROWS, table.STATE_SIZE))
    if stored is None or size is None:
        return Line(_UNKNOWN)
    text = f"{rows_text(stored)} · {human_bytes(int(size))}"
    sizes = [value for (name, _), value in moment.values.items() if name == table.STATE_SIZE.name]
    if len(sizes) > 1 and size >= LARGE_BYTES and size * 2 > sum(sizes):
        return Line(text, "warn", f"{size / sum(sizes):.0%} of all state of the run")
    return Line(text)


def _watermark(moment: Moment, operator: str, marks: _Marks) -> Line:
    held = marks.holders.get(operator)
    if not moment.plan.by_id[operator].goes_by_time:
        return Line(marks.senders.get(operator, _UNKNOWN)) if held is None else Line("the slowest", "hold", held)
    if moment.plan.by_id[operator].goes_by_clock:
        return Line("the clock")
    progress = moment.progress(operator)
    time = None if progress is None else progress.event_time
    if time is None or time.watermark is None:
        return Line("none yet")
    if time.watermark == FOREVER:
        return Line("ended", "", "all windows are closed")
    seconds = time.watermark / 1000
    text = f"{age_text(moment.now - seconds)} behind"
    came = moment.change(table.OPERATOR_ROWS_IN, operator)
    if came > 0 and moment.earlier(table.WATERMARK, operator) == seconds:
        by = f": {one_line(time.held_by)} holds it back" if time.held_by is not None else ""
        return Line(text, "warn", f"it stood still for a minute, while rows came{by}")
    return Line(text) if held is None else Line(text, "hold", held)


def _holders(moment: Moment, sources: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Yield the operators that hold a watermark back, with the operators above them that wait for it.

    An operator that follows only one source, without partitions, always waits for that one: it is not worth a mark.
    """
    for operator, below in sources.items():
        progress = moment.progress(operator)
        time = None if progress is None else progress.event_time
        if time is None or time.held_by is None or time.watermark == FOREVER:
            continue
        if len(below) > 1 or time.split is not None:
            split = "" if time.split is None else f", by its partition {one_line(time.split)}"
            yield time.held_by, f"holds the watermark of {one_line(operator)} back{split}"


def _senders(moment: Moment, sources: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the text of each operator whose watermark another operator knows."""
    known = {operator: below for operator, below in sources.items() if moment.progress(operator) is not None}
    return {
        sender: "not the slowest" if len(below) > 1 else "the only source"
        for below in known.values()
        for sender in below
    }


def _late(moment: Moment, operator: str) -> Line:
    late = moment.value(table.LATE_ROWS, operator)
    if late is None:
        return Line(_UNKNOWN)
    lately = moment.change(table.LATE_ROWS, operator)
    if lately:
        return Line(f"{rows_text(late)}, +{rows_text(lately)}", "warn", f"{rows_text(lately)} within the last minute")
    return Line(rows_text(late))


def _lookups(moment: Moment, operator: str) -> Line:
    if moment.value(table.LOOKUPS, operator) is None:
        return Line(_UNKNOWN)
    text = rate_text(moment.rate(table.LOOKUPS, operator))
    hits, misses = (moment.change(metric, operator) for metric in (table.LOOKUP_HITS, table.LOOKUP_MISSES))
    if not hits + misses:
        hits, misses = (moment.value(metric, operator) or 0 for metric in (table.LOOKUP_HITS, table.LOOKUP_MISSES))
    if hits + misses:
        text += f" · {hits / (hits + misses):.0%} hits"
    failed, late = (moment.change(metric, operator) for metric in (table.LOOKUP_LOAD_FAILURES, table.LOOKUP_TIMEOUTS))
    return _with_failures(text, failed, late)


def _calls(moment: Moment, operator: str) -> Line:
    if moment.value(table.FUNCTION_CALLS, operator) is None:
        return Line(_UNKNOWN)
    text = rate_text(moment.rate(table.FUNCTION_CALLS, operator))
    return _with_failures(text, moment.change(table.FUNCTION_FAILURES, operator), 0)


def _with_failures(text: str, failed: float, late: float) -> Line:
    counts = [f"{rows_text(number)} {word}" for number, word in ((failed, "failed"), (late, "timed out")) if number]
    if not counts:
        return Line(text)
    return Line(f"{text} · {counts[0]}", "bad", f"{' and '.join(counts)} within the last minute")


def _batch(moment: Moment, operator: str) -> Line:
    return batch_line(moment, moment.query_of(operator))


def _job(moment: Moment, operator: str) -> Line:
    last = moment.last(operator)
    return Line("not ended") if last is None else Line(human_duration(last.duration_ms))


_LINES: Mapping[str, Callable[[Moment, str], Line]] = {
    rows.ROWS: _rows,
    rows.LAG: _lag,
    rows.STATE: _state,
    rows.LATE: _late,
    rows.LOOKUPS: _lookups,
    rows.CALLS: _calls,
    rows.BATCH: _batch,
    rows.JOB: _job,
}

"""The watermark of an operator in a batch: from the marks of its sources to the times before and after the batch.

The watermark after a batch is the lowest of the operator's sources, and of a source the lowest of its splits: the
highest mark that a split has had, less the delay. It never goes back. A source counts from the start, a split from its
first row. A source or split without a row for the idle timeout is left out; if all are, the watermark stays. A source
that has ended is left out, too; if all have, the watermark is above all times.

The delay is taken off here, in each batch, because stored marks are without it. So an edited delay counts at once.

Processing time is a watermark, too: an operator that goes by the clock has no sources, and its watermark after a batch
is the time of the batch, less 1 ms.

>>> sources = (MarkSource(number=0, delay=1_000), MarkSource(number=1))
>>> event_time = EventTime(number=2, sources=sources)
>>> moved = moved_watermark(None, {(0, "a"): 9_000, (0, "b"): 7_000, (1, ""): 6_500}, event_time, now=0)
>>> moved.watermarks.after, moved.holder
(6000, Holder(source=0, split='b'))
>>> moved_watermark(moved.stored, {(0, "b"): 9_000}, event_time, now=1).watermarks
Watermarks(before=6000, after=6500)
>>> moved_watermark(None, {}, EventTime(number=2, by_clock=True), now=5_000).watermarks.after
4999
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hintplan.plans.errors import RunError
from hintplan.runtime.engine.marks import Marks
from hintplan.runtime.operator import FOREVER, NEVER, Watermarks
from hintplan.runtime.storage.manifest import SplitMark, StoredWatermark


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkSource:
    """A source of an operator's watermark: its ``number`` in marks, and in ms its delay and its idle timeout.

    An idle timeout of 0 never ends. An operator as a source has no delay. Its mark shows if all of its own sources are
    idle, but it is not called in batches without any of their rows. A source that is ``read_once`` ends with the first
    batch.
    """

    number: int
    delay: int = 0
    idle_timeout: int = 0
    is_operator: bool = False
    read_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """The time of an operator: the ``sources`` of its watermark, and its own ``number`` in marks.

    The operator holds its watermark back for the operators above it by ``hold`` ms. It may go ``by_clock`` instead, and
    then has no sources.
    """

    number: int
    sources: tuple[MarkSource, ...] = ()
    hold: int = 0
    by_clock: bool = False

    @property
    def ends(self) -> Marks:
        """The marks that end the tables of the watermark, or the clock; none if it comes from operators only."""
        ended = [self.number] if self.by_clock else [each.number for each in self.sources if not each.is_operator]
        return {(number, None): FOREVER for number in ended}


@dataclass(frozen=True, slots=True)
class Holder:
    """The position of the source with the lowest watermark, and the split; None for a source without rows."""

    source: int
    split: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The ``watermarks`` of a batch, and the state to store after it.

    ``holder`` is None if all sources are idle.
    """

    watermarks: Watermarks
    stored: StoredWatermark
    holder: Holder | None

    def mark(self, hold: int) -> int | None:
        """Return the mark of the operator for the operators above it, which it holds back by ``hold`` ms."""
        return None if self.holder is None else _less(self.watermarks.after, hold)


def moved_watermark(stored: StoredWatermark | None, marks: Marks, event_time: EventTime, now: int) -> Moved:
    """Return the watermark after a batch at ``now`` (ms) with these ``marks``; ``stored`` is None in the first batch.

    Raise RunError if other sources were stored.
    """
    if event_time.by_clock:
        return _by_clock(stored, (event_time.number, None) in marks, now)
    sources = event_time.sources
    before = stored or StoredWatermark(after=NEVER, since=now, marks=((),) * len(sources))
    if len(before.marks) != len(sources):
        raise RunError(
            f"the stored watermark has {len(before.marks)} sources, and the operator has {len(sources)}",
            hint="run the plan and the version of hintplan that wrote the checkpoint, or start with a new one",
        )
    after = [_with_marks(splits, marks, source, now) for splits, source in zip(before.marks, sources, strict=True)]
    active: list[tuple[int, Holder]] = []
    expiries: list[tuple[int, int | None]] = []
    # Without sources, the rows are in the plan, and have all come with the first batch.
    ended: list[tuple[int, Holder]] = [] if sources else [(FOREVER, Holder(-1, None))]
    any_idle = False
    for position, (splits, source) in enumerate(zip(after, sources, strict=True)):
        if source.read_once:
            ended.append((FOREVER, Holder(position, None)))
        elif marks.get((source.number, ""), NEVER) is None:  # an operator whose sources are all idle
            any_idle = True
        elif not splits and not _is_idle(before.since, source, now):
            active.append((NEVER, Holder(position, None)))
            expiries.append((NEVER, _idle_at(before.since, source)))
        else:
            any_idle |= not splits
            for split in splits:
                entry = _less(split.highest, source.delay), Holder(position, split.split)
                if split.highest == FOREVER:
                    ended.append(entry)
                elif _is_idle(split.seen, source, now):
                    any_idle = True
                else:
                    active.append(entry)
                    expiries.append((entry[0], _idle_at(split.seen, source)))
    # Rows of an idle source may still come, so the end of the others does not close its windows.
    counted = active or ([] if any_idle else ended)
    at, holder = min(counted, key=lambda pair: pair[0], default=(before.after, None))
    reached = max(before.after, at)
    return Moved(
        watermarks=Watermarks(before.after, reached),
        stored=replace(before, after=reached, marks=tuple(after), due=_moves_at(expiries, reached)),
        holder=holder,
    )


def _by_clock(stored: StoredWatermark | None, is_ended: bool, now: int) -> Moved:
    """Return the time of a batch at ``now`` as a watermark; the clock ends in the last batch of a run that drains."""
    before = stored or StoredWatermark(after=NEVER, since=now, marks=())
    reached = FOREVER if is_ended else max(before.after, now - 1)
    return Moved(
        watermarks=Watermarks(before.after, reached),
        stored=replace(before, after=reached, due=None),
        holder=Holder(-1, None),
    )


def _moves_at(active: Sequence[tuple[int, int | None]], reached: int) -> int | None:
    """Return the time at which the watermark moves beyond ``reached`` by idle timeouts alone; None if it does not.

    ``active`` has the watermark of each source or split that counts, and the time at which it becomes idle; None if it
    never does. The watermark moves when all that hold it back are idle, and another is not.

    >>> _moves_at([(5, 100), (9, 200), (7, 300)], reached=7)
    >>> _moves_at([(5, 100), (9, 400), (7, 300)], reached=7)
    300
    """
    holding = [idle_at for at, idle_at in active if at <= reached]
    if not holding or None in holding:
        return None
    due = max(idle_at for idle_at in holding if idle_at is not None)
    moves = any(at > reached and (idle_at is None or idle_at > due) for at, idle_at in active)
    return due if moves else None


def _idle_at(since: int, source: MarkSource) -> int | None:
    """Return the time at which ``source``, or its split, becomes idle if it has had no row ``since`` then.

    An operator below has a clock of its own, which calls it.
    """
    return since + source.idle_timeout if source.idle_timeout and not source.is_operator else None


def watermark_text(watermark: int | None) -> str:
    """Return a watermark in ms as text.

    >>> watermark_text(1_500), watermark_text(FOREVER)
    ('watermark 1970-01-01 00:00:01.500 UTC', 'watermark at the end')
    """
    if watermark is None:
        return "no watermark yet"
    if watermark == FOREVER:
        return "watermark at the end"
    try:
        text = str(datetime(1970, 1, 1) + timedelta(milliseconds=watermark))
    except OverflowError:
        return f"watermark {watermark} ms"
    return f"watermark {text[:-3] if '.' in text else text} UTC"


def _with_marks(splits: Sequence[SplitMark], marks: Marks, source: MarkSource, now: int) -> tuple[SplitMark, ...]:
    """Return the ``splits`` of a source after the ``marks`` of a batch at ``now``, sorted by name.

    Without an idle timeout, a mark that is not higher changes nothing. So partitions without rows write nothing.
    """
    highest = {split.split: split for split in splits}
    seen = 0 if source.is_operator and not source.idle_timeout else now
    for (number, name), mark in marks.items():
        if number != source.number or mark is None:
            continue
        for split in (name,) if name is not None else ([*highest] or [""]):
            known = highest.get(split)
            if known is None or mark > known.highest or source.idle_timeout:
                highest[split] = SplitMark(split, mark if known is None else max(known.highest, mark), seen)
    return tuple(highest[name] for name in sorted(highest))


def _is_idle(since: int, source: MarkSource, now: int) -> bool:
    return bool(source.idle_timeout) and now - since >= source.idle_timeout


def _less(mark: int, delay: int) -> int:
    return mark if mark in (NEVER, FOREVER) else max(NEVER, mark - delay)

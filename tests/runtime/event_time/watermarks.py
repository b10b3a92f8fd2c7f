"""The watermark of an operator, batch by batch, as the rules define it: the oracle of the engine's marks.

A mark is the highest value of a watermark's base in a split of a source. The watermark of a split is its mark minus the
delay; of a source, the lowest of its splits; of an operator, the lowest of its sources, and it never goes back. A split
counts from its first row. A source or a split without a row for the idle timeout does not count; if none counts, the
watermark stays.

>>> marks = Marks()
>>> marks.see("", 10_000, now=0)
>>> moved(NEVER, [marks.watermark(delay=2_000, idle_timeout=0, now=0)])
8000
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.runtime.event_time.times import FOREVER, NEVER


class Marks:
    """The marks of the splits of one source, and when each split had a row."""

    def __init__(self) -> None:
        self.highest: dict[str, int] = {}
        self.active: dict[str, int] = {}
        self.begun: int | None = None

    def begin(self, now: int) -> None:
        """Note the time of the first batch, from which a source without rows is idle."""
        self.begun = now if self.begun is None else self.begun

    def see(self, split: str, highest: int, now: int) -> None:
        """Note a row or more of ``split``; ``highest`` is NEVER if the base of all of them is NULL."""
        self.highest[split] = max(self.highest.get(split, NEVER), highest)
        self.active[split] = now

    def end(self) -> None:
        """Note that the source has no more rows."""
        self.highest = dict.fromkeys(self.highest or [""], FOREVER)

    def watermark(self, *, delay: int, idle_timeout: int, now: int) -> int | None:
        """The watermark of the source: None if it is idle, NEVER if it counts and has had no row."""

        def is_idle(since: int | None) -> bool:
            return idle_timeout > 0 and since is not None and now - since >= idle_timeout

        if not self.highest:
            return None if is_idle(self.begun) else NEVER
        counted = [mark for split, mark in self.highest.items() if mark == FOREVER or not is_idle(self.active[split])]
        lowest = min(counted, default=None)
        return lowest if lowest in (None, NEVER, FOREVER) else lowest - delay


def moved(before: int, sources: Iterable[int | None]) -> int:
    """The watermark after a batch, from the watermark before it and the watermarks of the sources.

    >>> moved(5, [7, 9]), moved(5, [None, 9]), moved(5, [None]), moved(5, [9, NEVER])
    (7, 9, 5, 5)
    """
    return max(before, min((each for each in sources if each is not None), default=before))

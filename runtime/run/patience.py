"""Says that a run is alive while its first batch takes long: it reads all that is there, and Spark compiles for it.

>>> waiting = FirstBatch(began=0.0)
>>> waiting.news(19.0, ended=0), waiting.news(20.0, ended=0)
(None, 'no batch has ended yet after 20 s: the first one takes what is there')
>>> waiting.news(39.0, ended=0), waiting.news(41.0, ended=0)
(None, 'no batch has ended yet after 40 s: the first one takes what is there')
>>> waiting.news(900.0, ended=1) is None
True
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class FirstBatch:
    """Waits for the first batch of a run that ``began`` at a time in seconds: tells after ``due``, then twice that."""

    began: float
    due: float = 20.0

    def news(self, now: float, *, ended: int) -> str | None:
        """What to say at the time ``now``, if anything: nothing once a batch has ``ended``."""
        if ended or now - self.began < self.due:
            return None
        said, self.due = self.due, self.due * 2
        return f"no batch has ended yet after {said:.0f} s: the first one takes what is there"

"""Decides if and when a failed run is restarted.

The strategies have the names and defaults of Flink (``restart-strategy.*``, Flink 2.3). An exponential delay grows with
each failure, with a random jitter, so that many jobs do not restart at the same time. After some time without a
failure, the delay and the number of attempts are reset. A fixed delay counts all attempts. A failure rate counts the
failures within an interval.

>>> restarts = Restarts(Strategy(attempts=2, jitter=0.0), chance=lambda: 0.5)
>>> [restarts.delay(now) for now in (0.0, 5.0, 9.0)]
[1.0, 1.5, None]
>>> restarts.delay(7200.0), restarts.attempt
(1.0, 1)
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.settings.restart_strategy import EXPONENTIAL, FIXED, RATE, restart_strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A restart strategy with at most ``attempts`` restarts in a row, or None for any number; times in seconds.

    The pause is ``first``, multiplied by ``factor`` after each further failure, up to ``longest``, and varies by up to
    ``jitter`` of it. The failures are forgotten after ``reset`` and the last pause without a new one. With
    ``failures``, a run is not restarted after more than this number of failures ``within`` this time.
    """

    attempts: int | None = 0
    first: float = 1.0
    longest: float = 60.0
    factor: float = 1.5
    jitter: float = 0.1
    reset: float = 3600.0
    failures: int | None = None
    within: float = 60.0


NEVER = Strategy()


def configured(config: Mapping[str, str]) -> Strategy:
    """Return the strategy in the config of a plan."""
    strategy, values = restart_strategy(config)

    def seconds(name: str) -> float:
        return parse_duration(values[name]) / 1000

    if strategy == FIXED:
        return replace(_constant(seconds("delay")), attempts=int(values["attempts"]))
    if strategy == RATE:
        failures = int(values["max-failures-per-interval"])
        return replace(_constant(seconds("delay")), failures=failures, within=seconds("failure-rate-interval"))
    if strategy == EXPONENTIAL:
        first = seconds("initial-backoff")
        return Strategy(
            attempts=int(values["attempts-before-reset-backoff"]),
            first=first,
            longest=max(first, seconds("max-backoff")),
            factor=float(values["backoff-multiplier"]),
            jitter=float(values["jitter-factor"]),
            reset=seconds("reset-backoff-threshold"),
        )
    return NEVER


def _constant(delay: float) -> Strategy:
    return Strategy(attempts=None, first=delay, longest=delay, factor=1.0, jitter=0.0, reset=math.inf)


@dataclass(slots=True)
class Restarts:
    """The failures of a run so far.

    ``chance`` returns random numbers from 0 to 1. ``attempt`` counts restarts in a row.
    """

    strategy: Strategy
    chance: Callable[[], float] = random.random
    attempt: int = 0
    _pause: float = 0.0
    _failed: float | None = None
    _failures: list[float] = field(default_factory=list)

    def delay(self, now: float) -> float | None:
        """Return the pause before the next start after a failure at ``now``, in seconds; None for no restart."""
        strategy = self.strategy
        if self._failed is None or now - self._failed >= strategy.reset + self._pause:
            self.attempt, self._pause = 0, strategy.first
        else:
            self._pause = min(self._pause * strategy.factor, strategy.longest)
        self._failed = now
        if strategy.attempts is not None and self.attempt >= strategy.attempts:
            return None
        if strategy.failures is not None:
            self._failures = [*self._failures[-strategy.failures :], now]
            if len(self._failures) > strategy.failures and now - self._failures[0] <= strategy.within:
                return None
        self.attempt += 1
        spread = self._pause * strategy.jitter * (2 * self.chance() - 1)
        return min(max(self._pause + spread, strategy.first), strategy.longest)

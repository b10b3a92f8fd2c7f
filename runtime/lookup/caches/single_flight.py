"""One load per key at a time, whoever asks: the first to claim a key loads it, the others wait for what it finds.

>>> flights = SingleFlight()
>>> first = flights.claim([("EUR",)])
>>> second = flights.claim([("EUR",), ("USD",)])
>>> second.mine
[('USD',)]
>>> flights.land(first, {("EUR",): [("EUR", 1.08)]})
>>> second.theirs[("EUR",)].result()
{('EUR',): [('EUR', 1.08)]}
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from hintplan.runtime.lookup.api import Key, Row

Landing = Future[Mapping[Key, Sequence[Row]]]
"""What a claim found; a key that is not in it was given up, so whoever waited may try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The keys that one batch loads, with what it will find; and for those that others load, where that will be."""

    mine: list[Key]
    landing: Landing
    theirs: dict[Key, Landing]


class SingleFlight:
    """The loads in progress of one cache. A claim must be landed, with nothing if it failed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Key, Landing] = {}

    def claim(self, keys: Iterable[Key]) -> Claim:
        """Split ``keys`` into those the caller now must load, and those that others are loading."""
        mine: list[Key] = []
        theirs: dict[Key, Landing] = {}
        landing: Landing = Future()
        with self._lock:
            for key in keys:
                flight = self._flights.setdefault(key, landing)
                if flight is landing:
                    mine.append(key)
                else:
                    theirs[key] = flight
        return Claim(mine=mine, landing=landing, theirs=theirs)

    def land(self, claim: Claim, found: Mapping[Key, Sequence[Row]]) -> None:
        """Hand what was found to those who wait. The cache must have it before, or they would load again."""
        with self._lock:
            for key in claim.mine:
                del self._flights[key]
        claim.landing.set_result(found)

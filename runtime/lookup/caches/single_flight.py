"""One load per key at a time: the first caller to claim a key loads it, the others wait for the result.

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
"""The result of a claim. A claimed key that is missing from it was given up; callers that wait for it may load it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The keys that one batch loads, with the future of their result, and the futures of the keys that others load."""

    mine: list[Key]
    landing: Landing
    theirs: dict[Key, Landing]


class SingleFlight:
    """The loads in progress of one cache. Every claim must be landed; a failed claim is landed with an empty result."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Key, Landing] = {}

    def claim(self, keys: Iterable[Key]) -> Claim:
        """Split ``keys`` into the keys that the caller must load now, and the keys that others are loading."""
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

    def land(self, claim: Claim, answers: Mapping[Key, Sequence[Row]]) -> None:
        """Hand the result of ``claim`` to the callers that wait. Cache it before, or they would load the keys again."""
        with self._lock:
            for key in claim.mine:
                del self._flights[key]
        claim.landing.set_result(answers)

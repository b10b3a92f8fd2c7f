"""One load per key at a time, whoever asks: the first to claim a key loads it, the others wait for what it finds.

>>> flights = SingleFlight()
>>> mine, theirs = flights.claim([("EUR",)])
>>> flights.claim([("EUR",), ("USD",)])[0]
[('USD',)]
>>> flights.land({("EUR",): [("EUR", 1.08)]})
>>> flights.claim([("EUR",)])[0]
[('EUR',)]
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future

from runtime.lookup.api import Key, Row

__all__ = ["Landing", "SingleFlight"]

Landing = Future[Sequence[Row] | None]
"""What one key was found to have; None if its load was given up, so that whoever waited may try."""


class SingleFlight:
    """The loads in progress of one cache. A claim must end with :meth:`land` or :meth:`give_up`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Key, Landing] = {}

    def claim(self, keys: Iterable[Key]) -> tuple[list[Key], dict[Key, Landing]]:
        """Split ``keys`` into those the caller now must load, and those that others are loading."""
        mine: list[Key] = []
        theirs: dict[Key, Landing] = {}
        with self._lock:
            for key in keys:
                flight = self._flights.get(key)
                if flight is None:
                    self._flights[key] = Future()
                    mine.append(key)
                else:
                    theirs[key] = flight
        return mine, theirs

    def land(self, found: Mapping[Key, Sequence[Row]]) -> None:
        """Hand what was found to those who wait. The cache must have it before, or they would load again."""
        self._end([(key, rows) for key, rows in found.items()])

    def give_up(self, keys: Iterable[Key]) -> None:
        """End the claims to those of ``keys`` that did not land."""
        self._end([(key, None) for key in keys])

    def _end(self, results: Sequence[tuple[Key, Sequence[Row] | None]]) -> None:
        with self._lock:
            ended = [(self._flights.pop(key, None), rows) for key, rows in results]
        for flight, rows in ended:
            if flight is not None:
                flight.set_result(rows)

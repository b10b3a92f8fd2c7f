"""How a source is asked: attempts on a miss, tries on a failure, time allowed, and what the errors say.

A *miss* is an answer: the source has no row for the key. Retry on miss asks again after a fixed delay. A *failure* is
no answer: the call is made again after a growing delay, at most ``max_failures`` times, and then fails the query. The
two are counted apart, so a row takes at most 1 + ``max_attempts`` answered calls.

>>> [backoff(failure) for failure in range(4)]
[100, 200, 400, 800]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from plans.errors import RunError
from runtime.lookup.api import AsyncLookupFunction, Key, LookupFunction, Row

__all__ = ["Answers", "FetchPolicy", "answers", "backoff", "chunks", "failed", "named", "timed_out"]

_FIRST_BACKOFF = 100
_LONGEST_BACKOFF = 10_000
_SHOWN_KEYS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy:
    """The settings of one lookup operator that its executor goes by; times in ms.

    ``max_attempts`` counts looks after the first, ``delay`` apart; 0 for no retry on miss. ``timeout`` covers all
    attempts of a key, 0 for none; only asynchronous calls can be timed out. ``capacity`` bounds asynchronous calls.
    Without ``caches_misses``, a miss is not a final answer: whoever asked decides when it is.
    """

    operator: str
    table: str
    capacity: int
    timeout: int
    ordered: bool
    max_attempts: int
    delay: int
    max_failures: int
    caches_misses: bool = True


@dataclass(frozen=True, slots=True)
class Answers:
    """The last answer for each key, and when it came, in ms of the clock that caches go by."""

    rows: dict[Key, list[Row]] = field(default_factory=dict)
    at: dict[Key, int] = field(default_factory=dict)

    def add(self, keys: Sequence[Key], rows: Sequence[list[Row]], now: int) -> None:
        """Take the answers for ``keys``, which came ``now``."""
        self.rows.update(zip(keys, rows, strict=True))
        self.at.update(dict.fromkeys(keys, now))

    def update(self, other: Answers) -> None:
        """Take the answers of ``other``."""
        self.rows.update(other.rows)
        self.at.update(other.at)


def backoff(failure: int) -> int:
    """Milliseconds to wait after the ``failure``-th failure in a row, counted from 0."""
    return min(_FIRST_BACKOFF << min(failure, 10), _LONGEST_BACKOFF)


def chunks(function: LookupFunction | AsyncLookupFunction, keys: Sequence[Key]) -> Iterator[list[Key]]:
    """``keys`` in the portions in which ``function`` is asked."""
    size = max(function.bulk_size, 1) if function.bulk else 1
    remaining = iter(keys)
    while chunk := list(islice(remaining, size)):
        yield chunk


def answers(policy: FetchPolicy, keys: Sequence[Key], found: Sequence[Iterable[Row]]) -> list[list[Row]]:
    """What a source returned for ``keys``, as lists; RunError if it has not one answer per key."""
    if len(found) != len(keys):
        raise RunError(f"{named(policy)}: the source returned {len(found)} answers for {len(keys)} keys")
    return [list(rows) for rows in found]


def named(policy: FetchPolicy) -> str:
    """How errors name the lookup."""
    return f"operator {policy.operator} (lookup in table {policy.table})"


def failed(policy: FetchPolicy, keys: Sequence[Key], tries: int, error: BaseException) -> RunError:
    """What ends the query when the source keeps failing."""
    times = "once" if tries == 1 else f"{tries} times"
    return RunError(
        f"{named(policy)}: looking up {_shown(keys)} failed {times}: {type(error).__name__}: {error}",
        hint="lookup.max-retries says how often a failed lookup is tried again",
    )


def timed_out(policy: FetchPolicy, keys: Sequence[Key], elapsed: int) -> RunError:
    """What ends the query when an answer takes too long."""
    return RunError(
        f"{named(policy)}: looking up {_shown(keys)} timed out after {elapsed} ms, {policy.timeout} ms are allowed",
        hint="async.timeout of the operator covers all attempts of a key",
    )


def _shown(keys: Sequence[Key]) -> str:
    texts = ["(" + ", ".join(map(repr, key)) + ")" for key in keys[:_SHOWN_KEYS]]
    if len(keys) > _SHOWN_KEYS:
        texts.append(f"{len(keys) - _SHOWN_KEYS} more")
    return f"key{'s' if len(keys) > 1 else ''} {', '.join(texts)}"

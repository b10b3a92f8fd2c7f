"""The rules for calls to a source: retries on a miss and on a failure, the timeout, and the texts of errors.

A *miss* is an answer: the source has no row for the key. Retry on miss repeats the lookup after a fixed delay. A
*failure* is no answer: the call is repeated after a growing delay, at most ``max_failures`` times, and then fails the
query. Misses and failures are counted separately, so a row takes at most 1 + ``max_attempts`` answered calls.

>>> [backoff(failure) for failure in range(4)]
[100, 200, 400, 800]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupFunction, Row
from hintplan.runtime.worker.exceptions import NEVER_HEAL, said

_FIRST_BACKOFF = 100
_LONGEST_BACKOFF = 10_000
_SHOWN_KEYS = 3
_EMPTY = "return a list of tuples; an empty one if the table has no row for the key"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy:
    """The settings of one lookup operator that govern its calls; times are in ms.

    ``max_attempts`` counts the retries on a miss, ``delay`` apart; 0 for none. ``timeout`` covers all attempts of a
    key, 0 for none; only asynchronous calls can time out. ``capacity`` bounds concurrent asynchronous calls.

    Without ``caches_misses``, a miss is not final: the caller decides when it is. ``declared`` are the columns, in
    order, of the rows that a user-defined class returns. A connector converts its own rows and has none.
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
    declared: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Answers:
    """The last answer for each key, and its time, in ms of the clock by which cache entries expire."""

    rows: dict[Key, list[Row]] = field(default_factory=dict)
    at: dict[Key, int] = field(default_factory=dict)

    def add(self, keys: Sequence[Key], rows: Sequence[list[Row]], now: int) -> None:
        """Record the answers for ``keys``, which came at ``now``."""
        self.rows.update(zip(keys, rows, strict=True))
        self.at.update(dict.fromkeys(keys, now))

    def update(self, other: Answers) -> None:
        """Record the answers of ``other``."""
        self.rows.update(other.rows)
        self.at.update(other.at)


def backoff(failure: int) -> int:
    """Return the ms to wait after the ``failure``-th failure in a row, counted from 0."""
    return min(_FIRST_BACKOFF << min(failure, 10), _LONGEST_BACKOFF)


def chunks(function: LookupFunction | AsyncLookupFunction, keys: Sequence[Key]) -> Iterator[list[Key]]:
    """Yield ``keys`` in the portions that one call of ``function`` takes."""
    size = max(function.bulk_size, 1) if function.bulk else 1
    remaining = iter(keys)
    while chunk := list(islice(remaining, size)):
        yield chunk


def answers(policy: FetchPolicy, keys: Sequence[Key], found: Sequence[Iterable[Row]]) -> list[list[Row]]:
    """Return the rows that a source returned for ``keys`` as lists; RunError unless each key has a valid answer."""
    if not isinstance(found, Iterable):
        shown = f"{type(found).__name__} for {_shown(keys)}"
        raise RunError(f"{named(policy)}: the source returned {shown}, expected rows for each key", hint=_EMPTY)
    listed = list(found)
    if len(listed) != len(keys):
        raise RunError(f"{named(policy)}: the source returned {len(listed)} answers for {len(keys)} keys")
    return [_rows(policy, key, rows) for key, rows in zip(keys, listed, strict=True)]


def _rows(policy: FetchPolicy, key: Key, rows: object) -> list[Row]:
    """Return the rows of one key as a list; RunError if the source returned something else."""
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes | Mapping):
        shown = "None" if rows is None else f"a {type(rows).__name__}"
        message = f"{named(policy)}: the source returned {shown} for {_shown([key])}, expected its rows"
        raise RunError(message, hint=_EMPTY)
    row_list = list(rows)
    for row in row_list:
        if not isinstance(row, tuple | list):
            shown = "None" if row is None else f"a {type(row).__name__}"
            message = f"{named(policy)}: the source returned {shown} as a row of {_shown([key])}, expected a tuple"
            raise RunError(message, hint=_EMPTY)
    return row_list


def named(policy: FetchPolicy) -> str:
    """Return the name of the lookup for errors."""
    return f"operator {policy.operator} (lookup in table {policy.table})"


def failed(policy: FetchPolicy, keys: Sequence[Key], tries: int, error: BaseException) -> RunError:
    """Return the error that ends the query when the source keeps failing."""
    times = "once" if tries == 1 else f"{tries} times"
    may_heal = isinstance(error, Exception) and not isinstance(error, NEVER_HEAL)
    kind = Unavailable if may_heal and tries > policy.max_failures else RunError
    return kind(
        f"{looking_up(policy, keys)} failed {times}: {said(error)}",
        hint="lookup.max-retries sets how often a failed lookup is repeated"
        if tries > policy.max_failures
        else f"{type(error).__name__} is not tried again unless retry_on of the class names it",
    )


def timed_out(
    policy: FetchPolicy, keys: Sequence[Key], elapsed: int, failures: int = 0, last: BaseException | None = None
) -> RunError:
    """Return the error that ends the query when an answer takes too long; ``last`` is the last of its ``failures``."""
    cause = "" if last is None else f"; try {failures} of {1 + policy.max_failures} failed: {said(last)}"
    return Unavailable(
        f"{looking_up(policy, keys)} timed out after {elapsed} ms, {policy.timeout} ms are allowed{cause}",
        hint="async.timeout of the operator covers all attempts of a key",
    )


def looking_up(policy: FetchPolicy, keys: Sequence[Key]) -> str:
    """Return the description of a call for ``keys``, for errors."""
    return f"{named(policy)}: looking up {_shown(keys)}"


def _shown(keys: Sequence[Key]) -> str:
    texts = ["(" + ", ".join(map(repr, key)) + ")" for key in keys[:_SHOWN_KEYS]]
    if len(keys) > _SHOWN_KEYS:
        texts.append(f"{len(keys) - _SHOWN_KEYS} more")
    return f"key{'s' if len(keys) > 1 else ''} {', '.join(texts)}"

"""Lookup requests: their rules, the keys that they look up, their answers, and the texts of errors.

A *miss* is an answer: the source has no row for the key. Retry on miss repeats the lookup after a fixed delay. A
*failure* is no answer: the call is repeated after a growing delay, and then fails the query. Misses and failures are
counted separately, so a row takes at most 1 + ``max_attempts`` answered calls.

>>> [backoff(failures) for failures in range(1, 5)]
[100, 200, 400, 800]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupFunction, Row
from hintplan.runtime.requests.request import Request, RequestPolicy
from hintplan.runtime.worker.clock import Clock

_FIRST_BACKOFF = 100
_LONGEST_BACKOFF = 10_000
_SHOWN_KEYS = 3
_EMPTY = "return a list of tuples; an empty one if the table has no row for the key"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy(RequestPolicy):
    """The rules of one lookup operator; times are in ms.

    ``max_attempts`` counts the retries on a miss, ``delay`` apart; 0 for none. Without ``caches_misses``, a miss is not
    final: the caller decides when it is. ``declared`` are the columns, in order, of the rows that a user-defined class
    returns. A connector converts its own rows and has none.
    """

    table: str
    ordered: bool
    max_attempts: int
    delay: int
    caches_misses: bool = True
    declared: tuple[Column, ...] = ()

    @property
    def where(self) -> str:
        """The operator and its table, for errors."""
        return f"operator {self.operator} (lookup in table {self.table})"

    def pause(self, failures: int) -> int:
        return backoff(failures)


def backoff(failures: int) -> int:
    """Return the ms to wait after the ``failures``-th failure in a row, counted from 1."""
    return min(_FIRST_BACKOFF << min(failures - 1, 10), _LONGEST_BACKOFF)


@dataclass(slots=True, kw_only=True, eq=False)
class KeyRequest(Request):
    """A request for the rows of ``keys``, and later only for the keys that still lack a row."""

    unit: ClassVar[str] = "key"
    retries_hint: ClassVar[str] = "lookup.max-retries sets how often a failed lookup is repeated"
    code_hint: ClassVar[str] = "is not tried again unless retry_on of the class names it"

    policy: FetchPolicy
    keys: list[Key]

    def __str__(self) -> str:
        return f"{self.policy.where}: looking up {_key_text(self.keys)}"


@dataclass(slots=True, kw_only=True, eq=False)
class LoadRequest(Request):
    """The request of a full cache for all rows of its table."""

    unit: ClassVar[str] = "load"
    retries_hint: ClassVar[str] = "lookup.max-retries sets how often the first load is repeated"
    code_hint: ClassVar[str] = KeyRequest.code_hint

    policy: FetchPolicy

    def __str__(self) -> str:
        return f"{self.policy.where}: loading the full cache"


@dataclass(slots=True)
class Answers:
    """The last answer for each key, and its time, in ms of the clock by which cache entries expire."""

    rows: dict[Key, list[Row]] = field(default_factory=dict)
    at: dict[Key, int] = field(default_factory=dict)

    def update(self, other: Answers) -> None:
        """Record the answers of ``other``."""
        self.rows.update(other.rows)
        self.at.update(other.at)

    def misses(self, keys: Iterable[Key]) -> list[Key]:
        """Return the ``keys`` without a row."""
        return [key for key in keys if not self.rows[key]]


def key_requests(
    policy: FetchPolicy, function: LookupFunction | AsyncLookupFunction, keys: Sequence[Key]
) -> Iterator[KeyRequest]:
    """Yield requests for ``keys``, in the portions that one call of ``function`` takes."""
    size = max(function.bulk_size, 1) if function.bulk else 1
    remaining = iter(keys)
    while portion := list(islice(remaining, size)):
        yield KeyRequest(policy=policy, keys=portion, size=len(portion))


def answers(policy: FetchPolicy, keys: Sequence[Key], returned: Iterable[Iterable[Row]], clock: Clock) -> Answers:
    """Return what a source returned for ``keys``, at this moment; RunError unless each key has a valid answer."""
    if not isinstance(returned, Iterable):
        kind = f"{type(returned).__name__} for {_key_text(keys)}"
        raise RunError(f"{policy.where}: the source returned {kind}, expected rows for each key", hint=_EMPTY)
    rows_by_key = list(returned)
    if len(rows_by_key) != len(keys):
        raise RunError(f"{policy.where}: the source returned {len(rows_by_key)} answers for {len(keys)} keys")
    valid = {key: _rows(policy, key, rows) for key, rows in zip(keys, rows_by_key, strict=True)}
    return Answers(valid, dict.fromkeys(keys, clock.elapsed()))


def _rows(policy: FetchPolicy, key: Key, rows: object) -> list[Row]:
    """Return the rows of one key as a list; RunError if the source returned something else."""
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes | Mapping):
        kind = "None" if rows is None else f"a {type(rows).__name__}"
        message = f"{policy.where}: the source returned {kind} for {_key_text([key])}, expected its rows"
        raise RunError(message, hint=_EMPTY)
    row_list = list(rows)
    for row in row_list:
        if not isinstance(row, tuple | list):
            kind = "None" if row is None else f"a {type(row).__name__}"
            message = f"{policy.where}: the source returned {kind} as a row of {_key_text([key])}, expected a tuple"
            raise RunError(message, hint=_EMPTY)
    return row_list


def _key_text(keys: Sequence[Key]) -> str:
    texts = ["(" + ", ".join(map(repr, key)) + ")" for key in keys[:_SHOWN_KEYS]]
    if len(keys) > _SHOWN_KEYS:
        texts.append(f"{len(keys) - _SHOWN_KEYS} more")
    return f"key{'s' if len(keys) > 1 else ''} {', '.join(texts)}"

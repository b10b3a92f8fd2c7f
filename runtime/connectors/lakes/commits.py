"""Batches that a table in a data lake remembers, by who wrote them: which is next, and what others do meanwhile.

Knows neither Spark nor a lake.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.lakes.target import Target

Commit = tuple[str, int]
"""The writer and the number of a batch, which the table remembers."""

Opened = TypeVar("Opened")

_WAIT_SECONDS = 0.1
_LONGEST_SECONDS = 5.0


def _pause(number: int) -> None:
    """Wait after attempt ``number``, from 0 on, for a while that writers do not share: longer from time to time."""
    time.sleep(random.uniform(0, min(_WAIT_SECONDS * 2**number, _LONGEST_SECONDS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Whether the rows of a batch were asked for, and what the table has since; None if the batch changed nothing."""

    asked: bool
    has: Mapping[str, Any] | None


class Changed(Exception):
    """Somebody else has changed the table meanwhile, so that the commit is to be made anew."""


def committed(
    target: Target,
    commit: Commit,
    *,
    opened: Callable[[], Opened],
    last_batch: Callable[[Opened, str], int],
    attempt: Callable[[Opened], bool],
    has: Callable[[Opened, bool], Mapping[str, Any]],
    pause: Callable[[int], None] = _pause,
) -> Committed:
    """Commit by ``attempt``, which says whether there was anything to commit, unless the table has the batch.

    ``has`` says what the table has then, by what was opened, and whether that is going to be committed to.

    Tried ``sink.max-retries`` times more while others change the table, which each time is ``opened`` anew, after a
    ``pause``.
    """
    retries = int(target.options.get("sink.max-retries", "3"))
    for number in range(retries + 1):
        try:
            table = opened()  # which may create it, as somebody else may, too
            if not _is_next(target, last_batch(table, commit[0]), commit[1]):
                return Committed(asked=False, has=has(table, False))
            later = has(table, True)
            return Committed(asked=True, has=later if attempt(table) else None)
        except Changed as error:
            if number == retries:
                raise RunError(
                    f"table {target.name} cannot be written to: {error}",
                    hint="who else writes to the table? The batch runs again when the job is started again",
                    path=target.path,
                ) from None
            pause(number)
    raise AssertionError


def _is_next(target: Target, done: int, batch: int) -> bool:
    """Whether ``batch`` is to be written, after ``done``; RunError if the table is ahead of the query."""
    if done > batch:
        raise RunError(
            f"{target.called} has batch {done} of this query, which is at batch {batch}",
            hint="its checkpoint is older than the table: restore the one that wrote it, or start both anew",
            path=target.path,
        )
    return done < batch

"""Commits batches to a table in a data lake: skips a batch that the table has, and retries after concurrent commits.

Knows neither Spark nor a lake.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.lakes.target import LakeTarget

Commit = tuple[str, int]
"""The writer and the number of a batch, which the table records."""

Opened = TypeVar("Opened")

_WAIT_SECONDS = 0.1
_LONGEST_SECONDS = 5.0


def _pause(number: int) -> None:
    """Wait a random time after attempt ``number``, from 0 on; the limit doubles with each attempt."""
    time.sleep(random.uniform(0, min(_WAIT_SECONDS * 2**number, _LONGEST_SECONDS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The outcome of a commit. ``computed`` is false if the table already had the batch, so that no rows were computed.

    ``has`` are facts about the table afterwards, or None if the batch changed nothing.
    """

    computed: bool
    has: Mapping[str, Any] | None


class Changed(Exception):
    """Another writer has changed the table in the meantime, so the commit must be repeated."""


def commit_batch(
    target: LakeTarget,
    commit: Commit,
    *,
    open_table: Callable[[], Opened],
    last_batch: Callable[[Opened, str], int],
    attempt: Callable[[Opened], bool],
    has: Callable[[Opened, bool], Mapping[str, Any]],
    pause: Callable[[int], None] = _pause,
) -> Committed:
    """Commit a batch by ``attempt``, unless the table has it; ``attempt`` returns true if it committed anything.

    ``has`` returns the facts about the table after the batch, given the table and whether a commit to it
    follows.

    If another writer changes the table, the commit is repeated up to ``sink.max-retries`` times, each time after a
    ``pause`` and with the table opened again.
    """
    retries = int(target.options.get("sink.max-retries", "3"))
    for number in range(retries + 1):
        try:
            table = open_table()  # may create the table, and so may another writer
            if not _is_next(target, last_batch(table, commit[0]), commit[1]):
                return Committed(computed=False, has=has(table, False))
            later = has(table, True)
            return Committed(computed=True, has=later if attempt(table) else None)
        except Changed as error:
            if number == retries:
                raise RunError(
                    f"table {target.name} cannot be written to: {error}",
                    hint="who else writes to the table? The batch runs again when the job is started again",
                    path=target.path,
                ) from None
            pause(number)
    raise AssertionError


def _is_next(target: LakeTarget, done: int, batch: int) -> bool:
    """Return true if ``batch`` is newer than ``done``; raise RunError if the table is ahead of the query."""
    if done > batch:
        raise RunError(
            f"{target.called} has batch {done} of this query, which is at batch {batch}",
            hint="its checkpoint is older than the table: restore the checkpoint that wrote it, or start both from "
            "scratch",
            path=target.path,
        )
    return done < batch

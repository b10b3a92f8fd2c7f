"""Refuses a directory of somebody else's files as a checkpoint, before anything is written into it.

A run takes a lock or a lease in a new checkpoint first, and on Spark Connect writes the record first. So a directory
with files and none of the three is no checkpoint, however early its first run ended.

>>> refuse_foreign("cp", ["sink_r/offsets/0", "hintplan.lock", "lost+found/"])
>>> refuse_foreign("in", ["orders.json", ".DS_Store"])
Traceback (most recent call last):
    ...
hintplan.plans.errors.RunError: in is no checkpoint of hintplan, and there is something in it: orders.json
  hint: name a directory that is empty or does not exist, such as in/checkpoint
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from hintplan.plans.errors import RunError
from hintplan.plans.text.counts import first_of
from hintplan.runtime.checkpoint.lease import LEASES
from hintplan.runtime.checkpoint.local_lock import LOCK

_OURS = ("hintplan", LOCK, LEASES)
_LOGS = ("commits", "offsets")
_OF_SYSTEMS = ("$RECYCLE.BIN", "System Volume Information", "Thumbs.db", "desktop.ini", "lost+found")
"""Files and directories that nobody has put there."""
_NAMED = 3


def refuse_foreign(checkpoint: str, paths: Iterable[str]) -> None:
    """Raise RunError unless the ``paths`` below ``checkpoint`` may belong to a checkpoint, complete or not.

    A directory with batches of a query has lost its record, which :mod:`hintplan.runtime.checkpoint.parts` reports.
    """
    below: dict[str, set[str]] = {}
    for path in paths:
        top, _, rest = path.partition("/")
        below.setdefault(top.removesuffix("_$folder$"), set()).add(rest.partition("/")[0])
    if any(name in below for name in _OURS):
        return
    if any(name in _LOGS or name.startswith("logs.") for names in below.values() for name in names):
        return
    foreign = sorted(name for name in below if name and not name.startswith(".") and name not in _OF_SYSTEMS)
    if foreign:
        raise RunError(
            f"{checkpoint} is no checkpoint of hintplan, and there is something in it: {first_of(foreign, _NAMED)}",
            hint=f"name a directory that is empty or does not exist, such as {checkpoint.rstrip('/')}/checkpoint",
        )


def upper_paths(directory: str) -> Iterator[str]:
    """Yield the paths of what is in the local ``directory``, and in what is in it; none if it cannot be read."""
    for name in _listed(directory):
        yield name
        yield from (f"{name}/{inner}" for inner in _listed(os.path.join(directory, name)))


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []

"""Tells from files alone, before Spark lists them, if a run that takes what is there may find something new.

It only decides when Python workers start. If it is wrong, they start a second later, or for nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from hintplan.plans.checkpoint.record import absolute, is_local_path
from hintplan.plans.connectors.reach import FilePlace
from hintplan.plans.connectors.table import places
from hintplan.plans.model.plan import Plan

_MOST = 10_000
"""Files that are looked at; beyond them, something is taken to be new."""


def may_find_rows(plan: Plan, checkpoint: str | None) -> bool:
    """False if all sources of ``plan`` are directories here, with no file that changed after the last batch ended."""
    if checkpoint is None or not is_local_path(checkpoint):
        return True
    read = [places(plan.tables[scan.table]) for scan in plan.scans]
    if not all(found and all(isinstance(place, FilePlace) and place.is_local for place in found) for found in read):
        return True
    folders = {place.local_path for found in read for place in found if isinstance(place, FilePlace)}
    try:
        ended = _last_commit(absolute(checkpoint).removeprefix("file://"))
        files = [time for folder in folders for time in _times(folder)]
    except (OSError, _TooManyError):
        return True
    return ended is None or any(time >= ended for time in files)


class _TooManyError(Exception):
    """There are more files than are looked at."""


def _last_commit(checkpoint: str) -> float | None:
    """The time at which Spark noted the end of a batch last."""
    logs = [f"{entry.path}/commits" for entry in os.scandir(checkpoint) if entry.is_dir()]
    return max((time for folder in logs if os.path.isdir(folder) for time in _times(folder)), default=None)


def _times(folder: str) -> Iterator[float]:
    """When the files in and below ``folder`` were changed."""
    seen, folders = 0, [folder]
    while folders:
        for entry in os.scandir(folders.pop()):
            if (seen := seen + 1) > _MOST:
                raise _TooManyError
            if entry.is_dir():
                folders.append(entry.path)
            else:
                yield entry.stat().st_mtime

"""Checks the files of local sources, before Spark lists them, for new input of a ``--once`` run.

The result only decides when Python workers start. If it is wrong, they start a second later, or without need.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from hintplan.plans.checkpoint.record import absolute, is_local_path
from hintplan.plans.connectors.reach import FilePlace
from hintplan.plans.connectors.table import places
from hintplan.plans.model.plan import Plan

_MOST = 10_000
"""The maximum number of files to check. With more files, assume that there is new input."""


def may_find_rows(plan: Plan, checkpoint: str | None) -> bool:
    """Return False if all sources of ``plan`` are local directories without changes since the last batch ended."""
    if checkpoint is None or not is_local_path(checkpoint):
        return True
    read = [places(plan.tables[scan.table]) for scan in plan.scans]
    if not all(
        table_places and all(isinstance(place, FilePlace) and place.is_local for place in table_places)
        for table_places in read
    ):
        return True
    folders = {place.local_path for table_places in read for place in table_places if isinstance(place, FilePlace)}
    try:
        ended = _last_commit(absolute(checkpoint).removeprefix("file://"))
        files = [time for folder in folders for time in _times(folder)]
    except (OSError, _TooManyError):
        return True
    return ended is None or any(time >= ended for time in files)


class _TooManyError(Exception):
    """There are more files than are checked."""


def _last_commit(checkpoint: str) -> float | None:
    """Return the time of Spark's last commit."""
    logs = [f"{entry.path}/commits" for entry in os.scandir(checkpoint) if entry.is_dir()]
    return max((time for folder in logs if os.path.isdir(folder) for time in _times(folder)), default=None)


def _times(folder: str) -> Iterator[float]:
    """Yield the modification times of the files in and below ``folder``."""
    seen, folders = 0, [folder]
    while folders:
        for entry in os.scandir(folders.pop()):
            if (seen := seen + 1) > _MOST:
                raise _TooManyError
            if entry.is_dir():
                folders.append(entry.path)
            else:
                yield entry.stat().st_mtime

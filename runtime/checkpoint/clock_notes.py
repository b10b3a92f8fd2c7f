"""Warns if the clock of this machine is behind the last batch of a checkpoint.

State TTLs count from the times of batches. Spark writes the time of each batch in milliseconds into the second line of
its offsets:

    offsets/7        v1 | {"batchWatermarkMs":0,"batchTimestampMs":1795670399921,...} | {"logOffset": 3}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from hintplan.plans.text.counts import human_duration
from hintplan.runtime.checkpoint.files import CheckpointFiles
from hintplan.runtime.checkpoint.parts import last_batches

_TOLERATED_MS = 10_000
"""A difference that is normal between synchronized clocks."""


def clock_notes(files: CheckpointFiles, logs: Iterable[str], now_ms: int) -> Iterator[str]:
    """Yield a warning if ``now_ms``, the time of this machine, is before the last batch in ``logs``.

    The queries with these ``logs`` are about to continue. A checkpoint that is not on a disk of this machine is not
    checked.
    """
    if not files.whole:
        return
    paths = [f"{log}/offsets/{began}" for log in logs if (began := last_batches(files, log)[0]) >= 0]
    behind = max((_time(offsets) for offsets in files.read(paths).values()), default=0) - now_ms
    if behind > _TOLERATED_MS:
        yield (
            f"the clock of this machine is {human_duration(behind)} behind the last batch of this checkpoint: "
            "state TTLs use the clock, so earlier rows are kept longer by that much"
        )


def _time(offsets: bytes) -> int:
    """Return the start time of a batch in ms, or 0 if its offsets have none."""
    try:
        started = json.loads(offsets.splitlines()[1])["batchTimestampMs"]
    except (ValueError, LookupError, TypeError):
        return 0
    return started if isinstance(started, int) else 0

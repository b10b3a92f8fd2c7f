"""Tells that the clock of this machine is behind the last batch of a checkpoint, which state TTLs count from.

Spark notes the time of each batch in milliseconds, in the second line of its offsets:

    offsets/7        v1 | {"batchWatermarkMs":0,"batchTimestampMs":1795670399921,...} | {"logOffset": 3}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from hintplan.plans.text.amounts import human_duration
from hintplan.runtime.checkpoint.files import CheckpointFiles
from hintplan.runtime.checkpoint.parts import last_batches

_TOLERATED_MS = 10_000
"""What clocks that are kept right may differ by."""


def clock_notes(files: CheckpointFiles, logs: Iterable[str], now_ms: int) -> Iterator[str]:
    """Say what there is to say of the clock, which shows ``now_ms``, before queries with these ``logs`` go on.

    Of a checkpoint that is not on a disk of this machine, nothing is known.
    """
    if not files.whole:
        return
    paths = [f"{each}/offsets/{began}" for each in logs if (began := last_batches(files, each)[0]) >= 0]
    behind = max((_time(found) for found in files.read(paths).values()), default=0) - now_ms
    if behind > _TOLERATED_MS:
        yield (
            f"the clock of this machine is {human_duration(behind)} behind the last batch of this checkpoint: "
            "state TTLs go by the clock, so what was written before is kept longer by that much"
        )


def _time(offsets: bytes) -> int:
    """When a batch began, in ms; 0 if its offsets do not say."""
    try:
        found = json.loads(offsets.splitlines()[1])["batchTimestampMs"]
    except (ValueError, LookupError, TypeError):
        return 0
    return found if isinstance(found, int) else 0

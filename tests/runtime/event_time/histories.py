"""Random histories for the tests of one kernel (../operators/): rows in batches, and the watermark after each.

The watermark is drawn, too, so a kernel meets any watermark, also ones that no delay would give. A history ends with a
batch without rows, which closes all windows. test_histories.py draws rows only, for whole plans that compute their
watermarks.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime

from hintplan.plans.evidence.ages import ENDS
from tests.runtime.event_time.models import Row
from tests.runtime.event_time.times import EPOCH, FOREVER, MILLISECOND, NEVER

History = list[tuple[list[Row], int]]


def moment(time: int, *, zoned: bool = False) -> datetime:
    """A time in ms as a value of a column; ``zoned`` for TIMESTAMP_LTZ."""
    at = EPOCH + time * MILLISECOND
    return at if zoned else at.replace(tzinfo=None)


def millis(at: datetime) -> int:
    """A value of a column as ms."""
    return (at.replace(tzinfo=UTC) - EPOCH) // MILLISECOND


def history(
    rng: random.Random, *, batches: int = 6, size: int = 25, span: tuple[int, int] = (-100, 1500), sides: int = 1
) -> History:
    """Rows in any order, some of them late, with few keys, among them NULL."""
    low, high = span
    result: History = []
    after = NEVER
    for _ in range(batches):
        rows = [
            Row(
                rng.randint(low, high),
                rng.choice(["a", "b", "c", None]),
                rng.randint(0, 5),
                side=rng.randrange(sides),
            )
            for _ in range(rng.randint(0, size))
        ]
        after = max(after, rng.choice([NEVER, rng.randint(low, high), after]))
        result.append((rows, after))
    return [*result, ([], FOREVER)]


def in_order(rng: random.Random, *, size: int = 40, span: tuple[int, int] = (0, 1500), sides: int = 1) -> list[Row]:
    """Rows of which none is behind a watermark that is the highest time so far, in any cut."""
    rows = [
        Row(rng.randint(*span), rng.choice(["a", "b"]), rng.randint(0, 5), side=rng.randrange(sides))
        for _ in range(size)
    ]
    return sorted(rows, key=lambda row: row.time)


def cuts(rng: random.Random, rows: list[Row]) -> Iterable[History]:
    """The rows cut into batches in some ways, from a row a batch to all in one."""
    for share in (1.0, 0.5, 0.1, 0.0):
        result: History = []
        batch: list[Row] = []
        after = NEVER
        for number, row in enumerate(rows):
            batch.append(row)
            if number == len(rows) - 1 or rng.random() < share:
                after = max(after, *(each.time - 1 for each in batch))
                result.append((batch, after))
                batch = []
        yield [*result, ([], FOREVER)]


def in_buckets(lateness: list[tuple[int, int]], inputs: int) -> tuple[tuple[int, ...], ...]:
    """How many late rows of each input are in which bucket: the first that ends above their lateness."""
    ends = [*ENDS, 1 << 63]
    buckets = [[next(end for end in ends if late < end) for side, late in lateness if side == n] for n in range(inputs)]
    return tuple(tuple(of_input.count(end) for end in ends) for of_input in buckets)

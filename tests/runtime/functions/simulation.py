"""Functions in simulated time: each row has a script of how long its calls take, how many fail, what comes back.

:func:`schedule` is the reference: rows take the first free place in their order, and keep it until they are answered.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import RunError
from hintplan.runtime.functions import AsyncTableFunction
from hintplan.runtime.functions.call import CallPolicy
from hintplan.runtime.functions.metrics import FunctionCounters
from hintplan.runtime.functions.spec import FunctionSpec
from hintplan.runtime.functions.task import function_tables
from hintplan.runtime.functions.worker import OpenFunction
from hintplan.runtime.kernels.found_rows import JoinedRows
from tests.connectors.lookup.simulation import VirtualClock, VirtualEventLoop


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What calls for a row do: each takes as long as ``delays`` says, in ms; all but the last one fail.

    Before, each blocks the loop for ``blocks`` ms.
    """

    delays: tuple[int, ...]
    rows: int = 1
    blocks: int = 0

    def duration(self, retries: int, delay: int) -> tuple[int, bool]:
        """How long the row keeps its place, and whether it is answered."""
        made = self.delays[: retries + 1]
        return sum(made) + delay * (len(made) - 1), len(made) == len(self.delays)


@dataclass(slots=True, kw_only=True)
class World:
    """What is called, and when: ``calls`` has (id, start) of every call."""

    clock: VirtualClock
    scripts: Mapping[int, Script]
    calls: list[tuple[int, float]] = field(default_factory=list)
    attempts: dict[int, int] = field(default_factory=dict)
    running: int = 0
    most_running: int = 0


class Scripted(AsyncTableFunction):
    arguments = ("BIGINT",)
    result = "BIGINT"

    def __init__(self, world: World) -> None:
        self.world = world

    async def eval(self, row: int) -> list[int]:
        world = self.world
        attempt = world.attempts.get(row, 0)
        world.attempts[row] = attempt + 1
        world.calls.append((row, world.clock.time))
        world.running += 1
        world.most_running = max(world.most_running, world.running)
        script = world.scripts[row]
        world.clock.time += script.blocks
        try:
            if script.delays[attempt]:
                await asyncio.sleep(script.delays[attempt] / 1000)
            if attempt + 1 < len(script.delays):
                raise ConnectionError(f"away for {row}")
            return [100 * row + n for n in range(script.rows)]
        finally:
            world.running -= 1


def function_spec(function: Any, *, left: bool = False, **policy: Any) -> FunctionSpec:
    """``function`` called with the column ``id`` for each argument; ``n`` is what it returns."""
    return FunctionSpec(
        run="test",
        class_name=f"{function.__module__}.{getattr(function, '__qualname__', 'unnamed')}",
        kind=function.function_kind,
        allowed_modules=("tests",),
        policy=CallPolicy(operator="correlate_f", function="f", **policy),
        arguments=("id",) * len(function.arguments),
        declared=tuple(function.arguments),
        returned=(Column(name="n", type=function.result),),
        rows=JoinedRows(
            padded=left,
            conditions=(),
            output=pa.schema([("id", pa.int64()), ("n", pa.int64())]),
            origins=(("left", "id"), ("right", "n")),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a simulation; ``elapsed`` in ms."""

    rows: list[tuple[int, int | None]]
    counters: FunctionCounters
    world: World
    failure: str | None
    elapsed: float


def simulate(scripts: Sequence[Script], sizes: Sequence[int], *, left: bool = False, **policy: Any) -> Outcome:
    """Call the rows of ``scripts``, which are there at once, in batches of ``sizes``."""
    clock = VirtualClock()
    world = World(clock=clock, scripts=dict(enumerate(scripts)))
    event_loop = VirtualEventLoop(clock)
    function = Scripted(world)
    opened = OpenFunction(function_spec(function, left=left, **policy), function, event_loop)
    started, counters, failure = clock.time, FunctionCounters(), None
    rows: list[tuple[int, int | None]] = []
    try:
        for table in function_tables(batches(len(scripts), sizes), opened, counters):
            rows += [(row["id"], row["n"]) for row in table.to_pylist()]
    except RunError as error:
        failure = str(error)
    elapsed = clock.time - started
    event_loop.run_for(3_600_000)
    event_loop.close()
    return Outcome(rows=rows, counters=counters, world=world, failure=failure, elapsed=elapsed)


def batches(number: int, sizes: Sequence[int]) -> Iterator[pa.Table]:
    start = 0
    while start < number:
        for size in sizes:
            ids = list(range(start, min(start + size, number)))
            if ids:
                yield pa.table({"id": pa.array(ids, pa.int64())})
            start += size


def schedule(durations: Sequence[int], capacity: int) -> list[int]:
    """When each row starts."""
    free = [0] * capacity
    starts = []
    for duration in durations:
        start = heapq.heappop(free)
        starts.append(start)
        heapq.heappush(free, start + duration)
    return starts

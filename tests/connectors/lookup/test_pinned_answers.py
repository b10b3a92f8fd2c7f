"""A task that runs again is given the answers that were pinned, from every kind of source and cache, without Spark.

Rates come out of a source that never answers alike; a second worker has a source, and a cache, of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hintplan import compile_sql
from hintplan.plans.analysis.pinned import pinned_operators
from hintplan.plans.errors import RunError
from hintplan.runtime.functions import AsyncScalarFunction
from hintplan.runtime.functions.metrics import FunctionCounters
from hintplan.runtime.functions.task import function_tables
from hintplan.runtime.functions.worker import OpenFunction
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupContext, LookupFunction, Row, ScanFunction
from hintplan.runtime.lookup.caches.schedule import ThreadScheduler
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.spec import CacheSpec
from hintplan.runtime.lookup.task import lookup_tables
from hintplan.runtime.lookup.worker import OpenLookup
from hintplan.runtime.requests.pins import TaskPins
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.pins import BatchPins, PinPlace, RememberedPins
from hintplan.runtime.worker.clock import SystemClock
from hintplan.runtime.worker.event_loop import worker_event_loop
from tests.connectors.lookup.simulation import FOUND, spec
from tests.connectors.lookup.test_lookups_on_spark import DEFERRED, job
from tests.runtime.functions.simulation import function_spec

NUMBERS = count(1)


class Sync(LookupFunction):
    def lookup(self, key: Key) -> Iterable[Row]:
        return [(key[0], next(NUMBERS))]


class Async(AsyncLookupFunction):
    async def lookup(self, key: Key) -> Iterable[Row]:
        return [(key[0], next(NUMBERS))]


class Full(ScanFunction):
    def scan(self, context: LookupContext) -> Iterator[pa.Table]:
        yield pa.table([[1, 2, 3], [next(NUMBERS) for _ in range(3)]], schema=FOUND)


NONE = CacheSpec(kind="NONE")
PARTIAL = CacheSpec(kind="PARTIAL", max_rows=10)
FULL = CacheSpec(kind="FULL", interval=3_600_000)
SOURCES = [(Sync, NONE), (Sync, PARTIAL), (Async, NONE), (Async, PARTIAL), (Full, FULL)]


def pins(
    directory: Path,
    *,
    task: int = 0,
    run: int = 1,
    heeded: Sequence[str] = (),
    batch: int = 7,
    division: str = "2 of 2",
) -> TaskPins:
    place = PinPlace(
        root=str(directory),
        folder="0123",
        operator="lookup_r",
        run=run,
        replayed=batch,
        heeded=tuple(heeded),
        division=division,
    )
    return TaskPins(BatchPins(files_at(str(directory)), place, batch, RememberedPins()), task)


def ask(source: Any, cache: CacheSpec, keys: Sequence[int | None], to: TaskPins, **policy: Any) -> list[int | None]:
    """What a new worker finds for ``keys``."""
    clock = SystemClock()
    described = spec(cache)
    described = replace(described, policy=replace(described.policy, **policy))
    lookup = OpenLookup(described, source(), clock, worker_event_loop(), ThreadScheduler(clock))
    tables = [pa.table({"row": pa.array([row], pa.int64()), "k": pa.array([key])}) for row, key in enumerate(keys)]
    tables = [table.cast(pa.schema([("row", pa.int64()), ("k", pa.int64())])) for table in tables]
    found = list(lookup_tables(tables, lookup, LookupCounters(), to))
    lookup.close()
    return [row["at"] for table in found for row in table.to_pylist()]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "0123").iterdir())


@pytest.mark.parametrize(("source", "cache"), SOURCES)
def test_a_second_attempt_is_answered_as_the_first(tmp_path: Path, source: Any, cache: CacheSpec) -> None:
    first = ask(source, cache, [1, 2, None, 1, 3], pins(tmp_path))
    assert first[0] == first[3] != first[1]
    assert ask(source, cache, [1, 2, None, 1, 3], pins(tmp_path)) == first
    assert ask(source, cache, [1, 2, None, 1, 3], pins(tmp_path), ordered=False) == first
    assert ask(source, cache, [1, 2, None, 1, 3], pins(tmp_path, batch=8)) != first
    assert len(names(tmp_path)) == 2, "one for each batch"


@pytest.mark.parametrize(("source", "cache"), SOURCES)
def test_a_run_that_divides_rows_otherwise_asks_for_what_no_task_was_answered(
    tmp_path: Path, source: Any, cache: CacheSpec
) -> None:
    first, second = ask(source, cache, [1], pins(tmp_path)), ask(source, cache, [2], pins(tmp_path, task=1))
    replay = pins(tmp_path, run=2, heeded=names(tmp_path))
    both = ask(source, cache, [2, 1, 3], replay)
    assert both[:2] == [*second, *first]
    assert both[2] not in (*first, *second)
    assert ask(source, cache, [2, 1, 3], pins(tmp_path, run=2)) == both


@pytest.mark.parametrize(("source", "cache"), SOURCES)
def test_tasks_that_were_answered_in_two_ways_are_not_mixed(tmp_path: Path, source: Any, cache: CacheSpec) -> None:
    first = ask(source, cache, [1], pins(tmp_path))
    second = ask(source, cache, [1], pins(tmp_path, task=1))
    assert first != second
    heeded = names(tmp_path)
    assert ask(source, cache, [1], pins(tmp_path, task=1, run=2, heeded=heeded)) == second
    with pytest.raises(RunError, match="operator lookup_r: batch 7 runs again with its rows divided") as caught:
        ask(source, cache, [1, 1], pins(tmp_path, run=3, heeded=heeded, division="1 of 2"))
    assert f"remove {tmp_path}/0123/7.*" in str(caught.value)


@pytest.mark.parametrize(("source", "cache"), SOURCES)
def test_a_task_that_had_no_answer_asks_though_others_had_two(tmp_path: Path, source: Any, cache: CacheSpec) -> None:
    others = [ask(source, cache, [1, 2], pins(tmp_path, task=task))[0] for task in range(2)]
    third = ask(source, cache, [1, 3], pins(tmp_path, task=2, run=2, heeded=names(tmp_path)))
    assert third[0] not in others


class Ticket(AsyncScalarFunction):
    """Never the same, also for equal rows."""

    arguments = ("BIGINT",)
    result = "BIGINT"

    async def eval(self, number: int) -> int:
        return next(NUMBERS)


def call(to: TaskPins, ids: Sequence[int]) -> list[int]:
    opened = OpenFunction(function_spec(Ticket()), Ticket(), worker_event_loop())
    table = pa.table({"id": pa.array(ids, pa.int64())})
    found = list(function_tables([table], opened, FunctionCounters(), to))
    opened.close()
    return [row["n"] for part in found for row in part.to_pylist()]


def test_a_function_that_is_not_deterministic_has_returned_what_it_returned(tmp_path: Path) -> None:
    first = call(pins(tmp_path), [5, 5, 6])
    assert len({*first}) == 3
    assert call(pins(tmp_path), [5, 5, 6]) == first
    replayed = call(pins(tmp_path, run=2, heeded=names(tmp_path)), [6, 5])
    assert replayed == [first[2], first[0]]


SOURCE = """
    CREATE TABLE orders (id BIGINT, code STRING, pt AS PROCTIME()) WITH (
      'connector' = 'filesystem', 'path' = '/nowhere/orders', 'format' = 'json');
    CREATE TABLE rates (code STRING, rate DOUBLE) WITH (
      'connector' = 'jdbc', 'url' = 'jdbc:sqlite:/nowhere/rates.db', 'table-name' = 'rates');
    CREATE TABLE files (code STRING, rate DOUBLE) WITH (
      'connector' = 'filesystem', 'path' = '/nowhere/result', 'format' = 'json', 'sink.changelog' = 'true');
    CREATE TABLE lines (code STRING, rate DOUBLE) WITH ('connector' = 'print');
    CREATE VIEW found AS SELECT o.code, r.rate
    FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.code = r.code;
"""


@pytest.mark.parametrize(
    ("inserts", "wanted"),
    [
        ("INSERT INTO files SELECT * FROM found", False),
        ("INSERT INTO lines SELECT * FROM found", True),
        ("INSERT INTO files SELECT code, SUM(rate) FROM found GROUP BY code", True),
        ("INSERT INTO files SELECT * FROM found UNION ALL SELECT * FROM found", True),
    ],
)
def test_answers_are_pinned_where_they_could_be_seen_twice(inserts: str, wanted: bool) -> None:
    plan = compile_sql(SOURCE + inserts)
    assert pinned_operators(plan, [sink.id for sink in plan.sinks]) == ({"lookup_r"} if wanted else set())


def test_answers_of_a_lookup_that_parks_rows_are_pinned(tmp_path: Path) -> None:
    plan = job(tmp_path, hint=DEFERRED)
    assert pinned_operators(plan, ["sink_result"]) == {"lookup_r"}

"""Lookups from the engine to real servers: when an update shows, when a late row is found, and servers that go away."""

from __future__ import annotations

import json
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from hintplan import compile_sql
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.table import lookup_source
from hintplan.runtime.lookup.api import LookupContext
from hintplan.runtime.lookup.caches.schedule import ThreadScheduler
from hintplan.runtime.lookup.join import LookupRows
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.request import FetchPolicy
from hintplan.runtime.lookup.source import open_source
from hintplan.runtime.lookup.spec import CacheSpec, LookupSpec
from hintplan.runtime.lookup.task import lookup_tables
from hintplan.runtime.lookup.worker import OpenLookup
from hintplan.runtime.worker.event_loop import worker_event_loop
from tests.connectors.lookup_sources.asking import context
from tests.connectors.lookup_sources.servers import PASSWORD

pytestmark = pytest.mark.part(of=4)

PASSWORD_VARIABLE = "HINTPLAN_TEST_PASSWORD"
POLICY = Policy(environment=(PASSWORD_VARIABLE,))
RATES = {"code": "STRING", "rate": "DOUBLE"}
FOUND = pa.schema([("code", pa.string()), ("rate", pa.float64())])
RESULT = pa.schema([("id", pa.int64()), ("rate", pa.float64())])
MODES = ("sync", "async")


class Clock:
    """Time that passes when told to, or when somebody sleeps; ``on_sleep`` is what happens meanwhile."""

    def __init__(self) -> None:
        self.time = 1_000_000
        self.on_sleep: Callable[[], None] = lambda: None

    def now(self) -> int:
        return self.time

    def elapsed(self) -> int:
        return self.time

    def sleep(self, milliseconds: int) -> None:
        self.time += milliseconds
        self.on_sleep()


class Rates:
    """A table of rates in one of the servers, and how a plan declares it."""

    def __init__(self, kind: str, server) -> None:
        self.kind = kind
        self.server = server
        password = f"${{env:{PASSWORD_VARIABLE}}}"
        if kind == "postgres":
            server.execute("DROP TABLE IF EXISTS e2e", "CREATE TABLE e2e (code text PRIMARY KEY, rate float8)")
            self.options = {
                "connector": "jdbc", "url": server.url, "table-name": "e2e", "username": "hintplan",
                "connection.timeout": "2 s",
            }  # fmt: skip
        else:
            with server.client() as client:
                client.flushall()
            self.options = {
                "connector": "redis", "host": "127.0.0.1", "port": str(server.port), "key-pattern": "rate:{code}",
                "data-type": "string",
            }  # fmt: skip
        self.options |= {"password": password}

    def put(self, code: str, rate: float) -> None:
        if self.kind == "postgres":
            upsert = "ON CONFLICT (code) DO UPDATE SET rate = excluded.rate"
            self.server.execute(f"INSERT INTO e2e VALUES ('{code}', {rate}) {upsert}")
        else:
            with self.server.client() as client:
                client.set(f"rate:{code}", rate)


@pytest.fixture(params=["postgres", "redis"])
def rates(request, monkeypatch) -> Rates:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    return Rates(request.param, request.getfixturevalue(request.param))


@contextmanager
def engine(
    where: LookupContext, mode: str, clock: Clock, cache: CacheSpec, *, attempts: int = 0, failures: int = 3
) -> Iterator[Callable[..., list[float | None]]]:
    """A function that takes codes and returns the rate of each, and has the counts in ``.counters``."""
    spec = LookupSpec(
        run=uuid.uuid4().hex,
        source=lookup_source(where.options),
        mode=mode,  # type: ignore[arg-type]
        context=where,
        policy=FetchPolicy(
            operator="lookup_r", table="t", capacity=10, timeout=60_000, ordered=True, max_attempts=attempts, delay=5,
            retries=failures,
        ),
        cache=cache,
        rows=LookupRows(
            keys=("code",), pre_filter=None, fetched=FOUND, padded=True, conditions=(), output=RESULT,
            origins=(("left", "id"), ("right", "rate")),
        ),
    )  # fmt: skip
    source = open_source(spec.source, spec.mode, where)
    lookup = OpenLookup(spec, source, clock, worker_event_loop(), ThreadScheduler(clock))

    def ask(*codes: str) -> list[float | None]:
        batch = pa.table({"id": pa.array(range(len(codes)), pa.int64()), "code": list(codes)})
        joined = pa.concat_tables(lookup_tables([batch], lookup, ask.counters))
        assert joined["id"].to_pylist() == list(range(len(codes)))
        return joined["rate"].to_pylist()

    ask.counters = LookupCounters()
    try:
        yield ask
    finally:
        lookup.close()


@pytest.mark.parametrize("mode", MODES)
def test_an_update_on_the_server_shows_after_expiry_and_not_before(rates, mode):
    clock = Clock()
    cache = CacheSpec(kind="PARTIAL", expire_after_write=60_000, max_rows=100)
    rates.put("EUR", 1.0)
    with engine(context(rates.options, RATES, keys=["code"]), mode, clock, cache) as ask:
        assert ask("EUR", "USD", "EUR") == [1.0, None, 1.0]
        rates.put("EUR", 2.0)
        rates.put("USD", 3.0)
        clock.time += 59_999
        assert ask("EUR", "USD") == [1.0, None]
        clock.time += 1
        assert ask("EUR", "USD") == [2.0, 3.0]
        counters = ask.counters
        assert (counters.lookups, counters.hitCount, counters.missCount) == (7, 3, 4)


def test_a_full_cache_shows_an_update_after_a_reload_and_not_before(postgres, monkeypatch):
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    rates = Rates("postgres", postgres)
    rates.put("EUR", 1.0)
    cache = CacheSpec(kind="FULL", interval=3_600_000)
    where = context(rates.options, RATES, keys=["code"])
    with engine(where, "full", Clock(), cache) as ask:
        assert ask("EUR", "USD") == [1.0, None]
        rates.put("EUR", 2.0)
        assert ask("EUR", "USD") == [1.0, None]
    with engine(where, "full", Clock(), cache) as ask:
        assert ask("EUR") == [2.0]


def test_a_row_that_comes_late_is_found_by_a_later_attempt(rates):
    clock = Clock()
    pauses = []

    def late() -> None:
        pauses.append(clock.time)
        if len(pauses) == 2:
            rates.put("EUR", 1.5)

    clock.on_sleep = late
    cache = CacheSpec(kind="PARTIAL", max_rows=100)
    with engine(context(rates.options, RATES, keys=["code"]), "sync", clock, cache, attempts=3) as ask:
        assert ask("EUR", "USD") == [1.5, None]
    # EUR is there after the second pause; USD takes all three.
    assert len(pauses) == 3


def test_a_row_that_comes_late_is_found_while_other_rows_go_on(rates):
    rates.put("USD", 1.0)
    where = context(rates.options, RATES, keys=["code"])
    with engine(where, "async", Clock(), CacheSpec(kind="NONE"), attempts=5_000) as ask:

        def late() -> None:
            while not ask.counters.retries:
                threading.Event().wait(0.001)
            rates.put("EUR", 1.5)

        other = threading.Thread(target=late)
        other.start()
        assert ask("EUR", "USD") == [1.5, 1.0]
        other.join()


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_is_gone_fails_the_query_with_the_cause_after_all_attempts(rates, mode):
    clock = Clock()
    where = context(rates.options, RATES, keys=["code"])
    rates.put("EUR", 1.0)
    with engine(where, mode, clock, CacheSpec(kind="NONE"), failures=2) as ask:
        assert ask("EUR") == [1.0]
        rates.server.stop()
        try:
            with pytest.raises(RunError, match=r"operator lookup_r .*failed 3 times: SourceUnavailable: ") as caught:
                ask("EUR")
        finally:
            rates.server.start()
        assert PASSWORD not in str(caught.value)
        assert ask.counters.failures == 3


def plan_of(rates: Rates, directory: Path, retries: int):
    """A stream of files, each with some orders, appended with their rates to an SQLite table without a key."""
    options = ", ".join(f"'{name}' = '{value}'" for name, value in rates.options.items())
    return compile_sql(
        f"""
        CREATE TABLE orders (id BIGINT, code STRING, pt AS PROCTIME()) WITH (
          'connector' = 'filesystem', 'path' = '{directory}/orders', 'format' = 'json',
          'source.max-files-per-trigger' = '1');
        CREATE TABLE rates (code STRING, rate DOUBLE) WITH ({options}, 'lookup.max-retries' = '{retries}');
        CREATE TABLE result (id BIGINT, rate DOUBLE) WITH (
          'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory}/result.db', 'table-name' = 'result');
        INSERT INTO result SELECT o.id, r.rate FROM orders AS o
        LEFT JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.code = r.code
        """
    )


def add_orders(directory: Path, first: int, files: int) -> None:
    (directory / "orders").mkdir(exist_ok=True)
    for number in range(first, first + files):
        rows = [{"id": number * 10 + i, "code": ("EUR", "USD", "none")[i % 3]} for i in range(10)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (directory / f".{number}").write_text(text)
        (directory / f".{number}").rename(directory / "orders" / f"{number:03}.json")


def stored(directory: Path) -> list[tuple[int, float | None]]:
    connection = sqlite3.connect(directory / "result.db")
    try:
        return connection.execute("SELECT id, rate FROM result ORDER BY id").fetchall()
    finally:
        connection.close()


def wanted(files: int) -> list[tuple[int, float | None]]:
    return [(number * 10 + i, (1.0, 2.0, None)[i % 3]) for number in range(files) for i in range(10)]


@pytest.mark.spark
def test_a_server_that_is_stopped_and_started_during_a_run_loses_and_doubles_nothing(rates, spark, tmp_path):
    from hintplan import execute

    rates.put("EUR", 1.0)
    rates.put("USD", 2.0)
    add_orders(tmp_path, 0, 2)
    plan = plan_of(rates, tmp_path, retries=12)
    execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), trigger="100 ms", policy=POLICY)
    try:
        until(execution, lambda: len(stored_or_none(tmp_path)) == 20)
        rates.server.stop()
        try:
            add_orders(tmp_path, 2, 2)
            until(execution, lambda: any(query.status["isTriggerActive"] for query in execution.queries.values()))
        finally:
            rates.server.start()
            rates.put("EUR", 1.0)
            rates.put("USD", 2.0)
        until(execution, lambda: len(stored_or_none(tmp_path)) >= 40)
    finally:
        execution.stop()
    assert stored(tmp_path) == wanted(4)


@pytest.mark.spark
def test_a_run_that_failed_without_its_server_goes_on_from_its_checkpoint(rates, spark, tmp_path):
    from hintplan import execute

    rates.put("EUR", 1.0)
    rates.put("USD", 2.0)
    add_orders(tmp_path, 0, 2)
    plan, checkpoint = plan_of(rates, tmp_path, retries=0), str(tmp_path / "checkpoint")
    assert execute(plan, spark, checkpoint=checkpoint, once=True, policy=POLICY).await_termination(120)
    add_orders(tmp_path, 2, 2)
    rates.server.stop()
    try:
        with pytest.raises(RunError, match="SourceUnavailable: ") as caught:
            execute(plan, spark, checkpoint=checkpoint, once=True, policy=POLICY).await_termination(120)
    finally:
        rates.server.start()
    assert PASSWORD not in str(caught.value)
    rates.put("EUR", 1.0)
    rates.put("USD", 2.0)
    assert execute(plan, spark, checkpoint=checkpoint, once=True, policy=POLICY).await_termination(120)
    assert stored(tmp_path) == wanted(4)


def until(execution, holds: Callable[[], bool]) -> None:
    """Wait for the run to get somewhere; what fails it is raised."""
    for _ in range(1200):
        execution.raise_failure()
        if holds():
            return
        execution.wait(0.1)
    pytest.fail("the run did not get there in two minutes")


def stored_or_none(directory: Path) -> list[tuple[int, float | None]]:
    try:
        return stored(directory)
    except sqlite3.OperationalError:
        return []  # not yet

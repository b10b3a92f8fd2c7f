"""A run that is started again by itself while what it reads, asks or writes to is killed and comes back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hintplan
from tests.connectors.lookup_sources.conftest import mariadb, postgres, redis
from tests.connectors.lookup_sources.servers import Redis
from tests.connectors.messages.broker import Broker, spark_conf
from tests.connectors.messages.conftest import broker
from tests.connectors.servers.databases import Database, MariadbDatabase, PostgresDatabase
from tests.sample import sampled
from tests.spark.programs import add_rows

__all__ = ["broker", "mariadb", "postgres", "redis"]

pytestmark = [pytest.mark.spark, pytest.mark.integration]

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 600
CLIENT = {
    "properties.default.api.timeout.ms": "3000",
    "properties.request.timeout.ms": "2000",
    "properties.delivery.timeout.ms": "3000",
    "properties.max.block.ms": "3000",
}
"""A client of Kafka bridges a gap of two minutes by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is away for a while, and a job that needs it: ``tables`` and ``query``; what ``rows`` it has written."""

    tables: str
    query: str
    kill: Callable[[], None]
    start: Callable[[], None]
    rows: Callable[[], list[tuple[Any, ...]]]
    feed: Callable[[int], None] | None = None


def listed(options: Mapping[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())


ORDERS = """CREATE TABLE o (id BIGINT, k BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');"""
SQLITE = "'connector' = 'jdbc', 'url' = 'jdbc:sqlite:r.db', 'table-name' = 'r'"
UPSERTED = "(id BIGINT, k BIGINT, PRIMARY KEY (id) NOT ENFORCED)"


def of_database(database: Database, server: Any, key: str) -> Case:
    options = listed({**database.options, "table-name": "r", "sink.max-retries": "0"})
    database.clear()
    return Case(
        tables=f"{ORDERS} CREATE TABLE r (id BIGINT, k BIGINT{key}) WITH ({options});",
        query="INSERT INTO r SELECT id, k FROM o",
        kill=server.kill,
        start=server.start,
        rows=lambda: sorted(database.rows("SELECT id, k FROM r")) if "r" in database.tables() else [],
    )


def of_topic(broker: Broker, connector: str) -> Case:
    topic = broker.create(2)
    formats = {"format": "json"} if connector == "kafka" else {"key.format": "json", "value.format": "json"}
    options = {"connector": connector, "topic": topic, "properties.bootstrap.servers": broker.servers}
    columns = "(id BIGINT, k BIGINT)" if connector == "kafka" else UPSERTED

    def rows() -> list[tuple[Any, ...]]:
        found = {(row["id"], row["k"]) for each in broker.read(topic) if each.value for row in [json.loads(each.value)]}
        return sorted(found)  # a batch that runs again is written again

    return Case(
        tables=f"{ORDERS} CREATE TABLE r {columns} WITH ({listed({**options, **formats, **CLIENT})});",
        query="INSERT INTO r SELECT id, k FROM o",
        kill=broker.kill,
        start=broker.start,
        rows=rows,
    )


def in_sqlite(directory: Path) -> list[tuple[Any, ...]]:
    import sqlite3
    from contextlib import closing

    if not (directory / "r.db").exists():
        return []
    with closing(sqlite3.connect(directory / "r.db")) as database:
        try:
            return sorted(database.execute("SELECT id, k FROM r").fetchall())
        except sqlite3.OperationalError:
            return []


def of_source(broker: Broker, directory: Path) -> Case:
    topic = broker.create(2)
    options = {"connector": "kafka", "topic": topic, "properties.bootstrap.servers": broker.servers, "format": "json"}
    options |= {"scan.startup.mode": "earliest-offset", **CLIENT}
    return Case(
        tables=f"CREATE TABLE o (id BIGINT, k BIGINT) WITH ({listed(options)}); "
        f"CREATE TABLE r (id BIGINT, k BIGINT) WITH ({SQLITE});",
        query="INSERT INTO r SELECT id, k FROM o",
        kill=broker.kill,
        start=broker.start,
        rows=lambda: in_sqlite(directory),
        feed=lambda number: broker.send(topic, [(None, json.dumps({"id": number, "k": number * 10}))]),
    )


def of_lookup(table: str, kill: Callable[[], None], start: Callable[[], None], directory: Path) -> Case:
    return Case(
        tables=f"""CREATE TABLE o (id BIGINT, k BIGINT, t AS PROCTIME())
        WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
        {table} CREATE TABLE r (id BIGINT, k BIGINT) WITH ({SQLITE});""",
        query="INSERT INTO r SELECT o.id, d.v FROM o JOIN d FOR SYSTEM_TIME AS OF o.t ON d.k = o.k",
        kill=kill,
        start=start,
        rows=lambda: in_sqlite(directory),
    )


def looked_up_in_database(database: Database, server: Any, directory: Path) -> Case:
    database.clear()
    database.execute("CREATE TABLE d (k BIGINT PRIMARY KEY, v BIGINT)")
    database.execute(*(f"INSERT INTO d VALUES ({number * 10}, {number * 10})" for number in range(9)))
    options = {**database.options, "table-name": "d", "lookup.max-retries": "0", "connection.timeout": "2 s"}
    table = f"CREATE TABLE d (k BIGINT, v BIGINT) WITH ({listed(options)});"
    return of_lookup(table, server.kill, server.start, directory)


def looked_up_in_redis(redis: Redis, directory: Path) -> Case:
    for number in range(9):
        redis.client().hset(f"d:{number * 10}", mapping={"v": number * 10})
    options = {
        "connector": "redis", "host": "127.0.0.1", "port": str(redis.port), "password": "${env:HINTPLAN_TEST_PASSWORD}",
        "key-pattern": "d:{k}", "lookup.max-retries": "0", "timeout": "2 s",
    }  # fmt: skip
    table = f"CREATE TABLE d (k BIGINT, v BIGINT) WITH ({listed(options)});"
    return of_lookup(table, redis.stop, redis.start, directory)


CASES = {
    "postgres": lambda ask, at: of_database(PostgresDatabase(ask("postgres")), ask("postgres"), ""),
    "postgres upserts": lambda ask, at: of_database(
        PostgresDatabase(ask("postgres")), ask("postgres"), ", PRIMARY KEY (id) NOT ENFORCED"
    ),
    "mariadb": lambda ask, at: of_database(MariadbDatabase(ask("mariadb")), ask("mariadb"), ""),
    "kafka": lambda ask, at: of_topic(ask("broker"), "kafka"),
    "upsert-kafka": lambda ask, at: of_topic(ask("broker"), "upsert-kafka"),
    "from kafka": lambda ask, at: of_source(ask("broker"), at),
    "lookup in postgres": lambda ask, at: looked_up_in_database(PostgresDatabase(ask("postgres")), ask("postgres"), at),
    "lookup in mariadb": lambda ask, at: looked_up_in_database(MariadbDatabase(ask("mariadb")), ask("mariadb"), at),
    "lookup in redis": lambda ask, at: looked_up_in_redis(ask("redis"), at),
}


@dataclass(frozen=True, slots=True)
class Run:
    directory: Path
    process: subprocess.Popen[bytes]

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.directory / "out").read_text(encoding="utf-8").splitlines(keepends=True)
        return [found for line in lines if line.endswith("\n") and (found := json.loads(line))["event"] == kind]

    def wait_for(self, what: str, holds: Callable[[], Any]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            said = (self.directory / "err").read_text(encoding="utf-8")
            assert self.process.poll() is None, said
            assert time.monotonic() < deadline, f"waited in vain for {what}:\n{said}"
            try:
                self.process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue


@contextmanager
def running(directory: Path, *options: str) -> Iterator[Run]:
    command = [sys.executable, "-m", "hintplan", "run", "plan.json", "--checkpoint", "checkpoint", "--json"]
    conf = [part for key, value in spark_conf().items() for part in ("--conf", f"{key}={value}")]
    more = ["--master", "local[2]", "--allow-env", "HINTPLAN_TEST_PASSWORD", "--trigger", "100 ms", *conf, *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    with open(directory / "out", "wb") as out, open(directory / "err", "wb") as err:
        process = subprocess.Popen(
            [*command, *more], cwd=directory, env=environment, stdout=out, stderr=err, start_new_session=True
        )
    try:
        yield Run(directory, process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


@pytest.mark.parametrize("name", sampled(CASES, keep=3))
def test_a_run_goes_on_when_what_was_away_is_back(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "o").mkdir()
    case = CASES[name](request.getfixturevalue, tmp_path)
    feed = case.feed or (lambda number: add_rows(tmp_path, "o", [{"id": number, "k": number * 10}]))
    hintplan.dump(hintplan.compile_sql(f"{case.tables} {case.query};"), tmp_path / "plan.json")
    feed(1)
    with running(tmp_path, "--max-restarts", "40", "--restart-delay", "300 ms") as run:
        run.wait_for("the first row", lambda: case.rows() == [(1, 10)])
        case.kill()
        try:
            if case.feed is None:
                feed(2)
            run.wait_for("a restart", lambda: run.events("restart"))
        finally:
            case.start()
        if case.feed is not None:
            feed(2)
        run.wait_for("the second row", lambda: case.rows() == [(1, 10), (2, 20)])
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(DEADLINE_SECONDS) == 143
    first = run.events("restart")[0]
    assert (first["attempt"], first["attempts"], first["delay_ms"] >= 300) == (1, 40, True)
    assert run.events("end")[-1]["batches"] >= 2


def test_what_is_for_good_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "o").mkdir()
    tables = f"{ORDERS} CREATE TABLE r (id BIGINT, k BIGINT) WITH ({SQLITE});"
    hintplan.dump(
        hintplan.compile_sql(f"{tables} INSERT INTO r SELECT id, 10 / (k - k) FROM o;"), tmp_path / "plan.json"
    )
    add_rows(tmp_path, "o", [{"id": 1, "k": 1}])
    with running(tmp_path, "--max-restarts", "5") as run:
        assert run.process.wait(DEADLINE_SECONDS) == 1
    assert run.events("restart") == []
    (end,) = run.events("end")
    assert (end["status"], "DIVIDE_BY_ZERO" in end["error"]) == ("failed", True)


STRATEGY = (
    "SET 'restart-strategy.type' = 'fixed-delay'; SET 'restart-strategy.fixed-delay.attempts' = '2';"
    "SET 'restart-strategy.fixed-delay.delay' = '100 ms';"
)


@pytest.mark.parametrize(
    ("script", "options", "attempts"),
    sampled(
        [
            ("", ("--max-restarts", "2", "--restart-delay", "100 ms"), [1, 2]),
            (STRATEGY, (), [1, 2]),
            (STRATEGY, ("--max-restarts", "1", "--restart-delay", "100 ms"), [1]),
            (STRATEGY, ("--max-restarts", "0"), []),
        ],
        keep=1,
    ),
)
def test_restarts_end_after_as_many_as_there_may_be(
    script: str,
    options: tuple[str, ...],
    attempts: list[int],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "o").mkdir()
    case = CASES["postgres"](request.getfixturevalue, tmp_path)
    hintplan.dump(hintplan.compile_sql(f"{script} {case.tables} {case.query};"), tmp_path / "plan.json")
    case.kill()
    try:
        with running(tmp_path, *options) as run:
            assert run.process.wait(DEADLINE_SECONDS) == 1
    finally:
        case.start()
    assert [each["attempt"] for each in run.events("restart")] == attempts
    if script and not options:
        assert {(each["attempts"], each["delay_ms"]) for each in run.events("restart")} == {(2, 100)}
    assert "PostgreSQL did not write to table 'r'" in run.events("end")[-1]["error"]

"""The job of the kills that has servers: topics joined, into a topic, a database and tables of two lakes at once, and
windows of a topic.

orders ────┬─ left join ─┬─ found      (upsert-kafka)
customers ─┘             ├─ bought     (jdbc, PostgreSQL)
                         ├─ kept       (delta)
                         └─ shelved    (iceberg, by a REST catalog)
orders ────── windows of event time    (jdbc, PostgreSQL)
              └─ late orders           (kafka of one aggregate, iceberg of the other)

Both tables come from topics of a broker; each result of the join has the row of each order, and changes with its
customer.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import hintplan
from hintplan.plans.model.plan import Plan
from tests.cluster.installed import NEEDED_BY_WORKERS, python_with
from tests.connectors.lakes.lakes import DeltaLake, in_with
from tests.connectors.lakes.rest_catalog import RestLake, jars, rest_catalog
from tests.connectors.lookup_sources.servers import PASSWORD, postgres_server
from tests.connectors.messages.broker import Broker, running_broker, spark_conf
from tests.connectors.servers.databases import PostgresDatabase
from tests.faults import windows
from tests.faults.jobs import Job, Row, difference, events_of

__all__ = ["topics_job"]

EXTRAS = ("kafka", "postgres")
OF_DRIVER = ("delta", "iceberg")
CUSTOMERS = 12
PARTITIONS = 3
JOIN = """
    SELECT /*+ STATE_TTL('o' = '3 d', 'c' = '20 d') */ o.id, o.amount, c.country
    FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.customer
"""
"""Means the same to SQLite, to which the hint is a comment."""


def compiled(
    broker: Broker, database: PostgresDatabase, topics: dict[str, str], lake: DeltaLake, rest: RestLake, *, most: int
) -> Plan:
    """The plan, which reads at most ``most`` messages of a topic in a micro-batch."""
    servers = f"'properties.bootstrap.servers' = '{broker.servers}', 'source.max-offsets-per-trigger' = '{most}'"
    upserts = f"'connector' = 'upsert-kafka', {servers}, 'key.format' = 'json', 'value.format' = 'json'"
    options = ", ".join(f"'{name}' = '{value}'" for name, value in database.options.items())
    result = "(id BIGINT, amount BIGINT, country VARCHAR(20), PRIMARY KEY (id) NOT ENFORCED)"
    script = f"""
CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT, {windows.COLUMN}) WITH (
  'connector' = 'kafka', 'topic' = '{topics["orders"]}', 'format' = 'json', {servers},
  'scan.startup.mode' = 'earliest-offset', {windows.target("late_sent")}
);
CREATE TABLE late_sent ({windows.LATE_COLUMNS}) WITH (
  'connector' = 'kafka', 'topic' = '{topics["late_sent"]}', 'format' = 'json',
  'properties.bootstrap.servers' = '{broker.servers}'
);
CREATE TABLE late_shelved ({windows.LATE_COLUMNS}) WITH ({in_with(rest.options("late_shelved"))});
CREATE TABLE customers (customer BIGINT, country STRING, PRIMARY KEY (customer) NOT ENFORCED)
WITH ({upserts}, 'topic' = '{topics["customers"]}');
CREATE TABLE found {result} WITH ({upserts}, 'topic' = '{topics["found"]}');
CREATE TABLE bought {result} WITH ({options}, 'table-name' = 'bought');
CREATE TABLE kept {result} WITH ({in_with(lake.options("kept"))});
CREATE TABLE shelved {result} WITH ({in_with(rest.options("shelved"))});
{windows.tables(options)}{windows.views("late_shelved")}
CREATE VIEW joined AS {JOIN};
EXECUTE STATEMENT SET BEGIN
  INSERT INTO found SELECT id, amount, country FROM joined;
  INSERT INTO bought SELECT id, amount, country FROM joined;
  INSERT INTO kept SELECT id, amount, country FROM joined;
  INSERT INTO shelved SELECT id, amount, country FROM joined;
  {windows.inserts()}
END;
"""
    return hintplan.compile_sql(script, {"parallelism.default": "2", "pipeline.name": "topics"}, name="topics")


class Feed:
    """Sends orders, and customers who come, move and go; keeps what it has sent."""

    def __init__(self, broker: Broker, topics: dict[str, str], seed: int) -> None:
        self._broker = broker
        self._topics = topics
        self._random = random.Random(seed)
        self._times = random.Random(seed)
        self._orders: list[Row] = []
        self._partitions: list[list[windows.Order]] = [[] for _ in range(PARTITIONS)]
        self._countries: dict[int, str] = {}

    def add(self) -> None:
        """Some more of each."""
        first = len(self._orders)
        orders = [(first + i, self._random.randrange(CUSTOMERS), self._random.randrange(99)) for i in range(15)]
        for partition, sent in enumerate(self._partitions):
            messages = []
            for number, customer, amount in orders[partition::PARTITIONS]:
                time = windows.time_of(number, self._times)
                if not windows.is_late(number):
                    sent.append(windows.Order(customer, amount, time))
                order = {"id": number, "customer": customer, "amount": amount, "ts": windows.time_text(time)}
                messages.append((None, json.dumps(order)))
            self._broker.send(self._topics["orders"], messages, partition=partition)
        self._orders += orders
        for _ in range(4):
            customer, country = self._random.randrange(CUSTOMERS), self._random.choice(["DE", "FR", "PL", None])
            row = None if country is None else json.dumps({"customer": customer, "country": country})
            self._broker.send(self._topics["customers"], [(json.dumps({"customer": customer}), row)])
            if country is None:
                self._countries.pop(customer, None)
            else:
                self._countries[customer] = country

    def expected(self) -> list[Row]:
        """The rows of each result, by SQLite, once all is read."""
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute("CREATE TABLE orders (id, customer, amount)")
            database.executemany("INSERT INTO orders VALUES (?, ?, ?)", self._orders)
            database.execute("CREATE TABLE customers (customer, country)")
            database.executemany("INSERT INTO customers VALUES (?, ?)", self._countries.items())
            return sorted(database.execute(JOIN).fetchall())

    def late(self) -> dict[str, list[Row]]:
        """The rows of the tables of late orders, without times."""
        return {
            "late_sent": windows.late_rows(self._orders, windows.BY_CUSTOMER),
            "late_shelved": windows.late_rows(self._orders, windows.BY_WINDOW),
        }

    def expected_by_time(self) -> dict[str, list[Row]]:
        """The rows of the tables of windows. Each partition has a watermark of its own."""
        return windows.expected(self._partitions)


@contextmanager
def topics_job(directory: Path, seed: int) -> Iterator[Job]:
    """The job, with its broker, its database and its catalog."""
    import psycopg

    conf = spark_conf()
    if not jars():
        raise SystemExit("this needs the jars of a REST catalog: make iceberg")
    with running_broker() as broker, postgres_server() as postgres, rest_catalog(directory / "rest") as rest:
        if broker is None or postgres is None:
            raise SystemExit("this needs PostgreSQL and the jars of Kafka: make servers kafka")
        os.environ["HINTPLAN_TEST_PASSWORD"] = PASSWORD
        database = PostgresDatabase(postgres)
        topics = {name: broker.create(PARTITIONS) for name in ("orders", "customers", "found", "late_sent")}
        feed, lake = Feed(broker, topics, seed), DeltaLake(directory)

        def rows() -> list[Row]:
            return sorted(database.rows("SELECT * FROM bought")) if "bought" in database.tables() else []

        def written() -> int:
            try:
                return len(rows())
            except psycopg.OperationalError:
                return 0  # it is starting

        def upserted() -> list[Row]:
            values = map(json.loads, broker.latest(topics["found"]).values())
            return sorted((row["id"], row["amount"], row["country"]) for row in values)

        def wrong() -> str:
            wanted = feed.expected()
            if (there := written()) != len(wanted):
                return f"bought has {there} rows of {len(wanted)}"
            timed, there_now = feed.expected_by_time(), database.tables()
            by_time = {
                name: sorted(database.rows(f"SELECT * FROM {name}")) if name in there_now else [] for name in timed
            }
            if differences := difference(timed, by_time):
                return differences
            found = {
                "bought": rows(), "found": upserted(), "kept": sorted(lake.rows("kept")),
                "shelved": sorted(rest.lake.rows("shelved")),
            }  # fmt: skip
            if differences := difference(dict.fromkeys(found, wanted), found):
                return differences
            sent = [json.loads(message.value or b"") for message in broker.read(topics["late_sent"])]
            # A topic has each row at least once, a table of a lake exactly once.
            late = {
                "late_sent": sorted({(row["operator"], row["id"], row["customer"], row["amount"]) for row in sent}),
                "late_shelved": sorted((row[4], *row[:3]) for row in rest.lake.rows("late_shelved")),
            }
            return difference(feed.late(), late)

        small, large = (compiled(broker, database, topics, lake, rest.lake, most=most) for most in (10, 1000))
        yield Job(
            plan=small, rest=large, feed=feed.add, wrong=wrong, conf=conf,
            events=events_of(directory, written),
            servers={"broker": broker, "database": postgres, "catalog": rest},
            extras=(*EXTRAS, *OF_DRIVER), options=["--allow-env", "HINTPLAN_TEST_PASSWORD"],
            python=python_with(NEEDED_BY_WORKERS, *EXTRAS),
        )  # fmt: skip

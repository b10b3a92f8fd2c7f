"""A table of PostgreSQL by the messages of Debezium's own connector, joined and written to another table there.

What Debezium wrote is recorded by record.py; what must come out is PostgreSQL's answer, after the same statements.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.errors import RunError
from hintplan.runtime.run.execute import execute
from tests.connectors.lookup_sources.conftest import postgres
from tests.connectors.lookup_sources.servers import Postgres
from tests.connectors.messages.broker import Broker
from tests.connectors.messages.debezium.cases import CUSTOMERS, ORDERS, VISITS, messages
from tests.connectors.messages.debezium.statements import AFTER, BEFORE, TABLES
from tests.connectors.messages.test_topics import source
from tests.sample import sampled

__all__ = ["postgres"]

pytestmark = [pytest.mark.spark, pytest.mark.integration]

POLICY = Policy(environment=("HINTPLAN_TEST_PASSWORD",))
KEY = "PRIMARY KEY (id) NOT ENFORCED"
SLICES = 4
WRAPPED = {
    "format": "debezium-json",
    "debezium_json__schema_include": "true",
    "debezium_json__timestamp_format__standard": "ISO-8601",
}
SPENT = "id BIGINT, name STRING, orders BIGINT, total DECIMAL(38, 2), PRIMARY KEY (id) NOT ENFORCED"


@pytest.fixture
def shop(postgres: Postgres) -> Postgres:
    postgres.execute("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", *TABLES, *BEFORE, *AFTER)
    return postgres


def asked(server: Postgres, query: str) -> list[tuple[object, ...]]:
    import psycopg

    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        return connection.execute(query).fetchall()


def sink(name: str, columns: str, server: Postgres) -> str:
    return (
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'jdbc', 'url' = '{server.url}', 'table-name' = '{name}', "
        "'username' = 'hintplan', 'password' = '${env:HINTPLAN_TEST_PASSWORD}');\n"
    )


@pytest.mark.parametrize("repeated", sampled([0, 5], keep=1))
def test_tables_of_postgres_are_followed(
    spark: SparkSession, broker: Broker, shop: Postgres, tmp_path: Path, repeated: int
) -> None:
    """With messages ``repeated``, as Debezium does after a restart."""
    columns = {
        "orders": f"{ORDERS.format('DECIMAL(10, 2)', 'INT', 'BIGINT')}, {KEY}", "customers": f"{CUSTOMERS}, {KEY}"
    }  # fmt: skip
    topics = {name: broker.create() for name in columns}
    script = (
        f"SET 'table.exec.source.cdc-events-duplicate' = '{'true' if repeated else 'false'}';"
        + "".join(source(name, declared, broker, topics[name], **WRAPPED) for name, declared in columns.items())
        + sink("copies", f"{ORDERS.format('DECIMAL(10, 2)', 'DATE', 'BIGINT')}, {KEY}", shop)
        + sink("people", columns["customers"], shop)
        + sink("spent", SPENT, shop)
        + "EXECUTE STATEMENT SET BEGIN INSERT INTO copies SELECT id, customer, price, weight, small, ratio,"
        " TIMESTAMPADD(DAY, `day`, DATE '1970-01-01'), `at`, seen, code, `raw` FROM orders; "
        "INSERT INTO people SELECT * FROM customers;"
        " INSERT INTO spent SELECT c.id, MAX(c.name), COUNT(*), SUM(o.price) FROM orders AS o JOIN customers AS c"
        " ON o.customer = c.id GROUP BY c.id; END;"
    )
    plan = hintplan.compile_sql(script, name="job")
    for at in range(SLICES):
        for name, topic in topics.items():
            recorded = messages("string", name)
            first, last = (n * len(recorded) // SLICES for n in (at, at + 1))
            broker.send(topic, recorded[max(first - repeated, 0) : last])
        execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True, policy=POLICY)
        assert execution.await_termination(180)
        execution.raise_failure()
    orders = "id, customer, price, weight::text, small, ratio::text"
    assert asked(shop, f'SELECT {orders}, "day", "at", seen, code, raw FROM copies ORDER BY id') == asked(
        shop,
        f"SELECT {orders}, day, CAST(EXTRACT(EPOCH FROM at) * 1000000 AS BIGINT), seen, code, raw "
        "FROM orders ORDER BY id",
    )
    assert asked(shop, "SELECT id, name, vip, token, extra::jsonb, made FROM people ORDER BY id") == asked(
        shop,
        "SELECT id, name, vip, token::text, extra, CAST(EXTRACT(EPOCH FROM made) * 1000 AS BIGINT) FROM customers "
        "ORDER BY id",
    )
    assert asked(shop, "SELECT id, name, orders, total FROM spent ORDER BY id") == asked(
        shop,
        "SELECT c.id, MAX(c.name), COUNT(*), SUM(o.price) FROM orders AS o JOIN customers AS c ON o.customer = c.id "
        "GROUP BY c.id ORDER BY c.id",
    )


@pytest.mark.parametrize(
    ("mode", "name", "columns", "problem"),
    [
        (
            "defaults",
            "orders",
            ORDERS.format("DECIMAL(10, 2)", "INT", "BIGINT"),
            "offset 0 does not fit .*field 'price'",
        ),
        ("double", "visits", VISITS, "offset 3 does not fit .*its op is 't'"),
    ],
)
def test_messages_that_are_no_changes_of_the_table_are_refused(
    spark: SparkSession, broker: Broker, shop: Postgres, tmp_path: Path, mode: str, name: str, columns: str,
    problem: str,
) -> None:  # fmt: skip
    topic, declared = broker.create(), f"{columns}, {KEY}"
    unwrapped = WRAPPED | {"debezium_json__schema_include": "false"}
    script = source(name, declared, broker, topic, **unwrapped) + sink("copies", declared, shop)
    plan = hintplan.compile_sql(f"{script}INSERT INTO copies SELECT * FROM {name};", name="job")
    broker.send(topic, messages(mode, name))
    execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True, policy=POLICY)
    with pytest.raises(RunError, match=problem):
        execution.await_termination(180)

"""The same rows in 1, 3 and 20 micro-batches, and stopped and resumed between them, end as Spark's batch result."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.runtime.run.execute import execute
from tests.sample import sampled
from tests.spark.programs import add_rows, changes

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 300
ONE_FILE = "'connector' = 'filesystem', 'format' = 'json', 'source.max-files-per-trigger' = '1'"
QUERIES = {
    "by_country": (
        "country STRING, orders BIGINT, total BIGINT, biggest BIGINT",
        "SELECT t.country, COUNT(*), SUM(t.amount), MAX(t.amount) FROM (SELECT c.country, o.amount FROM orders AS o "
        "LEFT JOIN customers AS c ON o.customer = c.customer) AS t GROUP BY ROLLUP (t.country)",
    ),
    "balance": (
        "customer BIGINT, n BIGINT, country STRING",
        "SELECT x.customer, x.n, c.country FROM (SELECT customer, COUNT(DISTINCT amount) AS n FROM orders "
        "GROUP BY customer) AS x FULL JOIN customers AS c ON x.customer = c.customer",
    ),
    "lists": (
        "customer BIGINT, amounts STRING, several STRING",
        "SELECT customer, ARRAY_JOIN(ARRAY_SORT(ARRAY_AGG(CAST(amount AS STRING))), '+'), "
        "ARRAY_JOIN(ARRAY_SORT(ARRAY_AGG(DISTINCT CAST(n AS STRING))), '+') FROM (SELECT customer, amount, "
        "COUNT(*) AS n FROM orders WHERE amount IS NOT NULL GROUP BY customer, amount) AS t GROUP BY customer",
    ),
    "multisets": (
        "customer BIGINT, amount BIGINT, times BIGINT",
        "SELECT customer, x, COUNT(*) FROM (SELECT customer, COLLECT(amount) AS m FROM orders GROUP BY customer) AS t "
        "CROSS JOIN UNNEST(m) AS e (x) GROUP BY customer, x",
    ),
    "spread": (
        "customer BIGINT, variance BIGINT",
        "SELECT customer, CAST(VAR_POP(CAST(n AS DOUBLE)) * 1000 + 0.3 AS BIGINT) FROM "
        "(SELECT customer, amount, COUNT(*) AS n FROM orders GROUP BY customer, amount) AS t GROUP BY customer",
    ),
}

ORACLES = {
    "multisets": "SELECT customer, amount, COUNT(*) FROM orders WHERE amount IS NOT NULL GROUP BY customer, amount"
}
"""What Spark is asked instead of a query that it does not know."""


def rows(seed: int) -> tuple[list[dict], list[dict]]:
    generator = random.Random(seed)
    orders = [
        {"customer": generator.choice([None, *range(9)]), "amount": generator.choice([None, *range(6)])}
        for _ in range(60)
    ]
    customers = [{"customer": key, "country": generator.choice([None, "DE", "FR"])} for key in (0, 1, 2, 2, 5, 7, 11)]
    return orders, generator.sample(customers, len(customers))


def parts(items: list, count: int) -> list[list]:
    return [items[n * len(items) // count : (n + 1) * len(items) // count] for n in range(count)]


def script(directory: Path) -> str:
    statements = [
        f"CREATE TABLE orders (customer BIGINT, amount BIGINT) WITH ('path' = '{directory / 'orders'}', {ONE_FILE});",
        f"CREATE TABLE customers (customer BIGINT, country STRING) "
        f"WITH ('path' = '{directory / 'customers'}', {ONE_FILE});",
    ]
    for name, (columns, query) in QUERIES.items():
        options = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory}/{name}/result'"
        statements.append(f"CREATE TABLE {name} ({columns}) WITH ({options}, 'sink.changelog' = 'true');")
        statements.append(f"INSERT INTO {name} {query};")
    return "\n".join(statements)


def folded(directory: Path, name: str) -> Counter:
    result: Counter = Counter()
    for row in changes(directory / name):
        kind = row.pop("op")
        result[tuple(row.values())] += 1 if kind in ("+I", "+U") else -1
    assert all(count >= 0 for count in result.values())
    return +result


@pytest.mark.parametrize(
    ("slices", "resumed"),
    [
        (1, False),
        *sampled([pytest.param(*case, marks=pytest.mark.integration) for case in ((3, True), (20, False))], keep=1),
    ],
)
def test_any_slicing_ends_as_sparks_batch_result(
    spark: SparkSession, tmp_path: Path, slices: int, resumed: bool
) -> None:
    orders, customers = rows(seed=slices)
    plan = hintplan.compile_sql(script(tmp_path), config={"parallelism.default": "2"}, name="slices")
    (tmp_path / "orders").mkdir()
    (tmp_path / "customers").mkdir()
    for order_part, customer_part in zip(parts(orders, slices), parts(customers, slices), strict=True):
        add_rows(tmp_path, "orders", order_part)
        if customer_part:
            add_rows(tmp_path, "customers", customer_part)
        if resumed:
            run(plan, spark, tmp_path)
    run(plan, spark, tmp_path)

    spark.createDataFrame(
        [tuple(row.values()) for row in orders], "customer bigint, amount bigint"
    ).createOrReplaceTempView("orders")
    spark.createDataFrame(
        [tuple(row.values()) for row in customers], "customer bigint, country string"
    ).createOrReplaceTempView("customers")
    for name, (_, query) in QUERIES.items():
        oracle = ORACLES.get(name, query)
        assert folded(tmp_path, name) == Counter(tuple(row) for row in spark.sql(oracle).collect())


def run(plan, spark: SparkSession, directory: Path) -> None:
    execution = execute(plan, spark, checkpoint=str(directory / "checkpoint"), once=True)
    assert execution.await_termination(DEADLINE_SECONDS)

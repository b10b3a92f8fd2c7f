"""Lookup joins on Spark, from SQL to rows: with every kind of cache, deferred misses, failures and metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.spark.programs import add_rows, changes

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

DEADLINE_SECONDS = 180
MODULES = ("tests.connectors.lookup.rates",)


def job(directory: Path, *, join: str = "LEFT JOIN", hint: str = "", on: str = "", **options: str) -> Plan:
    """Orders that look up the rate of their currency; ``options`` are those of the table of rates."""
    for name in ("orders", "result"):
        (directory / name).mkdir(exist_ok=True)
    (directory / "rates.json").touch()
    options = {
        "class": "tests.connectors.lookup.rates.Rates",
        "properties.path": str(directory / "rates.json"),
        **options,
    }
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return hintplan.compile_sql(
        f"""
        CREATE TABLE orders (id BIGINT, currency STRING, pt AS PROCTIME()) WITH (
          'connector' = 'filesystem', 'path' = '{directory}/orders', 'format' = 'json',
          'source.max-files-per-trigger' = '1'
        );
        CREATE TABLE rates (code STRING, rate DOUBLE) WITH ('connector' = 'python', {listed});
        CREATE TABLE result (id BIGINT, rate DOUBLE) WITH (
          'connector' = 'filesystem', 'path' = '{directory}/result', 'format' = 'json'
        );
        INSERT INTO result SELECT {hint} o.id, r.rate FROM orders AS o
        {join} rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.currency = r.code {on}
        """
    )


def orders(directory: Path, *pairs: tuple[int, str | None]) -> None:
    add_rows(directory, "orders", [{"id": number, "currency": currency} for number, currency in pairs])


def rate(directory: Path, code: str, value: float) -> None:
    with (directory / "rates.json").open("a") as out:
        out.write(json.dumps({"code": code, "rate": value}) + "\n")


def results(directory: Path) -> list[tuple[int, float | None]]:
    return sorted(((row["id"], row.get("rate")) for row in changes(directory)), key=str)


def calls(directory: Path) -> int:
    path = directory / "rates.calls"
    return len(path.read_text().splitlines()) if path.exists() else 0


def run(plan: Plan, spark: SparkSession, directory: Path) -> Execution:
    checkpoint = str(directory / "checkpoint")
    execution = execute(plan, spark, checkpoint=checkpoint, once=True, policy=Policy(modules=MODULES))
    assert execution.await_termination(DEADLINE_SECONDS)
    return execution


@pytest.mark.parametrize("option", ["class", "async-class"])
def test_a_lookup_joins_pads_and_counts(spark: SparkSession, tmp_path: Path, option: str) -> None:
    rate(tmp_path, "EUR", 1.1)
    rate(tmp_path, "EUR", 1.2)
    rate(tmp_path, "USD", 1.0)
    orders(tmp_path, (1, "EUR"), (2, "USD"), (3, "XXX"), (4, None), (5, "USD"))
    classes = {
        "class": "tests.connectors.lookup.rates.Rates",
        "async-class": "tests.connectors.lookup.rates.AsyncRates",
    }
    plan = job(tmp_path, **{option: classes[option]})
    if option == "async-class":
        plan = job(tmp_path, **classes)
    execution = run(plan, spark, tmp_path)
    assert results(tmp_path) == [(1, 1.1), (1, 1.2), (2, 1.0), (3, None), (4, None), (5, 1.0)]
    found = execution.progress["sink_result"].lookups["lookup_r"]
    assert (found["lookups"], found["loadCount"], found["hitCount"], found["missCount"]) == (4, 3, 0, 0)
    assert calls(tmp_path) == 3


def test_an_inner_lookup_drops_what_finds_nothing_or_fails_the_condition(spark: SparkSession, tmp_path: Path) -> None:
    rate(tmp_path, "EUR", 1.1)
    rate(tmp_path, "USD", 1.0)
    orders(tmp_path, (1, "EUR"), (2, "USD"), (3, "XXX"), (4, None))
    run(job(tmp_path, join="JOIN", on="AND r.rate > 1.05 AND o.id + r.rate > 0"), spark, tmp_path)
    assert results(tmp_path) == [(1, 1.1)]


def test_a_left_lookup_pads_what_its_conditions_leave_nothing_of(spark: SparkSession, tmp_path: Path) -> None:
    rate(tmp_path, "EUR", 1.1)
    rate(tmp_path, "USD", 1.0)
    orders(tmp_path, (1, "EUR"), (2, "USD"), (3, "EUR"), (4, "XXX"))
    run(job(tmp_path, on="AND r.rate > 1.05 AND o.id < 3 AND o.id + r.rate > 0"), spark, tmp_path)
    assert results(tmp_path) == [(1, 1.1), (2, None), (3, None), (4, None)]
    assert calls(tmp_path) == 2, "order 3 and 4 fail the condition on the stream, so they are not looked up"


def test_a_partial_cache_stays_between_batches(spark: SparkSession, tmp_path: Path) -> None:
    rate(tmp_path, "EUR", 1.1)
    for number in range(6):
        orders(tmp_path, (number, "EUR"))
    cache = {"lookup.cache": "PARTIAL", "lookup.partial-cache.max-rows": "10"}
    execution = run(job(tmp_path, **cache), spark, tmp_path)
    assert results(tmp_path) == [(number, 1.1) for number in range(6)]
    assert calls(tmp_path) < 6, "each worker process loads the key once"
    found = execution.progress["sink_result"].lookups["lookup_r"]
    assert found["hitCount"] + found["missCount"] == found["lookups"] == 1
    assert found["numCachedRecords"] == 1
    assert found["numCachedBytes"] > 0


def test_a_cache_of_the_users_is_loaded_by_name(spark: SparkSession, tmp_path: Path) -> None:
    rate(tmp_path, "EUR", 1.1)
    orders(tmp_path, (1, "EUR"), (2, "EUR"))
    cache = {"lookup.cache": "PARTIAL", "lookup.partial-cache.class": "tests.connectors.lookup.rates.PlainCache"}
    execution = run(job(tmp_path, **cache), spark, tmp_path)
    assert results(tmp_path) == [(1, 1.1), (2, 1.1)]
    assert execution.progress["sink_result"].lookups["lookup_r"]["numCachedRecords"] == 1


def test_a_class_from_a_module_that_is_not_allowed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    cache = {"lookup.cache": "PARTIAL", "lookup.partial-cache.class": "os.path.join"}
    with pytest.raises(RunError, match=r"(?s)module os\.path is not allowed.*modules=\('os\.path',\)") as caught:
        execute(job(tmp_path, **cache), spark, once=True, policy=Policy(modules=MODULES))
    assert "lookup.partial-cache.class" in str(caught.value)


def test_a_full_cache_answers_everything_and_never_asks_for_a_key(spark: SparkSession, tmp_path: Path) -> None:
    rate(tmp_path, "EUR", 1.1)
    orders(tmp_path, (1, "EUR"), (2, "XXX"))
    orders(tmp_path, (3, "EUR"))
    cache = {
        "scan-class": "tests.connectors.lookup.rates.AllRates",
        "lookup.cache": "FULL",
        "lookup.full-cache.reload-strategy": "CUSTOM",
        "lookup.full-cache.custom-reload.class": "tests.connectors.lookup.rates.Never",
    }
    execution = run(job(tmp_path, **cache), spark, tmp_path)
    assert results(tmp_path) == [(1, 1.1), (2, None), (3, 1.1)]
    found = execution.progress["sink_result"].lookups["lookup_r"]
    assert (found["lookups"], found["hitCount"], found["numCachedRecords"]) == (1, 1, 1)


def test_a_source_that_keeps_failing_fails_the_query_with_its_cause(spark: SparkSession, tmp_path: Path) -> None:
    orders(tmp_path, (1, "EUR"))
    plan = job(tmp_path, **{"class": "tests.connectors.lookup.rates.BrokenRates", "lookup.max-retries": "1"})
    with pytest.raises(RunError, match=r"operator lookup_r .*key \('EUR'\) failed 2 times.*the rates are gone"):
        run(plan, spark, tmp_path)


DEFERRED = (
    "/*+ LOOKUP('table'='r', 'output-mode'='allow_unordered', 'retry-predicate'='lookup_miss', "
    "'retry-strategy'='fixed_delay', 'fixed-delay'='1 s', 'max-attempts'='100') */"
)


def test_a_deferred_row_is_found_when_it_appears_and_nothing_waits_for_it(spark: SparkSession, tmp_path: Path) -> None:
    rate(tmp_path, "EUR", 1.1)
    orders(tmp_path, (1, "EUR"), (2, "LATE"))
    plan = job(tmp_path, hint=DEFERRED, **{"async-class": "tests.connectors.lookup.rates.AsyncRates"})
    assert plan.operator("lookup_r").retry.mode == "deferred"
    checkpoint = str(tmp_path / "checkpoint")
    execution = execute(plan, spark, checkpoint=checkpoint, trigger="200 ms", policy=Policy(modules=MODULES))
    wait_for(execution, lambda: results(tmp_path) == [(1, 1.1)])
    execution.stop()
    rate(tmp_path, "LATE", 2.0)
    execution = execute(plan, spark, checkpoint=checkpoint, trigger="200 ms", policy=Policy(modules=MODULES))
    orders(tmp_path, (3, "EUR"))
    wait_for(execution, lambda: results(tmp_path) == [(1, 1.1), (2, 2.0), (3, 1.1)])
    wait_for(execution, lambda: parked(execution) == 0)
    execution.stop()


def test_a_run_that_ends_with_its_input_makes_the_remaining_attempts(spark: SparkSession, tmp_path: Path) -> None:
    orders(tmp_path, (1, "LATE"))
    hint = DEFERRED.replace("'100'", "'2'").replace("1 s", "10 ms")
    plan = job(tmp_path, hint=hint, **{"async-class": "tests.connectors.lookup.rates.AsyncRates"})
    execution = run(plan, spark, tmp_path)
    assert results(tmp_path) == [(1, None)]
    assert calls(tmp_path) == 3
    batch = execution.progress["sink_result"]
    assert batch.operators["lookup_r"].state_rows == 0
    assert batch.lookups["lookup_r"]["retries"] == 2


def parked(execution: Execution) -> int | None:
    batch = execution.progress.get("sink_result")
    found = None if batch is None else batch.operators.get("lookup_r")
    return None if found is None else found.state_rows


def wait_for(execution: Execution, condition: Any) -> None:
    """Poll the running query, whose batches take as long as they take."""
    import time

    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        execution.raise_failure()
        assert time.monotonic() < deadline, "it did not happen in time"
        execution.wait(0.2)

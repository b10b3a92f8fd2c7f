"""Scenarios whose expressions or lookups Spark computes: recorded jobs of Flink, current time, and lookups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.runtime.rehearsal.scenarios import sources_of
from hintplan.runtime.rehearsal.spark import SharedSpark
from tests.runtime.rehearsal.rehearsed import FILES, compiled, failures

pytestmark = pytest.mark.spark

FLINK = Path(__file__).parents[2] / "flink"
RECORDED: dict[str, dict[str, Any]] = json.loads((FLINK / "jobs.json").read_text(encoding="utf-8"), parse_float=str)
JOBS = (
    "ab_experiments", "access_logs", "ads_attribution", "audiences", "cart_changes", "cart_contents", "clickstream",
    "credit_limits", "customer_360", "device_registry", "fraud_rules", "fulfilment_sla", "fx_exposure", "game_economy",
    "invoice_dunning", "lead_scoring", "loyalty_tiers", "order_lifecycle", "parcel_tracking", "product_ranking",
    "refund_watch",
)  # fmt: skip


@pytest.fixture(scope="module")
def sparks(spark: SparkSession) -> SharedSpark:
    return SharedSpark(lambda: spark)


@pytest.mark.sampled
@pytest.mark.parametrize("name", JOBS)
def test_a_recorded_job_leaves_the_rows_of_flink_however_its_steps_are_cut(name: str, sparks: SharedSpark) -> None:
    plan = hintplan.compile_sql((FLINK / "jobs" / f"{name}.sql").read_text(encoding="utf-8"), file=f"{name}.sql")
    rows = {table: plan.tables[table].options["path"] for table in sources_of(plan)}
    tests = json.dumps({name: [{"rows": rows, "expect": RECORDED[name]}]}, ensure_ascii=False)
    assert failures(plan, f"tests: {tests}", slices=3, session=sparks.session("UTC"), folder=FLINK / "jobs") == []


def test_the_current_time_is_the_time_of_the_step(sparks: SharedSpark) -> None:
    sql = f"""
CREATE TABLE a (id INT, t TIMESTAMP_LTZ(3)) WITH ({FILES}'a');
CREATE TABLE b (id INT, fresh BOOLEAN, note STRING) WITH ('connector' = 'print');
INSERT INTO b SELECT id, t > CURRENT_TIMESTAMP - INTERVAL '1' HOUR, 'current_timestamp' FROM a;
"""
    tests = """
tests:
  one:
    - at: 2001-01-01 10:00
      a: [{id: 1, t: 2001-01-01 09:30}, {id: 2, t: 2001-01-01 08:30}]
    - after: 2 h
      a: [{id: 3, t: 2001-01-01 09:30}]
      expect:
        b:
          - {id: 1, fresh: true, note: current_timestamp}
          - {id: 2, fresh: false, note: current_timestamp}
          - {id: 3, fresh: false, note: current_timestamp}
"""
    assert failures(compiled(sql), tests, session=sparks.session("UTC")) == []


FULL = ", 'lookup.cache' = 'FULL', 'lookup.full-cache.periodic-reload.interval' = '1 h'"
LOOKUP = f"""
CREATE TABLE orders (id INT, country STRING, p AS PROCTIME()) WITH ({FILES}'orders');
CREATE TABLE countries (code STRING, name STRING) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://none/x',
  'table-name' = 'countries'{{options}});
CREATE TABLE named (id INT, name STRING) WITH ('connector' = 'print');
INSERT INTO named SELECT o.id, c.name FROM orders AS o
LEFT JOIN countries FOR SYSTEM_TIME AS OF o.p AS c ON c.code = o.country;
"""


@pytest.mark.parametrize(
    "options", ["", ", 'lookup.cache' = 'FULL', 'lookup.full-cache.periodic-reload.interval' = '1 h'"]
)
def test_lookups_are_answered_by_rows_of_the_test(options: str, sparks: SharedSpark) -> None:
    tests = """
lookups: {countries: [{code: CL, name: Chile}, {code: ~, name: nowhere}]}
tests:
  one:
    - orders: [{id: 1, country: CL}, {id: 2, country: PE}, {id: 3}]
      expect: {named: [{id: 1, name: Chile}, {id: 2, name: ~}, {id: 3, name: ~}]}
    - lookups: {countries: [{code: PE, name: Peru}]}
      orders: [{id: 4, country: PE}, {id: 5, country: CL}]
      expect: {named: {added: [{id: 4, name: Peru}, {id: 5, name: ~}]}}
  another begins with the rows of the file again:
    - orders: [{id: 1, country: CL}]
      expect: {named: [{id: 1, name: Chile}]}
"""
    assert failures(compiled(LOOKUP.format(options=options)), tests, slices=2, session=sparks.session("UTC")) == []


def test_a_lookup_without_rows_in_the_test_asks_nobody(sparks: SharedSpark) -> None:
    tests = "tests: {one: [{orders: [{id: 1, country: CL}]}]}\n"
    (failed,) = failures(compiled(LOOKUP.format(options="")), tests, session=sparks.session("UTC"))
    assert "the plan looks rows up in 'countries', and the test has no rows of it" in failed
    assert "hint: write lookups: {countries: [...]}" in failed


def test_inline_retries_of_a_lookup_do_not_wait(sparks: SharedSpark) -> None:
    hint = """/*+ LOOKUP('table' = 'countries', 'retry-predicate' = 'lookup_miss', 'retry-strategy' = 'fixed_delay',
  'fixed-delay' = '{delay}', 'max-attempts' = '3') */"""
    sql = LOOKUP.format(options="")
    tests = """
lookups: {countries: []}
tests:
  one:
    - orders: [{id: 1, country: PE}]
      expect: {named: [{id: 1, name: ~}]}
"""
    inline = sql.replace("SELECT o.id", f"SELECT {hint.format(delay='1 min')} o.id")
    assert failures(compiled(inline), tests, session=sparks.session("UTC")) == []

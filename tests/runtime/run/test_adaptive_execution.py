"""A micro-batch is one job, unless whoever started Spark has said how it is to plan; other sessions are left alone."""

from __future__ import annotations

import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession

from hintplan.runtime.spark import planning
from hintplan.runtime.spark.planning import plan_batches_as_a_whole, plan_wide_rows, shuffle_without_checksums
from hintplan.runtime.spark.session import prepare_session

pytestmark = pytest.mark.spark

ADAPTIVE = "spark.sql.adaptive.enabled"
CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum.enabled"
CONSTRAINTS = "spark.sql.constraintPropagation.enabled"


def test_batches_are_planned_as_a_whole_in_the_session_of_the_run_only(spark: SparkSession) -> None:
    own = prepare_session(spark, time_zone="UTC", once=True)
    plan_batches_as_a_whole(own)
    assert own.conf.get(ADAPTIVE) == "false"
    assert spark.conf.get(ADAPTIVE) == "true"


def test_what_spark_was_started_with_holds(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    started = SparkConf(loadDefaults=False).set(ADAPTIVE, "true")
    monkeypatch.setattr(type(spark.sparkContext), "getConf", lambda _: started)
    own = prepare_session(spark, time_zone="UTC", once=True)
    plan_batches_as_a_whole(own)
    assert own.conf.get(ADAPTIVE) == "true"


def test_conditions_of_wide_rows_are_not_inferred_from_each_other(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = prepare_session(spark, time_zone="UTC", once=True)
    for columns, expected in ((500, "true"), (501, "false"), (2, "true")):
        plan_wide_rows(own, columns)
        assert own.conf.get(CONSTRAINTS) == expected
    started = SparkConf(loadDefaults=False).set(CONSTRAINTS, "true")
    monkeypatch.setattr(type(spark.sparkContext), "getConf", lambda _: started)
    plan_wide_rows(own, 501)
    assert own.conf.get(CONSTRAINTS) == "true"


@pytest.mark.parametrize(
    ("is_local", "configured", "expected"),
    [(True, {}, "false"), (False, {}, "true"), (True, {CHECKSUMS: "true"}, "true")],
    ids=["this machine", "a cluster", "configured"],
)
def test_rows_that_stay_on_this_machine_are_shuffled_without_checksums(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    is_local: bool,
    configured: dict[str, str],
    expected: str,
) -> None:
    own = prepare_session(spark, time_zone="UTC", once=True)
    own.conf.set(CHECKSUMS, "true")
    started = SparkConf(loadDefaults=False).setAll(list(configured.items()))
    monkeypatch.setattr(type(spark.sparkContext), "getConf", lambda _: started)
    monkeypatch.setattr(planning, "shares_machine", lambda _: is_local)
    shuffle_without_checksums(own)
    assert own.conf.get(CHECKSUMS) == expected

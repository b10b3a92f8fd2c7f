"""A Spark that runs in the process before a run begins: it is used, and left as it is."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import planner
from runtime.run.command import opened_session
from runtime.run.spark_options import SparkOptions

pytestmark = pytest.mark.spark


def test_a_session_of_others_is_used_and_not_stopped(spark: SparkSession) -> None:
    script = "CREATE TABLE r (a INT) WITH ('connector' = 'print'); INSERT INTO r VALUES (1);"
    plan = planner.compile_sql(script, name="revenue")
    with opened_session(SparkOptions(master=None, remote=None, conf={}, debug=True), plan) as found:
        assert found.sparkContext is spark.sparkContext
        assert found.sparkContext.appName != "revenue"
    assert spark.range(3).count() == 3

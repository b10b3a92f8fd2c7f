"""Which packages Spark is started with, and that nothing is added to what somebody has said himself."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from pyspark import SparkContext

from hintplan.runtime.spark.packages import with_packages
from hintplan.runtime.spark.versions import VERSIONS, package_version

TOPICS = "org.apache.spark:spark-sql-kafka-0-10_2.13"


@pytest.fixture(autouse=True)
def not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("spark", "version"),
    [("4.0.0", "4.0.0"), ("4.0.5", "4.0.0"), ("4.1.3", "4.1.1"), ("4.2.0", "4.2.0"), ("4.3.7", "4.2.0")],
)
def test_a_version_has_its_own_packages_or_the_newest_before_it(spark: str, version: str) -> None:
    assert package_version(spark) == (version, spark == version)
    assert ".".join(spark.split(".")[:2]) in VERSIONS


def test_a_package_is_added_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.3.0")
    conf, notes = with_packages({"spark.jars.packages": "a:b:1", "x": "y"}, (TOPICS,))
    assert conf == {"spark.jars.packages": f"a:b:1,{TOPICS}:4.2.0", "x": "y"}
    (note,) = notes
    assert f"{TOPICS}:4.2.0" in note
    assert "Spark 4.3.0, which has none itself" in note
    assert with_packages({"x": "y"}, ()) == ({"x": "y"}, [])


def test_what_somebody_has_said_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "spark-sql-kafka-0-10_2.13-4.2.0.jar"
    jar.write_bytes(b"")
    for conf in (
        {"spark.jars.packages": f"{TOPICS}:4.1.1"},
        {"spark.jars": str(jar)},
        {"spark.jars": f"{tmp_path}/*.jar"},
        {"spark.driver.extraClassPath": f"/x.jar:{jar}"},
    ):
        assert with_packages(conf, (TOPICS,)) == (conf, [])
    (tmp_path / "jars").mkdir()
    jar.rename(tmp_path / "jars" / jar.name)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert with_packages({}, (TOPICS,)) == ({}, [])


@pytest.mark.parametrize("started", ["by spark-submit", "here"])
def test_a_spark_that_runs_is_given_nothing(started: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if started == "here":
        monkeypatch.setattr(SparkContext, "_active_spark_context", object())
    else:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert with_packages({}, (TOPICS,)) == ({}, [])

"""Classes that a JVM loads while Spark starts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from hintplan.runtime.jvm import early_classes
from hintplan.runtime.jvm.early_classes import load_early

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def jvm_with(for_name: Any) -> Any:
    return SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(Class=SimpleNamespace(forName=for_name))))


def test_the_jvm_is_asked_for_each_class() -> None:
    asked: list[str] = []
    load_early(jvm_with(asked.append)).join()
    assert asked == list(early_classes._CLASSES)


@pytest.mark.parametrize("error", [Py4JError("no such class"), Py4JNetworkError("gone"), ConnectionResetError()])
def test_a_class_that_is_not_there_and_a_jvm_that_ends_are_left_to_the_start_of_spark(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[object] = []
    monkeypatch.setattr("threading.excepthook", failures.append)

    def fails(name: str) -> None:
        raise error

    load_early(jvm_with(fails)).join()
    assert failures == []


@pytest.mark.spark
def test_this_spark_has_the_classes(spark: SparkSession) -> None:
    """Else this would be work for nothing."""
    for name in early_classes._CLASSES:
        assert spark._jvm.java.lang.Class.forName(name).getName() == name

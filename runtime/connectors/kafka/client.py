"""The options of Spark's Kafka connector, and the error for a session that lacks the connector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from hintplan.plans.connectors.messages.properties import client_properties
from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.spark_package import lacking_package
from hintplan.runtime.secrets import resolve

FORMAT = "kafka"
"""The name of Spark's connector."""

_Made = TypeVar("_Made")


def client_options(table: Table, unless_declared: Mapping[str, str]) -> dict[str, str]:
    """Return the Kafka properties of ``table`` and defaults ``unless_declared`` as Spark options, with secrets."""
    declared = {name: resolve(value) for name, value in client_properties(table).items()}
    return {f"kafka.{name}": value for name, value in {**unless_declared, **declared}.items()}


def with_package(make: Callable[[], _Made], spark: SparkSession, name: str, package: str) -> _Made:
    """Return the result of ``make``, which uses Spark's connector; raise RunError if Spark does not have it."""
    try:
        return make()
    except (AnalysisException, Py4JJavaError) as error:
        if f"data source: {FORMAT}" not in str(error) and "DATA_SOURCE_NOT_FOUND" not in str(error):
            raise
        raise lacking_package(spark, name, package) from error

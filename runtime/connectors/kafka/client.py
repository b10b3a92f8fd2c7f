"""What Spark's connector is told: the servers, the client's properties, and that it has to be there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from plans.connectors.messages.properties import client_properties
from plans.declarations.tables import Table
from plans.errors import RunError
from runtime.secrets import resolve
from runtime.spark.session import is_remote
from runtime.spark.versions import package_version

FORMAT = "kafka"
"""The name of Spark's connector."""

_Made = TypeVar("_Made")


def client_options(table: Table) -> dict[str, str]:
    """The properties of ``table`` as options of Spark's connector, with secrets in them."""
    return {f"kafka.{name}": resolve(value) for name, value in client_properties(table).items()}


def found(made: Callable[[], _Made], spark: SparkSession, name: str, table: Table, package: str) -> _Made:
    """What ``made`` makes with Spark's connector; RunError, with what to do, if Spark does not have it."""
    try:
        return made()
    except (AnalysisException, Py4JJavaError) as error:
        if f"data source: {FORMAT}" not in str(error) and "DATA_SOURCE_NOT_FOUND" not in str(error):
            raise
        raise lacking(spark, name, package) from error


def lacking(spark: SparkSession, name: str, package: str) -> RunError:
    """The error for a session that was started without Spark's connector."""
    coordinates = f"{package}:{package_version(str(spark.version))[0]}"
    if is_remote(spark):
        return RunError(
            f"table {name} needs {coordinates}, which the Spark Connect server does not have",
            hint=f"start the server with --packages {coordinates}, or with the jars in --jars",
            path=f"tables.{name}",
        )
    return RunError(
        f"table {name} needs {coordinates}, which this Spark session was started without",
        hint=f"start Spark with spark.jars.packages={coordinates}, or with the jars themselves in spark.jars",
        path=f"tables.{name}",
    )

"""Packages that Spark needs for a table, and that a session may lack."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.versions import package_version


def lacking_package(spark: SparkSession, name: str, package: str) -> RunError:
    """Return the error for a session that was started without ``package``, given as group and artefact."""
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


def require_spark_class(spark: SparkSession, class_name: str, name: str, package: str) -> None:
    """Raise RunError if Spark cannot load a class of ``package``; a Spark Connect server reports this itself."""
    if is_remote(spark):
        return
    jvm: Any = spark._jvm
    if not jvm.org.apache.spark.util.Utils.classIsLoadable(class_name):
        raise lacking_package(spark, name, package)

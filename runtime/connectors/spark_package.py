"""The error for a session without a package that Spark needs for a table."""

from __future__ import annotations

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

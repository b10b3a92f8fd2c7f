"""Additional requirements of a plan's tables and checkpoint for Spark: packages, and access to S3.

    needs = needs_of(plan, "s3a://lake/checkpoints/revenue", conf)
    start_session(None, needs.conf, needs=needs.session)

S3 is configured once, by the ``AWS_*`` environment variables (:mod:`hintplan.runtime.s3`). A different configuration of
Spark is refused, because state would not follow it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hintplan.plans.connectors.reach import FilePlace, file_place
from hintplan.plans.connectors.table import extras_of, places, spark_packages
from hintplan.plans.errors import RunError
from hintplan.plans.extras import refuse_lacking
from hintplan.plans.model.plan import Plan
from hintplan.runtime import s3
from hintplan.runtime.jvm.java import jvm_of
from hintplan.runtime.spark.failure import root_cause
from hintplan.runtime.spark.packages import hadoop_version, with_packages
from hintplan.runtime.spark.session import NO_NEEDS, SessionNeeds, is_remote, runs_here, start_session
from hintplan.runtime.stores import silence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S3A = "s3a"
_HADOOP_PACKAGES = {_S3A: "org.apache.hadoop:hadoop-aws"}
"""The Hadoop package of a file system, by scheme, if Spark does not include it."""
_AWS = ".amazonaws.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """``conf`` with packages, notes about them to print, and the settings to start a ``session`` with."""

    conf: Mapping[str, str]
    notes: tuple[str, ...] = ()
    session: SessionNeeds = NO_NEEDS


def needs_of(plan: Plan, checkpoint: str | None, conf: Mapping[str, str]) -> Needs:
    """Return the requirements of ``plan`` on ``checkpoint`` for a Spark with ``conf``; RunError if they are unknown."""
    schemes = {place.scheme for place in _reached(plan, checkpoint).values()}
    hadoop = [package for scheme, package in _HADOOP_PACKAGES.items() if scheme in schemes]
    extended, notes = with_packages(conf, spark_packages(plan.tables, {sink.table for sink in plan.sinks}), hadoop)
    session = SessionNeeds(settings=s3.settings(os.environ), environment=s3.VARIABLES) if _S3A in schemes else NO_NEEDS
    return Needs(conf=extended, notes=tuple(notes), session=session)


def refuse_lacking_here(plan: Plan, master: str | None) -> None:
    """Raise NotInstalled if tables of ``plan`` need a missing Python package, before Spark starts.

    The check applies if workers run in this Python with ``master``.
    """
    if runs_here(master):
        refuse_lacking(extras_of(plan.tables.values()))


def refuse_silent_server(needs: Needs) -> None:
    """Raise RunError if a session with these ``needs`` has to reach S3 and no server answers."""
    if needs.session.settings and (why := silence(f"{_S3A}://")) is not None:
        raise RunError(f"S3 cannot be reached: {why}", hint=f"correct {s3.ENDPOINT}, or start the server")


def started_for(plan: Plan, checkpoint: str | None) -> SparkSession:
    """Start a session for ``plan`` on ``checkpoint``, as Spark is configured."""
    refuse_lacking_here(plan, None)
    needs = needs_of(plan, checkpoint, {})
    refuse_silent_server(needs)
    return start_session(None, needs.conf, needs=needs.session)


def _reached(plan: Plan, checkpoint: str | None) -> dict[str, FilePlace]:
    """Return the paths in file systems that a run reaches, by the path in the plan that sets them."""
    reached = {
        f"tables.{name}.options.{place.option}": place
        for name, table in plan.tables.items()
        for place in places(table)
        if isinstance(place, FilePlace)
    }
    return reached if checkpoint is None else {**reached, "": file_place("", checkpoint)}


def refuse_unreachable(spark: SparkSession, plan: Plan, checkpoint: str | None) -> None:
    """Raise RunError if ``spark`` lacks a file system for S3, or reaches the checkpoint in another way than state does.

    A Spark Connect server is not checked.
    """
    if is_remote(spark):
        return
    for path, place in _reached(plan, checkpoint).items():
        if place.scheme in s3.SCHEMES:
            _refuse_lacking(spark, path, place)
    if checkpoint is not None and s3.is_s3(checkpoint):
        _refuse_apart(spark, checkpoint)


def _refuse_lacking(spark: SparkSession, path: str, place: FilePlace) -> None:
    from py4j.protocol import Py4JJavaError

    jvm = jvm_of(spark)
    try:
        jvm.org.apache.hadoop.fs.Path(place.path).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    except Py4JJavaError as error:
        text = str(error.java_exception)
        if f'No FileSystem for scheme "{place.scheme}"' in text:
            raise RunError(
                f"{place.path} cannot be reached: Spark has no file system for {place.scheme}://",
                hint=f"Hadoop's file system for S3 is s3a: write {_S3A}{place.path[len(place.scheme) :]}",
                path=path or None,
            ) from error
        if "S3AFileSystem not found" in text:
            package = f"{_HADOOP_PACKAGES[_S3A]}:{hadoop_version()}"
            raise RunError(
                f"{place.path} cannot be reached: this Spark was started without {package}",
                hint=f"start it with --packages {package}, or with its jars in --jars or on the class path",
                path=path or None,
            ) from error
        raise RunError(f"{place.path} cannot be reached: {root_cause(error)}", path=path or None) from error


def _refuse_apart(spark: SparkSession, checkpoint: str) -> None:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    bucket = urlsplit(checkpoint).netloc

    def setting(name: str) -> tuple[str, str]:
        """Return the setting that is in effect for the bucket, and its value."""
        bucket_key = f"fs.s3a.bucket.{bucket}.{name}"
        key = bucket_key if hadoop.get(bucket_key) else f"fs.s3a.{name}"
        return key, hadoop.get(key) or ""

    if (problem := next(_apart(setting("endpoint"), setting("access.key")), None)) is not None:
        raise problem


def _apart(endpoint: tuple[str, str], access_key: tuple[str, str]) -> Iterator[RunError]:
    """Yield errors for settings of Spark that contradict the environment.

    ``endpoint`` and ``access_key`` are the effective keys and their values.
    """
    ours, (key, theirs) = s3.endpoint(os.environ), endpoint
    if _host(theirs) != _host(ours or ""):
        where = f"{ours}, the value of {s3.ENDPOINT}" if ours else f"AWS itself, for {s3.ENDPOINT} is not set"
        yield RunError(
            f"Spark's own files would be at {theirs or 'AWS itself'} ({key}), and state at {where}",
            hint=f"set it once, in the environment: export {s3.ENDPOINT}={theirs or ours}, and remove {key}",
        )
    key, theirs = access_key
    if theirs and theirs != os.environ.get(s3.ACCESS_KEY):
        yield RunError(
            f"{key} has a key that only Spark's own files would be reached with, and not state",
            hint=f"set it once, in the environment: {s3.ACCESS_KEY} and AWS_SECRET_ACCESS_KEY, and remove {key}",
        )


def _host(endpoint: str) -> str:
    """Return the server of an endpoint, with or without a scheme, or an empty text for any server of AWS."""
    host = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}").netloc.lower()
    return "" if host.endswith(_AWS) else host

"""The differences between the Spark versions that hintplan supports, in one table. No other module checks a version.

A version is identified by its first two numbers; on Spark Connect, it is the server's version. Names that are the same
in all versions are in the modules that use them. Workers do not use this module.

>>> facts("4.0.5").restricted_mode
False
>>> facts("4.3.0").restricted_mode
True
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hintplan.plans.errors import RunError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

_STREAMING = "org.apache.spark.sql.execution.streaming"
_CLIENT = {
    "pandas": "pandas",
    "grpcio": "grpc",
    "grpcio-status": "grpc_status",
    "googleapis-common-protos": "google.rpc",
}
_COMPRESSING_CLIENT = {**_CLIENT, "zstandard": "zstandard"}


def _materialized(builder: JavaObject) -> int:
    """Count each partition once, even if it was computed again."""
    return int(builder.materializedRowCount())


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkFacts:
    """The properties of a Spark version that matter to a run.

    - ``log_files`` is the class that writes a query's logs with renames, and ``file_sink`` is Spark's file sink.
    - ``unix_sockets``: the JVM can connect to Python by Unix domain sockets, which have no delay.
    - ``restricted_mode``: Spark can refuse functions that call into the JVM.
    - ``pandas`` is the version that the driver's Python needs for Arrow functions, although our functions do not use
      it.
    - ``client`` has the distributions that a Spark Connect client needs, each with one of its modules.
    - ``kept_rows`` counts the rows that the builder of a cached result has stored.
    - ``is_observed`` is true of a completed Observation if its part of the plan was executed.
    - ``always_null_rows``: a ROW of Parquet is NULL if the file has none of its fields. Later versions have a setting.
    - ``of_rdd`` are the arguments of ``LogicalRDD.fromDataset`` after an RDD and the Dataset with the same rows.
    - ``published`` are the versions whose Maven packages, apart from PySpark, are published with all dependencies.
    """

    log_files: str = f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
    file_sink: str = f"{_STREAMING}.sinks.FileStreamSink"
    unix_sockets: bool = True
    restricted_mode: bool = False
    pandas: str | None = "2.2"
    client: Mapping[str, str]
    kept_rows: Callable[[Any], int] = lambda builder: int(builder.rowCountStats().value())
    is_observed: Callable[[Any], bool] = lambda observation: observation.getRow().schema() is not None
    always_null_rows: bool = False
    of_rdd: tuple[bool, ...] = (False,)
    published: tuple[str, ...] = ()


VERSIONS: Mapping[str, SparkFacts] = {
    "4.0": SparkFacts(
        log_files=f"{_STREAMING}.FileSystemBasedCheckpointFileManager",
        file_sink=f"{_STREAMING}.FileStreamSink",
        unix_sockets=False,
        pandas="2.0",
        client=_CLIENT,
        is_observed=lambda observation: not observation.get().isEmpty(),
        always_null_rows=True,
        published=("4.0.0",),
    ),
    "4.1": SparkFacts(client=_COMPRESSING_CLIENT, published=("4.1.1",)),
    "4.2": SparkFacts(client=_COMPRESSING_CLIENT, kept_rows=_materialized, published=("4.2.0",)),
    "4.3": SparkFacts(
        restricted_mode=True, pandas=None, client=_COMPRESSING_CLIENT, kept_rows=_materialized, of_rdd=(False, True)
    ),
}
"""The versions that tests run on; pyproject.toml allows no others."""


def facts(spark: str) -> SparkFacts:
    """Return the facts of version ``spark``; RunError if hintplan does not support it."""
    version_facts = VERSIONS.get(_minor(spark))
    if version_facts is None:
        first, *_, last = VERSIONS
        raise RunError(
            f"hintplan runs on Spark {first} to {last}, and this is Spark {spark}",
            hint=f"{sys.executable} -m pip install 'pyspark=={last}.*', or use a cluster of one of these versions",
        )
    return version_facts


def require_pandas(spark: str) -> None:
    """Raise RunError unless the driver's Python has the pandas version that Spark ``spark`` needs."""
    wanted = facts(spark).pandas
    if wanted is None:
        return
    try:
        installed = version("pandas")
    except PackageNotFoundError:
        installed = ""
    if _numbers(installed) < _numbers(wanted):
        has = f"which has {installed}" if installed else "which has none"
        raise RunError(
            f"Spark {_minor(spark)} needs pandas {wanted} or newer in the driver's Python, {has}",
            hint=f"{sys.executable} -m pip install 'pandas>={wanted}'; Spark 4.3 needs none",
        )


def version_notes(spark: str) -> Iterator[str]:
    """Yield a sentence for each protection that version ``spark`` lacks."""
    if not facts(spark).restricted_mode:
        yield (
            f"Spark {_minor(spark)} has no restricted mode: only hintplan's list of functions limits the calls of "
            f"expressions; Spark 4.3 refuses calls into its JVM besides"
        )


def lacking_client(spark: str) -> list[str]:
    """Return the distributions that this Python lacks for a Spark Connect client of PySpark version ``spark``."""
    return [name for name, module in facts(spark).client.items() if not _has(module)]


def new_session(spark: SparkSession, *, with_views: bool = False) -> SparkSession:
    """Return a new session of ``spark`` with its own settings; Spark Connect clients have no such method before 4.3.

    ``with_views`` requests a session in which DataFrames of ``spark`` stay valid. On Spark Connect, where DataFrames
    are only names until they are computed, this is a copy of the session, which versions before 4.1 cannot create.
    """
    client: Any = spark
    if with_views and can_be_copied(spark):
        session: SparkSession = client.cloneSession()
    elif hasattr(type(spark), "newSession"):
        session = spark.newSession()
    else:
        session = type(client)(connection=client.client._builder)
    return session


def can_be_copied(spark: SparkSession) -> bool:
    """Return True if a Spark Connect client can copy its session."""
    return hasattr(type(spark), "cloneSession")


def available_now() -> type[Any]:
    """Return the base class of stream readers that can plan the available input in several micro-batches.

    Before Spark 4.2, it is ``object``.
    """
    module = "pyspark.sql.streaming.datasource"
    base: type[Any] = import_module(module).SupportsTriggerAvailableNow if _has(module) else object
    return base


def _minor(spark: str) -> str:
    return ".".join(spark.split(".")[:2])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(".") if number.isdecimal())


def _has(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # its package does not exist either


def package_version(spark: str) -> tuple[str, bool]:
    """Return the version of the packages for Spark ``spark``, and whether it is the same version.

    If that version is not published, it is the newest one before it.

    >>> package_version("4.1.1"), package_version("4.3.0")
    (('4.1.1', True), ('4.2.0', False))
    """
    published = [version for facts in VERSIONS.values() for version in facts.published]
    older = [version for version in published if _numbers(version) <= _numbers(spark)]
    newest = max(older or published[:1], key=_numbers)
    return newest, newest == spark

"""What differs between the versions of Spark that hintplan runs on: one table, which nobody else has a part of.

A version is known by its first two numbers; on Spark Connect it is the server's. Names that are the same in all of them
stand where they are used. Workers use nothing of this.

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
from typing import Any

from hintplan.plans.errors import RunError

_STREAMING = "org.apache.spark.sql.execution.streaming"
_CLIENT = {
    "pandas": "pandas",
    "grpcio": "grpc",
    "grpcio-status": "grpc_status",
    "googleapis-common-protos": "google.rpc",
}
_COMPRESSING_CLIENT = {**_CLIENT, "zstandard": "zstandard"}


def _materialized(builder: Any) -> int:
    """Counts each partition once, also if it was computed again."""
    return int(builder.materializedRowCount())


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkFacts:
    """What a run has to know of a version of Spark.

    ``log_files`` is the class that writes a query's logs by renaming, ``file_sink`` that of Spark's sink of files.
    ``unix_sockets`` says whether the JVM can talk to Python by sockets of the file system, which answer at once; and
    ``restricted_mode`` whether Spark itself can refuse functions that call into the JVM; ``pandas``, the version
    without which the driver's Python cannot run functions on Arrow, though none of ours uses it; ``client``, the
    distributions that a client of Spark Connect needs, and a module of each. ``kept_rows`` counts what the builder of a
    cached result has stored; ``of_rdd`` is what ``LogicalRDD.fromDataset`` wants after an RDD and the Dataset with the
    same rows. ``published`` are the versions whose packages beside PySpark are in Maven's repositories, with all that
    these need.
    """

    log_files: str = f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
    file_sink: str = f"{_STREAMING}.sinks.FileStreamSink"
    unix_sockets: bool = True
    restricted_mode: bool = False
    pandas: str | None = "2.2"
    client: Mapping[str, str]
    kept_rows: Callable[[Any], int] = lambda builder: int(builder.rowCountStats().value())
    of_rdd: tuple[bool, ...] = (False,)
    published: tuple[str, ...] = ()


VERSIONS: Mapping[str, SparkFacts] = {
    "4.0": SparkFacts(
        log_files=f"{_STREAMING}.FileSystemBasedCheckpointFileManager",
        file_sink=f"{_STREAMING}.FileStreamSink",
        unix_sockets=False,
        pandas="2.0",
        client=_CLIENT,
        published=("4.0.0",),
    ),
    "4.1": SparkFacts(client=_COMPRESSING_CLIENT, published=("4.1.1",)),
    "4.2": SparkFacts(client=_COMPRESSING_CLIENT, kept_rows=_materialized, published=("4.2.0",)),
    "4.3": SparkFacts(
        restricted_mode=True, pandas=None, client=_COMPRESSING_CLIENT, kept_rows=_materialized, of_rdd=(False, True)
    ),
}
"""The versions that tests run on; pyproject.toml takes no others."""


def facts(spark: str) -> SparkFacts:
    """What is known of version ``spark``; RunError if hintplan does not run on it."""
    known = VERSIONS.get(_minor(spark))
    if known is None:
        first, *_, last = VERSIONS
        raise RunError(
            f"hintplan runs on Spark {first} to {last}, and this is Spark {spark}",
            hint=f"{sys.executable} -m pip install 'pyspark=={last}.*', or use a cluster of one of these versions",
        )
    return known


def require_pandas(spark: str) -> None:
    """RunError unless the driver's Python has the pandas that version ``spark`` asks for."""
    wanted = facts(spark).pandas
    if wanted is None:
        return
    try:
        found = version("pandas")
    except PackageNotFoundError:
        found = ""
    if _numbers(found) < _numbers(wanted):
        has = f"which has {found}" if found else "which has none"
        raise RunError(
            f"Spark {_minor(spark)} needs pandas {wanted} or newer in the driver's Python, {has}",
            hint=f"{sys.executable} -m pip install 'pandas>={wanted}'; Spark 4.3 needs none",
        )


def version_notes(spark: str) -> Iterator[str]:
    """What a run on version ``spark`` does without, each in a sentence."""
    if not facts(spark).restricted_mode:
        yield (
            f"Spark {_minor(spark)} has no restricted mode: what expressions may call is up to hintplan's list of "
            "functions alone; Spark 4.3 refuses calls into its JVM besides"
        )


def lacking_client(spark: str) -> list[str]:
    """The distributions that this Python lacks as a client of Spark Connect with a PySpark of version ``spark``."""
    return [name for name, module in facts(spark).client.items() if not _has(module)]


def new_session(spark: Any, *, with_views: bool = False) -> Any:
    """A session beside ``spark`` with settings of its own; clients of Spark Connect cannot be asked before 4.3.

    ``with_views`` asks for a session in which DataFrames of ``spark`` mean the same. On Spark Connect, where they are
    names until they are computed, that is a copy of the session, which versions before 4.1 cannot make.
    """
    if with_views and can_be_copied(spark):
        return spark.cloneSession()
    if hasattr(type(spark), "newSession"):
        return spark.newSession()
    return type(spark)(connection=spark.client._builder)


def can_be_copied(spark: Any) -> bool:
    """True if a client of Spark Connect can have a copy of its session made."""
    return hasattr(type(spark), "cloneSession")


def available_now() -> type[Any]:
    """The base of stream readers that can plan what is there in several micro-batches; before Spark 4.2, any class."""
    module = "pyspark.sql.streaming.datasource"
    found: type[Any] = import_module(module).SupportsTriggerAvailableNow if _has(module) else object
    return found


def _minor(spark: str) -> str:
    return ".".join(spark.split(".")[:2])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(".") if number.isdecimal())


def _has(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # nor the package that it would be in


def package_version(spark: str) -> tuple[str, bool]:
    """The version of the packages for Spark ``spark``: its own, or the newest before it; and whether it is its own.

    >>> package_version("4.1.1"), package_version("4.3.0")
    (('4.1.1', True), ('4.2.0', False))
    """
    published = [version for facts in VERSIONS.values() for version in facts.published]
    older = [version for version in published if _numbers(version) <= _numbers(spark)]
    newest = max(older or published[:1], key=_numbers)
    return newest, newest == spark

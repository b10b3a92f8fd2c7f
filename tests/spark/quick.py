"""Lets JVMs that tests start, and those of their clusters, start as quickly as they can.

quick_jvms()          # before the first of them
quick_environment()   # variables of commands in environments of their own, and of the processes of clusters
quick_executors()     # settings of Spark for executors in JVMs of their own

JVMs of tests live for seconds: the optimising compiler would take more of the processor than it gives back. Those of
environments made of hard links (tests/cluster/linked.py) find their classes in the class data archive of this one,
since Java asks which files those of a class path are, not what they are called. A directory of settings,
``SPARK_CONF_DIR``, keeps Java from using an archive.
"""

from __future__ import annotations

import os

from hintplan.runtime.jvm import class_archive

__all__ = ["quick_environment", "quick_executors", "quick_jvms"]

_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


def quick_jvms() -> None:
    """Set it in the environment, which other processes inherit; what is set there already wins."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _COMPILER)
    os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", "-XX:TieredStopAtLevel=1")


def quick_environment() -> dict[str, str]:
    """The variables, without those by which ``hintplan`` would make an archive of its own environment."""
    names = ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS")
    return {class_archive.VARIABLE: class_archive.OFF, **{name: _with_archive(os.environ.get(name)) for name in names}}


def quick_executors() -> dict[str, str]:
    """The settings by name."""
    return {"spark.executor.defaultJavaOptions": _with_archive(_COMPILER)}


def _with_archive(options: str | None) -> str:
    return " ".join([*([options] if options else []), *class_archive.class_data()])

"""Lets JVMs that tests start, and those of their clusters, use the compiler that starts quickest.

quick_jvms()       # before the first of them
QUICK_EXECUTORS    # variables of a program that has executors in JVMs of their own

JVMs of tests live for seconds: the optimising compiler would take more of the processor than it gives back. A directory
with settings of Spark, which executors need, keeps Java from using the class data archive, so only they have it.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["QUICK_EXECUTORS", "quick_jvms"]

QUICK_EXECUTORS = {"SPARK_CONF_DIR": str(Path(__file__).parent / "conf")}


def quick_jvms() -> None:
    """Set it in the environment, which other processes inherit; what is set there already wins."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")
    os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", "-XX:TieredStopAtLevel=1")

"""Spark sessions: the settings a run needs, and how to get a session that has them.

Settings that can be changed on a running session are set on a session of the run's own (``newSession``), so nobody
else's change. Those that cannot are checked, and the error says what to write where the session is built. Knows no plan
beyond the values it is given.

    spark = start_session("local[2]", {})            # or any session of the caller's
    own = prepare_session(spark, time_zone="UTC", once=True)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from plans.errors import RunError

__all__ = [
    "default_partitions",
    "is_remote",
    "prepare_session",
    "refuse_managed",
    "require_java",
    "shares_machine",
    "start_session",
]

MINIMUM_JAVA = 17

_FIXED = {"spark.sql.restrictedMode.enabled": "true"}
"""Settings that only the start of a session can make. Restricted mode refuses the functions that call into the JVM."""

_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Each is a dozen calls into the JVM to look at, and a run looks at all of them after every batch.
    "spark.sql.streaming.numRecentProgressUpdates": "16",
    "spark.sql.runSQLOnFiles": "false",
    # A second run of a query in the same application is refused; by default Spark would stop the first one.
    "spark.sql.streaming.stopActiveRunOnRestart": "false",
    # What an expression means must not depend on where it runs. Flink tells upper from lower case in names.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
}


_MANAGED = {
    "spark.sql.shuffle.partitions": "SET 'parallelism.default' in the script, or edit it in the plan's config",
    "spark.sql.session.timeZone": "SET 'table.local-time-zone' in the script, or edit it in the plan's config",
    "spark.sql.streaming.noDataMicroBatches.enabled": "it follows from --once",
}


def refuse_managed(conf: Mapping[str, str]) -> None:
    """RunError if ``conf`` sets what a run sets by itself, for it would have no effect."""
    for key in conf:
        if key in _MANAGED:
            raise RunError(f"{key} cannot be set for a run", hint=_MANAGED[key])
        if key in _SETTINGS or key in _FIXED:
            fixed = _SETTINGS.get(key) or _FIXED[key]
            raise RunError(f"{key} cannot be set for a run", hint=f"hintplan needs {key}={fixed} and sets it")


def start_session(master: str | None, conf: Mapping[str, str], *, remote: str | None = None) -> SparkSession:
    """Start a session on ``master``, ``local[*]`` if None, or connect to ``remote``; ``conf`` wins over our defaults.

    RunError if Java is missing or too old, or if the cluster cannot be reached.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if remote is None or remote.startswith("local"):
        require_java()
    builder = SparkSession.builder
    defaults = dict(_FIXED)
    if remote is not None:
        builder = builder.remote(remote)
        defaults = defaults if remote.startswith("local") else {}
    else:
        master = master or "local[*]"
        builder = builder.master(master)
        defaults["spark.ui.enabled"] = "false" if _is_local(master) else "true"
        defaults["spark.ui.showConsoleProgress"] = "false"
        defaults["spark.log.level"] = "ERROR"
        if _is_local(master):
            # What is shuffled never leaves the machine, and is mostly numbers: compressing it only takes time.
            defaults["spark.shuffle.compress"] = "false"
    if _is_local(master or remote):
        # Local workers must run where hintplan, pyarrow and protobuf are; elsewhere the cluster decides.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    elif "spark.pyspark.python" in conf:
        # Only spark-submit reads this setting; a session started from Python goes by the variable.
        os.environ["PYSPARK_PYTHON"] = conf["spark.pyspark.python"]
    for key, value in {**defaults, **conf}.items():
        builder = builder.config(key, value)
    try:
        return builder.appName("hintplan").getOrCreate()
    except PySparkException as error:
        raise RunError(f"Spark cannot be started: {str(error).splitlines()[0]}") from error
    except Py4JJavaError as error:
        raise RunError(f"Spark cannot be started: {str(error.java_exception).splitlines()[0]}") from error


def prepare_session(spark: SparkSession, *, time_zone: str, once: bool, take_over: bool = False) -> SparkSession:
    """A session beside ``spark`` with the settings of a run; RunError for those that ``spark`` was started without.

    ``once`` says that the run ends when the input is read: without it, batches go on without data, so that idle state
    expires; with it, they would never end. With ``take_over``, queries that Spark still runs from the same checkpoint
    are stopped.
    """
    own = spark.newSession()
    for key, wanted in _FIXED.items():
        if own.conf.get(key, None) != wanted:
            raise RunError(
                f"the Spark session was started without {key}={wanted}, which a running session cannot change",
                hint=f'stop it and build it with .config("{key}", "{wanted}")',
            )
    for key, value in _SETTINGS.items():
        own.conf.set(key, value)
    own.conf.set("spark.sql.session.timeZone", time_zone)
    if take_over:
        own.conf.set("spark.sql.streaming.stopActiveRunOnRestart", "true")
    own.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false" if once else "true")
    return own


def default_partitions(spark: SparkSession) -> int:
    """How many tasks the cluster runs at once, as Spark sees it; works on Spark Connect too, at the cost of a job."""
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    counted = spark.range(1 << 16).select(F.spark_partition_id().alias("p")).agg(F.max("p")).collect()
    return int(counted[0][0]) + 1


def is_remote(spark: SparkSession) -> bool:
    """Whether ``spark`` is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def shares_machine(spark: SparkSession) -> bool:
    """Whether the workers of ``spark`` run on this machine, in a JVM that this process has started."""
    return not is_remote(spark) and _is_local(spark.sparkContext.master)


def _is_local(master: str | None) -> bool:
    return re.match(r"local(\[|$)", master or "") is not None


def require_java() -> None:
    """RunError, saying what to install, unless Java 17 or newer would be found by Spark's launcher."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    install = (
        f"install a Java runtime, version {MINIMUM_JAVA} or 21, for instance with "
        f"'apt-get install openjdk-{MINIMUM_JAVA}-jre-headless' or 'brew install openjdk@{MINIMUM_JAVA}', "
        "and set JAVA_HOME if it is not on the PATH"
    )
    try:
        if java is None:
            raise FileNotFoundError
        found = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        where = f"JAVA_HOME is {home!r}, and there is no working bin/java" if home else "there is no java on the PATH"
        raise RunError(f"Spark needs Java, and {where}", hint=install) from error
    match = re.search(r'version "(?:1\.)?(\d+)', found.stderr + found.stdout)
    if match is None or int(match[1]) < MINIMUM_JAVA:
        version = match[1] if match else "of an unknown version"
        raise RunError(f"Spark needs Java {MINIMUM_JAVA} or newer; {java} is Java {version}", hint=install)

"""Spark sessions: the settings that a run needs, and functions that provide a session with them.

Settings that can change on a running session are set on a session of the run's own (``newSession``), so that no other
session changes. The other settings are checked, and the error shows how to build the session with them. This module
does not know plans, only values from them.

    spark = start_session("local[2]", {})            # or any session of the caller's
    own = prepare_session(spark, time_zone="UTC", once=True)
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hintplan.plans.errors import RunError
from hintplan.plans.extras import IN_BUNDLE
from hintplan.runtime.code_files import HOME, PACKAGE
from hintplan.runtime.jvm import class_archive
from hintplan.runtime.jvm.early_classes import load_early
from hintplan.runtime.jvm.java import require_java
from hintplan.runtime.jvm.launch import Launch, launch
from hintplan.runtime.spark.stopping import STOP_TIMEOUT
from hintplan.runtime.spark.versions import facts, lacking_client, new_session, require_pandas, version_notes
from hintplan.runtime.spark.worker_memory import keep_free_memory

if TYPE_CHECKING:
    from socketserver import BaseServer

    from py4j.java_gateway import JVMView

_FIXED = {"spark.sql.restrictedMode.enabled": "true"}
"""Settings that only the start of a session can make. Restricted mode, where Spark has it, refuses functions that call
into the JVM.
"""

_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # A run reads all of them after every batch, and each takes a dozen calls into the JVM.
    "spark.sql.streaming.numRecentProgressUpdates": "16",
    # Python sources cannot read their available input in several batches before Spark 4.2. By default, one such source
    # makes a query end after a single batch, even if this batch only repeats one that was interrupted.
    "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
    "spark.sql.runSQLOnFiles": "false",
    # Refuse a second run of a query in the same application; by default, Spark would stop the first one.
    "spark.sql.streaming.stopActiveRunOnRestart": "false",
    # hintplan.runtime.spark.stopping repeats a stop after this time.
    STOP_TIMEOUT: "2s",
    # The meaning of an expression must not depend on the session. Names are case-sensitive in Flink.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    # A run that is killed while it writes its first log entry leaves a draft, with which Spark 4.1 and later refuse to
    # start. hintplan.runtime.checkpoint.parts refuses logs and state without their first entries.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    # Spark's default without kafka: only sinks of the second interface report the number of rows written.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
    # For a duplicate key of a MAP, the last value counts.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
}


_SECRET = "(?i)secret|passw|token|credential|authorization|cookie|api[-_.]?key|access[-_.]?key|jaas|user[-.]?info"
_REDACTION = {
    "spark.redaction.regex": _SECRET,
    "spark.sql.redaction.options.regex": f"{_SECRET}|url",
}
"""The settings and options whose values Spark hides on its pages and in its plans."""

_SETTLED = r"spark\.(master$|submit\.|jars|files$|archives$|driver\.(memory|cores|extra|default|bindAddress|host|port))"
"""Settings that the JVM reads only when it starts."""

_UNNAMED = ("pyspark-shell", "org.apache.spark.deploy.PythonRunner")
"""Spark's default application names; the name of the program that spark-submit runs is another default."""

_MANAGED = {
    "spark.sql.shuffle.partitions": "SET 'parallelism.default' in the script, or edit it in the plan's config",
    "spark.sql.session.timeZone": "SET 'table.local-time-zone' in the script, or edit it in the plan's config",
    "spark.sql.streaming.noDataMicroBatches.enabled": "it follows from --once",
}


_ON_COMMAND_LINES = re.compile(r"spark\.hadoop\.fs\.s3a\.(bucket\..+\.)?(access\.key|secret\.key|session\.token)")
"""Settings that contain secrets and must not be on a command line."""

SAFE_PATH = "PYTHONSAFEPATH"
"""With this variable, Python does not import modules from the directory where it starts."""

_WORKER_DAEMON = "hintplan.runtime.worker.daemon"
"""The module that starts Python workers on the driver's machine."""

_BESIDE: WeakKeyDictionary[SparkSession, list[SparkSession]] = WeakKeyDictionary()
"""The Spark Connect sessions that runs have created from another session; each has its own connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionNeeds:
    """The requirements of a session for the systems that it reaches.

    ``settings`` apply unless Spark is configured otherwise. ``environment`` names the variables of this process that
    workers on other machines also need.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    environment: tuple[str, ...] = ()


NO_NEEDS = SessionNeeds()


def refuse_managed(conf: Mapping[str, str]) -> None:
    """Raise RunError if ``conf`` has a setting that a run sets itself, or a secret that command lines would expose."""
    for key in conf:
        if _ON_COMMAND_LINES.fullmatch(key):
            raise RunError(
                f"{key} cannot be set for a run: everybody on this machine can read command lines",
                hint="put keys into the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if there is one, "
                "AWS_SESSION_TOKEN; or use a profile, or a role of the machine",
            )
        if key in _MANAGED:
            raise RunError(f"{key} cannot be set for a run", hint=_MANAGED[key])
        if key in _FIXED:
            raise RunError(
                f"{key} cannot be set for a run", hint=f"hintplan sets {key}={_FIXED[key]} where Spark has it"
            )
        if key in _SETTINGS:
            raise RunError(f"{key} cannot be set for a run", hint=f"hintplan needs {key}={_SETTINGS[key]} and sets it")


def start_session(
    master: str | None,
    conf: Mapping[str, str],
    *,
    remote: str | None = None,
    needs: SessionNeeds = NO_NEEDS,
    name: str = "hintplan",
    jvm: Launch | None = None,
) -> SparkSession:
    """Start a session, or connect to ``remote``; ``conf`` overrides our defaults and Spark's configuration.

    A session that starts here gets what it ``needs``; a server has its own settings. Without ``master``, the setting of
    spark-submit or spark-defaults.conf applies, or else ``local[*]``. The application has the name ``name``, unless
    they set another name. ``jvm`` is the result of :func:`launch_jvm`. RunError if Java is missing or too old, if the
    cluster cannot be reached, or if the arguments contradict the settings of spark-submit.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    if remote is not None and remote.startswith("local"):
        require_java()
    try:
        return _connected(remote, conf) if remote is not None else _started(master, conf, needs, name, jvm)
    except PySparkException as error:
        raise RunError(
            f"Spark cannot be started: {str(error).splitlines()[0]}", hint=_without_packages(conf)
        ) from error
    except Py4JJavaError as error:
        raise RunError(f"Spark cannot be started: {str(error.java_exception).splitlines()[0]}") from error
    except (Py4JError, ConnectionError) as error:
        raise RunError("Spark cannot be started: its JVM has ended, killed or out of memory") from error


def _without_packages(conf: Mapping[str, str]) -> str | None:
    """Return a hint for packages that may not be downloadable; after a failed download, the JVM exits silently."""
    if not (packages := conf.get("spark.jars.packages")):
        return None
    return (
        f"if {packages} cannot be fetched from here, put its jars and the jars that it needs into a directory, "
        "and set --conf spark.jars=DIR/*.jar"
    )


def _connected(remote: str, conf: Mapping[str, str]) -> SparkSession:
    if lacking := lacking_client(pyspark.__version__):
        raise RunError(
            f"a client of Spark Connect needs {' and '.join(lacking)}, which this Python ({sys.executable}) lacks",
            hint=f"{sys.executable} -m pip install {' '.join(lacking)}",
        )
    if "spark.submit.pyFiles" in conf:
        raise RunError(
            "spark.submit.pyFiles has no effect on a Spark Connect server",
            hint="put the modules on PYTHONPATH; --allow-module sends the package along that a module is in",
        )
    if _is_local(remote):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ[SAFE_PATH] = "1"
        conf = {**_fixed(pyspark.__version__), **conf}
    return _built(SparkSession.builder.remote(remote), conf)


def _started(
    master: str | None, conf: Mapping[str, str], needs: SessionNeeds, name: str, jvm: Launch | None
) -> SparkSession:
    require_pandas(pyspark.__version__)
    fixed = _fixed(pyspark.__version__)
    is_own = SparkContext._active_spark_context is None
    starts = is_own and starts_jvm()
    configured = _configured(master, conf, jvm)
    classes = load_early(SparkContext._jvm) if starts else None
    master = str(configured.get("spark.master", "local[*]"))
    refused = {key: configured.get(key) for key, wanted in fixed.items() if configured.get(key, wanted) != wanted}
    for key, value in refused.items():
        raise RunError(f"Spark is configured with {key}={value}", hint=f"hintplan needs {key}={fixed[key]}")
    defaults = {
        "spark.ui.enabled": "false" if _is_local(master) else "true",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # PySpark would record the caller of each function, with four calls into the JVM. No error of a run shows it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        **_REDACTION,
        **needs.settings,
        **_worker_environment(master, needs),
    }
    if facts(pyspark.__version__).unix_sockets:
        # Over TCP, a small task's message to its worker waits 40 ms for an acknowledgement.
        defaults["spark.python.unix.domain.socket.enabled"] = "true"
        if master == "yarn":
            # The path of a container's temporary directory is too long for a socket.
            defaults["spark.python.unix.domain.socket.dir"] = "/tmp"
    if configured.get("spark.app.name", None) in (None, *_UNNAMED, Path(sys.argv[0]).name):
        configured.set("spark.app.name", name)
    if _is_local(master):
        defaults["spark.python.daemon.module"] = _WORKER_DAEMON
        # Shuffled data stays on this machine and is mostly numeric: compression would only take time.
        defaults["spark.shuffle.compress"] = "false"
        # Local workers need this Python, which has hintplan, pyarrow and protobuf. On a cluster, the cluster decides.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    elif python := configured.get("spark.pyspark.python", None):
        # Only spark-submit reads this setting; a session that Python starts uses the variable.
        os.environ["PYSPARK_PYTHON"] = python
    kept = dict(configured.getAll())
    if "spark.ui.showConsoleProgress" not in conf and not _is_submitted():
        # Spark treats a JVM that Python starts as a shell, and would show a progress bar.
        kept["spark.ui.showConsoleProgress"] = "false"
    wanted = {**defaults, **kept, **fixed}
    SparkContext.getOrCreate(SparkConf().setAll(list(wanted.items())))
    if classes is not None:
        classes.join()
    session = _built(SparkSession.builder, wanted)
    if is_own:
        # Files in the plan's directory are not code of the run: workers must not import modules from the current
        # directory.
        session.sparkContext.environment[SAFE_PATH] = "1"
        keep_free_memory(session.sparkContext)
    if IN_BUNDLE or (_is_local(master) and "site-packages" not in HOME.parts and (HOME / PACKAGE).is_dir()):
        _tell_where_hintplan_is(session.sparkContext.environment)
    return session


def _tell_where_hintplan_is(environment: dict[str, str]) -> None:
    """Let Python processes that Spark starts on this machine import hintplan from its folder.

    These processes run local tasks and sources. Spark passes this variable with each function. As
    spark.executorEnv.PYTHONPATH, it would replace YARN's own value.
    """
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), str(HOME))))


def _worker_environment(master: str, needs: SessionNeeds) -> dict[str, str]:
    """Return the settings that pass environment variables of this process to workers on other machines.

    They are set when the JVM is running, so no command line contains them, and Spark hides the values of secrets. On
    Kubernetes, they would be in the description of each pod, which other users may read.
    """
    if _is_local(master) or master.startswith("k8s:"):
        return {}
    return {f"spark.executorEnv.{name}": os.environ[name] for name in needs.environment if name in os.environ}


def _fixed(version: str) -> Mapping[str, str]:
    """Return ``_FIXED`` if this version of Spark knows it; Spark silently ignores unknown settings."""
    return _FIXED if facts(version).restricted_mode else {}


def starts_jvm() -> bool:
    """Return True if a local session starts a JVM: this process has none, and spark-submit has not started it."""
    return SparkContext._gateway is None and not _is_submitted()


def runs_here(master: str | None) -> bool:
    """Return True if a session that starts now will have its workers on this machine.

    Return False if that is unknown before it starts.
    """
    if not starts_jvm() or SparkContext._active_spark_context is not None:
        return False
    if master is not None:
        return _is_local(master)
    home = os.environ.get("SPARK_CONF_DIR") or Path(os.environ.get("SPARK_HOME") or pyspark.__path__[0], "conf")
    return not Path(home, "spark-defaults.conf").exists()


def launch_jvm(master: str | None, conf: Mapping[str, str]) -> Launch:
    """Start the JVM for :func:`start_session` with the same arguments, without waiting; RunError without Java."""
    if class_archive.archive() is None:  # only a suitable Java can have created the archive
        require_java()
    return launch(_asked(master, conf))


def _asked(master: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    return {**conf, **({} if master is None else {"spark.master": master})}


def _configured(master: str | None, conf: Mapping[str, str], jvm: Launch | None) -> SparkConf:
    """Return Spark's configuration: ``master`` and ``conf`` override spark-submit and spark-defaults.conf.

    The defaults are known once a JVM runs: the JVM of spark-submit, if it has started this process, otherwise a new
    one. RunError if spark-submit has already fixed a setting that ``conf`` changes.
    """
    requested = _asked(master, conf)
    active = SparkContext._active_spark_context
    if active is not None:
        configured = active.getConf()
    else:
        if starts_jvm():
            SparkContext._ensure_initialized(gateway=(jvm or launch_jvm(master, conf)).gateway())
            _outlive_sigterm(SparkContext._jvm)
        else:
            SparkContext._ensure_initialized()
        configured = SparkConf(_jvm=SparkContext._jvm)
    if _is_submitted():
        for key, value in requested.items():
            if re.match(_SETTLED, key) and configured.get(key, None) != value:
                current = configured.get(key, None)
                raise RunError(
                    f"{'--master' if key == 'spark.master' else key} {value} comes too late: spark-submit has started "
                    f"Spark with {current or 'none'}",
                    hint=f"pass it to spark-submit: {_to_submit(key, value)}",
                )
    for key, value in requested.items():
        configured.set(key, value)
    return configured


def _outlive_sigterm(jvm: JVMView) -> None:
    """Let a JVM that this process has started ignore SIGTERM, together with its future child processes.

    A service manager or container runtime sends SIGTERM to all processes at once, and a batch needs the JVM until it
    ends. The JVM always ends with this process, because its input is closed then.
    """
    jvm.sun.misc.Signal.handle(jvm.sun.misc.Signal("TERM"), jvm.sun.misc.SignalHandler.SIG_IGN)


def _is_submitted() -> bool:
    """Return whether spark-submit has started this process after its JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _to_submit(key: str, value: str) -> str:
    return f"spark-submit --master {value}" if key == "spark.master" else f"spark-submit --conf {key}={value}"


def _built(builder: SparkSession.Builder, conf: Mapping[str, str]) -> SparkSession:
    for key, value in conf.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


def without_effect(spark: SparkSession) -> list[str]:
    """Return a sentence for each setting of Spark that a run overrides; none for a server, which is not checked."""
    if is_remote(spark):
        return []
    configured = dict(spark.sparkContext.getConf().getAll())
    managed = [
        f"{key}={configured[key]} has no effect on this run: {hint}"
        for key, hint in _MANAGED.items()
        if key in configured
    ]
    fixed = [
        f"{key}={configured[key]} has no effect on this run, which needs {wanted}"
        for key, wanted in _SETTINGS.items()
        if configured.get(key, wanted) != wanted
    ]
    return [*managed, *fixed]


def prepare_session(
    spark: SparkSession,
    *,
    time_zone: str,
    once: bool,
    take_over: bool = False,
    with_views: bool = False,
    unrestricted: bool = False,
) -> SparkSession:
    """Return a new session of ``spark`` with the settings of a run.

    RunError if ``spark`` was started without a required setting, or if this Python lacks a package that its version
    needs. With ``once``, the run ends when its input is read. Without it, batches continue without data, so that idle
    state expires; with it, such batches would never end. With ``take_over``, queries that Spark still runs from the
    same checkpoint are stopped. ``with_views`` is needed if the run reads DataFrames of ``spark``. ``unrestricted``
    accepts a session without restricted mode.
    """
    refuse_stopped(spark)
    version = str(spark.version)
    fixed = _fixed(version)
    if not is_remote(spark):
        require_pandas(version)
        keep_free_memory(spark.sparkContext)
    if shares_machine(spark):
        _run_workers_here(spark.sparkContext)
    own: SparkSession = new_session(spark, with_views=with_views)
    if is_remote(own):
        if not _BESIDE:
            atexit.unregister(_close_beside)
            atexit.register(_close_beside)
        _BESIDE.setdefault(spark, []).append(own)
    for key, wanted in fixed.items():
        if own.conf.get(key, None) != wanted and not unrestricted:
            raise RunError(
                f"the Spark session was started without {key}={wanted}, which a running session cannot change",
                hint=f'stop it and build it with .config("{key}", "{wanted}"); where it cannot be stopped, '
                "--allow-unrestricted-spark continues without",
            )
    for key, value in _SETTINGS.items():
        own.conf.set(key, value)
    own.conf.set("spark.sql.session.timeZone", time_zone)
    if take_over:
        own.conf.set("spark.sql.streaming.stopActiveRunOnRestart", "true")
    own.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false" if once else "true")
    return own


def _run_workers_here(context: SparkContext) -> None:
    """Let local workers of a session that others have started run this Python, unless they have configured one.

    PySpark uses python3 of the PATH, which may not be the Python of a notebook in a virtual environment.
    """
    if "PYSPARK_PYTHON" not in os.environ and not context.getConf().contains("spark.pyspark.python"):
        context.pythonExec = sys.executable


def give_variables(spark: SparkSession, names: Iterable[str]) -> None:
    """Pass the current values of the environment variables ``names`` to workers on this machine.

    Workers inherit the environment of the JVM, which may have started before a notebook cell set a variable.
    """
    if not shares_machine(spark):
        return
    context: Any = spark.sparkContext
    for name in names:
        value = os.environ.get(name)
        if value is not None and context._jvm.System.getenv(name) != value:
            context.environment[name] = value


def restriction_notes(spark: SparkSession) -> Iterator[str]:
    """Yield a sentence for each protection that a run lacks on a session without restricted mode."""
    yield from version_notes(str(spark.version))
    for key, wanted in _fixed(str(spark.version)).items():
        if spark.conf.get(key, None) != wanted:
            yield (
                "the Spark session has no restricted mode: only hintplan's list of functions limits the calls of "
                "expressions"
            )


def is_prepared_for_once(spark: SparkSession) -> bool:
    """Return whether :func:`prepare_session` has prepared ``spark`` for a run that ends when its input is read."""
    return spark.conf.get("spark.sql.streaming.noDataMicroBatches.enabled", "true") == "false"


def is_started_by_others() -> bool:
    """Return whether Spark already runs in this process, so that a run must not stop it."""
    return SparkContext._active_spark_context is not None


def stop_session(spark: SparkSession) -> None:
    """Stop ``spark`` and the sessions that :func:`prepare_session` has created from it.

    The created sessions are closed first, so that none of them contacts a server that has ended.
    """
    for own in _BESIDE.pop(spark, []):
        client = own.client  # stop() would also end a local server, which the other sessions use
        client.release_session()
        client.close()
    if is_remote(spark):
        spark.stop()
        return
    context = spark.sparkContext
    accumulators, context._accumulatorServer = context._accumulatorServer, None  # type: ignore[assignment]
    spark.stop()
    if accumulators is not None:
        threading.Thread(target=_end, args=(accumulators,), name="hintplan-accumulators", daemon=True).start()
        if isinstance(address := accumulators.server_address, str):
            Path(address).unlink(missing_ok=True)


def _close_beside() -> None:
    """Close the connections of sessions that were not stopped; otherwise PySpark would hang at Python's exit."""
    for own in [own for sessions in list(_BESIDE.values()) for own in sessions]:
        with suppress(Exception):
            own.client.close()


def _end(server: BaseServer) -> None:
    """Stop PySpark's accumulator server.

    It runs in a thread of its own, because the server checks only once a second for a shutdown.
    """
    with suppress(FileNotFoundError):
        server.shutdown()


def default_partitions(spark: SparkSession) -> int:
    """Return the number of tasks that the cluster runs at once; on Spark Connect, this takes a job."""
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    counted = spark.range(1 << 16).select(F.spark_partition_id().alias("p")).agg(F.max("p")).collect()
    return int(counted[0][0]) + 1


def is_remote(spark: SparkSession) -> bool:
    """Return whether ``spark`` is a Spark Connect client."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def refuse_stopped(spark: SparkSession) -> None:
    """Raise RunError if ``spark`` has been stopped."""
    if is_stopped(spark):
        raise RunError("the Spark session has been stopped", hint="build a new one, and create the DataFrames again")


def is_stopped(spark: SparkSession) -> bool:
    """Return True if nothing runs on ``spark``."""
    if is_remote(spark):
        return bool(getattr(spark, "is_stopped", False))
    jsc = spark.sparkContext._jsc
    return jsc is None or bool(jsc.sc().isStopped())


def shares_machine(spark: SparkSession) -> bool:
    """Return whether the workers of ``spark`` run on this machine, in a JVM that this process has started."""
    return not is_remote(spark) and _is_local(spark.sparkContext.master)


def _is_local(master: str | None) -> bool:
    return re.match(r"local(\[|$)", master or "") is not None

"""Spark sessions: the settings a run needs, and how to get a session that has them.

Settings that can be changed on a running session are set on a session of the run's own (``newSession``), so nobody
else's change. Those that cannot are checked, and the error says what to write where the session is built. Knows no plan
beyond the values it is given.

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
from typing import Any
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

_FIXED = {"spark.sql.restrictedMode.enabled": "true"}
"""Settings that only the start of a session can make. Restricted mode, where Spark has it, refuses the functions that
call into the JVM.
"""

_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Each is a dozen calls into the JVM to look at, and a run looks at all of them after every batch.
    "spark.sql.streaming.numRecentProgressUpdates": "16",
    "spark.sql.runSQLOnFiles": "false",
    # A second run of a query in the same application is refused; by default Spark would stop the first one.
    "spark.sql.streaming.stopActiveRunOnRestart": "false",
    # What hintplan.runtime.spark.stopping asks for again.
    STOP_TIMEOUT: "2s",
    # What an expression means must not depend on where it runs. Flink tells upper from lower case in names.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    # Spark's default but for kafka: only what is written by the second interface tells how many rows there were.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
    # Of a key that a MAP is given twice, the last value counts.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
}


_SECRET = "(?i)secret|passw|token|credential|authorization|cookie|api[-_.]?key|access[-_.]?key|jaas|user[-.]?info"
_REDACTION = {
    "spark.redaction.regex": _SECRET,
    "spark.sql.redaction.options.regex": f"{_SECRET}|url",
}
"""Which settings and options Spark's own pages and plans show no values of."""

_SETTLED = r"spark\.(master$|submit\.|jars|files$|archives$|driver\.(memory|cores|extra|default|bindAddress|host|port))"
"""Settings that a JVM which runs has read."""

_UNNAMED = ("pyspark-shell", "org.apache.spark.deploy.PythonRunner")
"""What Spark is started for if nobody has given it a name, besides the program that spark-submit was given."""

_MANAGED = {
    "spark.sql.shuffle.partitions": "SET 'parallelism.default' in the script, or edit it in the plan's config",
    "spark.sql.session.timeZone": "SET 'table.local-time-zone' in the script, or edit it in the plan's config",
    "spark.sql.streaming.noDataMicroBatches.enabled": "it follows from --once",
}


_ON_COMMAND_LINES = re.compile(r"spark\.hadoop\.fs\.s3a\.(bucket\..+\.)?(access\.key|secret\.key|session\.token)")
"""Settings with secrets that have a better place."""

SAFE_PATH = "PYTHONSAFEPATH"
"""The variable with which Python does not look for modules in the directory where it starts."""

_WORKER_DAEMON = "hintplan.runtime.worker.daemon"
"""What starts Python workers on the machine of the driver."""

_BESIDE: WeakKeyDictionary[SparkSession, list[SparkSession]] = WeakKeyDictionary()
"""The sessions on Spark Connect that were made beside another one: each has a connection of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionNeeds:
    """What a session starts with for what it is to reach: ``settings``, unless Spark is configured otherwise, and the
    names of variables of this ``environment`` that workers elsewhere must have too.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    environment: tuple[str, ...] = ()


NO_NEEDS = SessionNeeds()


def refuse_managed(conf: Mapping[str, str]) -> None:
    """RunError if ``conf`` sets what a run sets by itself, for it would have no effect, or what it must not tell."""
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
    """Start a session, or connect to ``remote``; ``conf`` wins over our defaults, and over what Spark is configured to.

    A session that starts here has what it ``needs``; a server's is its own.

    ``master`` None is whatever spark-submit or spark-defaults.conf says, else ``local[*]``. The application is called
    ``name`` if neither gives it a name. ``jvm`` is what :func:`launch_jvm` has started for it.
    RunError if Java is missing or too old, if the cluster cannot be reached, or if what is asked for here contradicts
    what spark-submit has started.
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
    """What to do where packages cannot be fetched, after which a JVM that starts ends without a word."""
    if not (packages := conf.get("spark.jars.packages")):
        return None
    return (
        f"if {packages} cannot be fetched from here, put its jars and those that it needs into a directory, and say "
        "--conf spark.jars=DIR/*.jar"
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
    given = _configured(master, conf, jvm)
    classes = load_early(SparkContext._jvm) if starts else None
    master = str(given.get("spark.master", "local[*]"))
    refused = {key: given.get(key) for key, wanted in fixed.items() if given.get(key, wanted) != wanted}
    for key, value in refused.items():
        raise RunError(f"Spark is configured with {key}={value}", hint=f"hintplan needs {key}={fixed[key]}")
    defaults = {
        "spark.ui.enabled": "false" if _is_local(master) else "true",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # PySpark notes the caller of each function, by four calls into the JVM, and no error of a run shows it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        **_REDACTION,
        **needs.settings,
        **_worker_environment(master, needs),
    }
    if facts(pyspark.__version__).unix_sockets:
        # By TCP, what a small task says to its worker waits for 40 ms to be acknowledged.
        defaults["spark.python.unix.domain.socket.enabled"] = "true"
        if master == "yarn":
            # A container's own temporary directory has a path that is too long for a socket.
            defaults["spark.python.unix.domain.socket.dir"] = "/tmp"
    if given.get("spark.app.name", None) in (None, *_UNNAMED, Path(sys.argv[0]).name):
        given.set("spark.app.name", name)
    if _is_local(master):
        defaults["spark.python.daemon.module"] = _WORKER_DAEMON
        # What is shuffled never leaves the machine, and is mostly numbers: compressing it only takes time.
        defaults["spark.shuffle.compress"] = "false"
        # Local workers must run where hintplan, pyarrow and protobuf are; elsewhere the cluster decides.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    elif python := given.get("spark.pyspark.python", None):
        # Only spark-submit reads this setting; a session started from Python goes by the variable.
        os.environ["PYSPARK_PYTHON"] = python
    kept = dict(given.getAll())
    if "spark.ui.showConsoleProgress" not in conf and not _is_submitted():
        # A JVM that Python starts is a shell to Spark, which shows progress there.
        kept["spark.ui.showConsoleProgress"] = "false"
    wanted = {**defaults, **kept, **fixed}
    SparkContext.getOrCreate(SparkConf().setAll(list(wanted.items())))
    if classes is not None:
        classes.join()
    session = _built(SparkSession.builder, wanted)
    if is_own:
        # What lies beside a plan is not code of the run: no worker imports modules from where it starts.
        session.sparkContext.environment[SAFE_PATH] = "1"
    if IN_BUNDLE or (_is_local(master) and "site-packages" not in HOME.parts and (HOME / PACKAGE).is_dir()):
        _tell_where_hintplan_is(session.sparkContext.environment)
    return session


def _tell_where_hintplan_is(environment: dict[str, str]) -> None:
    """Let Python that Spark starts on this machine, for local tasks and for sources, find what is not installed.

    It is said with each function. As spark.executorEnv.PYTHONPATH, it would take the place of YARN's own.
    """
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), str(HOME))))


def _worker_environment(master: str, needs: SessionNeeds) -> dict[str, str]:
    """The settings that give workers elsewhere what this process has in its environment.

    They are made when the JVM is up, so no command line has them, and Spark shows no values of those that are secret.
    On Kubernetes they would stand in the description of each pod, which others may read.
    """
    if _is_local(master) or master.startswith("k8s:"):
        return {}
    return {f"spark.executorEnv.{name}": os.environ[name] for name in needs.environment if name in os.environ}


def _fixed(version: str) -> Mapping[str, str]:
    """``_FIXED`` for a version of Spark: what it does not know, it would take without a word, and do nothing."""
    return _FIXED if facts(version).restricted_mode else {}


def starts_jvm() -> bool:
    """True if a session without a server starts a JVM: this process has none, and spark-submit has not started it."""
    return SparkContext._gateway is None and not _is_submitted()


def runs_here(master: str | None) -> bool:
    """True if a session that starts now has its workers on this machine, as far as that is known before it starts."""
    if not starts_jvm() or SparkContext._active_spark_context is not None:
        return False
    if master is not None:
        return _is_local(master)
    home = os.environ.get("SPARK_CONF_DIR") or Path(os.environ.get("SPARK_HOME") or pyspark.__path__[0], "conf")
    return not Path(home, "spark-defaults.conf").exists()


def launch_jvm(master: str | None, conf: Mapping[str, str]) -> Launch:
    """Start the JVM for :func:`start_session` with the same arguments, which waits for it; RunError without a Java."""
    if class_archive.archive() is None:  # which only a Java that Spark runs on has made
        require_java()
    return launch(_asked(master, conf))


def _asked(master: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    return {**conf, **({} if master is None else {"spark.master": master})}


def _configured(master: str | None, conf: Mapping[str, str], jvm: Launch | None) -> SparkConf:
    """What Spark is to start with: ``master`` and ``conf`` over what spark-submit and spark-defaults.conf say.

    The second is known once a JVM runs: that of spark-submit, if it has started this process, else one that starts now.
    RunError if spark-submit's has already settled what is asked for.
    """
    asked = _asked(master, conf)
    active = SparkContext._active_spark_context
    if active is not None:
        given = active.getConf()
    else:
        if starts_jvm():
            SparkContext._ensure_initialized(gateway=(jvm or launch_jvm(master, conf)).gateway())
            _outlive_sigterm(SparkContext._jvm)
        else:
            SparkContext._ensure_initialized()
        given = SparkConf(_jvm=SparkContext._jvm)
    if _is_submitted():
        for key, value in asked.items():
            if re.match(_SETTLED, key) and given.get(key, None) != value:
                found = given.get(key, None)
                raise RunError(
                    f"{'--master' if key == 'spark.master' else key} {value} comes too late: spark-submit has started "
                    f"Spark with {found or 'none'}",
                    hint=f"say it to spark-submit: {_to_submit(key, value)}",
                )
    for key, value in asked.items():
        given.set(key, value)
    return given


def _outlive_sigterm(jvm: Any) -> None:
    """Let a JVM that this process has started, and what that starts from now on, not end by SIGTERM.

    Whoever stops a service or a container sends it to all processes at once, and a batch needs the JVM to its end. It
    ends with this process, whatever becomes of that, for its input is closed then.
    """
    jvm.sun.misc.Signal.handle(jvm.sun.misc.Signal("TERM"), jvm.sun.misc.SignalHandler.SIG_IGN)


def _is_submitted() -> bool:
    """Whether spark-submit has started this process, and the JVM before."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _to_submit(key: str, value: str) -> str:
    return f"spark-submit --master {value}" if key == "spark.master" else f"spark-submit --conf {key}={value}"


def _built(builder: Any, conf: Mapping[str, str]) -> SparkSession:
    for key, value in conf.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


def without_effect(spark: SparkSession) -> list[str]:
    """What Spark is configured to that a run sets by itself, each in a sentence; nothing is known of a server."""
    if is_remote(spark):
        return []
    given = dict(spark.sparkContext.getConf().getAll())
    managed = [
        f"{key}={given[key]} has no effect on this run: {hint}" for key, hint in _MANAGED.items() if key in given
    ]
    fixed = [
        f"{key}={given[key]} has no effect on this run, which needs {wanted}"
        for key, wanted in _SETTINGS.items()
        if given.get(key, wanted) != wanted
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
    """A session beside ``spark`` with the settings of a run; RunError for those that ``spark`` was started without, and
    for what its version needs and this Python lacks.

    ``once`` says that the run ends when the input is read: without it, batches go on without data, so that idle state
    expires; with it, they would never end. With ``take_over``, queries that Spark still runs from the same checkpoint
    are stopped. ``with_views`` says that DataFrames of ``spark`` will be read. ``unrestricted`` consents to a session
    that was started without restricted mode.
    """
    refuse_stopped(spark)
    version = str(spark.version)
    fixed = _fixed(version)
    if not is_remote(spark):
        require_pandas(version)
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
                "--allow-unrestricted-spark goes on without",
            )
    for key, value in _SETTINGS.items():
        own.conf.set(key, value)
    own.conf.set("spark.sql.session.timeZone", time_zone)
    if take_over:
        own.conf.set("spark.sql.streaming.stopActiveRunOnRestart", "true")
    own.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false" if once else "true")
    return own


def _run_workers_here(context: SparkContext) -> None:
    """Let local workers of a session that others have started run this Python, unless they have said which.

    PySpark takes python3 of the PATH, which in a notebook of a virtual environment is another one.
    """
    if "PYSPARK_PYTHON" not in os.environ and not context.getConf().contains("spark.pyspark.python"):
        context.pythonExec = sys.executable


def give_variables(spark: SparkSession, names: Iterable[str]) -> None:
    """Let workers on this machine have the environment variables ``names`` as they are here now.

    They have those of the JVM, which may have started before a cell of a notebook has set one.
    """
    if not shares_machine(spark):
        return
    context: Any = spark.sparkContext
    for name in names:
        value = os.environ.get(name)
        if value is not None and context._jvm.System.getenv(name) != value:
            context.environment[name] = value


def restriction_notes(spark: SparkSession) -> Iterator[str]:
    """Return what a run does without on a session that nothing restricts, in a sentence."""
    yield from version_notes(str(spark.version))
    for key, wanted in _fixed(str(spark.version)).items():
        if spark.conf.get(key, None) != wanted:
            yield (
                "the Spark session has no restricted mode: what expressions may call is up to hintplan's list of "
                "functions alone"
            )


def takes_what_is_there(spark: SparkSession) -> bool:
    """Whether :func:`prepare_session` has made ``spark`` for a run that ends when the input is read."""
    return spark.conf.get("spark.sql.streaming.noDataMicroBatches.enabled", "true") == "false"


def is_started_by_others() -> bool:
    """Whether Spark runs in this process before a run begins, so that it is not the run's to stop."""
    return SparkContext._active_spark_context is not None


def stop_session(spark: SparkSession) -> None:
    """End ``spark``, and what :func:`prepare_session` has made beside it, so that none asks for its server after it."""
    for own in _BESIDE.pop(spark, []):
        client = own.client  # the stop() of a session would end a local server, under the others
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
    """Close the connections of sessions that nobody has stopped: PySpark would wait for ever when Python has ended."""
    for own in [own for sessions in list(_BESIDE.values()) for own in sessions]:
        with suppress(Exception):
            own.client.close()


def _end(server: Any) -> None:
    """End PySpark's server of accumulators, which looks once a second whether it is to: nobody waits for that."""
    with suppress(FileNotFoundError):
        server.shutdown()


def default_partitions(spark: SparkSession) -> int:
    """How many tasks the cluster runs at once, as Spark sees it; works on Spark Connect too, at the cost of a job."""
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    counted = spark.range(1 << 16).select(F.spark_partition_id().alias("p")).agg(F.max("p")).collect()
    return int(counted[0][0]) + 1


def is_remote(spark: SparkSession) -> bool:
    """Whether ``spark`` is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def refuse_stopped(spark: SparkSession) -> None:
    """Raise RunError if ``spark`` has been stopped."""
    if is_stopped(spark):
        raise RunError("the Spark session has been stopped", hint="build a new one, and make the DataFrames anew")


def is_stopped(spark: Any) -> bool:
    """Return True if nothing runs on ``spark`` any more."""
    if is_remote(spark):
        return bool(getattr(spark, "is_stopped", False))
    jsc = spark.sparkContext._jsc
    return jsc is None or bool(jsc.sc().isStopped())


def shares_machine(spark: SparkSession) -> bool:
    """Whether the workers of ``spark`` run on this machine, in a JVM that this process has started."""
    return not is_remote(spark) and _is_local(spark.sparkContext.master)


def _is_local(master: str | None) -> bool:
    return re.match(r"local(\[|$)", master or "") is not None
